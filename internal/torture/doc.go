// Package torture kills hosts. A child process appends to many stored sessions, with plugin processes and checkpoint rows written all the time, and reports each
// acknowledgement; it is killed at random moments. After each kill every acknowledged event must be there, seqs dense, batches whole, surfaces and
// values those of a fold from zero. It is all tests; TORTURE_KILLS says how many kills, 12 unless set.
package torture
