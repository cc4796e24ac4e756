// Package life brings one plugin process up, in the one order that there is: start, describe, configure, registrations, fold stream,
// health.
//
// It owns a process from there to its end, and what was learned from it. It decides nothing about restarts and registers nothing: a Life is
// handed to whoever does. What a plugin says about itself is checked here, once: descriptions, registrations, results of tools.
//
// A Life is immutable but for its instance, and for the channel on which new registrations come; two goroutines belong to it besides
// the instance's, and End waits for all of them.
package life
