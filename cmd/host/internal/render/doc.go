// Package render makes the human form of a replay: what was said and done, each value where it changed, and how it all stood at
// the end. It prints; it decides nothing.
//
// Texts in a log come from strangers: whatever could steer a terminal is shown as an escape, never sent to it. A Replay
// belongs to one goroutine.
package render
