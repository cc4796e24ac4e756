// Package client talks to a foldhost server over HTTP: typed calls, typed errors, and streams that go on by themselves after a break. docs/server.md has what the calls mean.
//
// Errors are *Error for what the server says, with its code; *NetworkError for an answer that did not come; *AnswerError for one that makes no sense; and errors of package event for
// what is wrong before anything is sent. Each says what was being done.
//
// # Sending again
//
// What failed in passing is sent again, with growing waits and Options.Tries times in all, where that is as good as sending it once: reading; creating under an id; detaching; verifying; and
// appending, because each append carries an idempotency key, by which the server knows it again. Everything else is sent again only if there was no connection at all. A program that must not
// append twice even if it is started anew keeps the key with what it appends, and gives it itself.
//
// # Streams
//
// Stream follows a session and gives frames in the order in which the server sends them. It holds one frame. What a reader keeps of a stream is best kept in this order: first what the frame
// says, then its position; a stream that begins at that position later goes on behind it.
package client
