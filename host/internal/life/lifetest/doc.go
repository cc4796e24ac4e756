// Package lifetest has plugin processes that are none: what a life asks of a process is answered in memory, so that tests of what keeps
// plugins up decide when each call is answered, and run on a clock of their own (testing/synctest).
package lifetest
