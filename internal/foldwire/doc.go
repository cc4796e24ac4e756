// Package foldwire turns what the core says about folds into messages of pluginproto and back, for the host and for the SDK.
//
// What comes from the other side is not trusted: a message is either read whole or refused with a *ProtocolError, and nothing that
// it says is acted upon before. Two things are left to those who know more: whether a view or state is JSON and true
// to its schema (unit.Compiled checks that once, together), and whether a batch number is one that was asked (the
// stream's owner knows). JSON bytes are shared with the message and never copied.
//
// The package holds no state; an Answer belongs to one goroutine at a time.
package foldwire

import "fmt"

// ProtocolError is a message that no peer which keeps the protocol sends.
type ProtocolError struct {
	// Message is the name of the message, such as "FoldReply"; Field is the place in it.
	Message, Field string
	Reason         string
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%s.%s: %s", e.Message, e.Field, e.Reason)
}
