package paging

import "crypto/rand"

// Incarnation gives a new one. It is short, as it travels with every position, and random enough that two lives of one id never share it:
// 60 bits.
func Incarnation() string { return rand.Text()[:12] }
