// Package chaos breaks what lies between a host and its clients. A proxy cuts, delays and half-opens connections while programs append and call tools through it, others follow
// sessions and keep their values, and the host and its plugins are killed and started again. In the end every client has what the host has: each event once and in order, and the values.
// It is all tests; CHAOS_CUTS says how many connections are cut, 1,000 unless set, and 150 of the short form.
package chaos
