// Package client talks to a foldhost server over HTTP: typed calls, typed errors, and streams that go on by themselves after a break. docs/server.md has what the calls mean.
//
// Errors are *Error for what the server says, with its code; *NetworkError for an answer that did not come; *AnswerError for one that makes no sense; and *NameError and errors of package
// event for what is wrong before anything is sent. Each says what was being done.
//
// # Sending again
//
// What failed in passing is sent again, with growing waits and Options.Tries times in all, where that is as good as sending it once: reading, detaching, verifying, and everything that writes into a
// log or makes one, because each such request carries an idempotency key, by which the server knows it again. A tool whose plugin is not available is not called again, because it may
// have begun. Deleting, retrying units and restarting plugins are sent again only if there was no
// connection at all; a log that is imported is sent once, as it is read once. A program that must not write twice even if it is started anew keeps the key with what it writes, and gives it itself.
//
// # Streams
//
// Stream follows a session, and Follow several on one connection; they give frames in the order in which the server sends them. They hold one frame. What a reader keeps of a stream is best kept in this order: first what the frame
// says, then its position; a stream that begins at that position later goes on behind it.
//
// # The store
//
// A Store holds the latest values of one session. They may come by several ways at once, such as a stream, reads and the answers to appends, and so in any order; what a store ends with does not depend
// on it. Clients in other languages keep the same rules, by testdata/store-vectors.json:
//
//   - A value has an epoch, a revision and a seq, and is newer by the first of them that differs; an equal one is not newer. What is not newer is dropped, and nobody is told.
//   - An epoch is "<storeId>.<boot>". Of the same store the higher boot is newer; of two stores the one that was connected to last.
//   - A whole block of a newer epoch replaces everything. In the same epoch each key that it carries is taken if it is newer; a key that it neither carries nor calls unavailable is removed, unless its
//     seq is above that of the block; and a block of a lower generation neither adds nor removes keys. A block of an older epoch, or of another time than now, says nothing.
//   - A partial block (a list, an append, chosen keys) is the same without removing. If its epoch is newer, the values that it does not carry are stale.
//   - A key that is unavailable keeps its value, marked stale, unless the value is newer than that. In a newer epoch it has none. The next value that is newer, or the same
//     one again, is fresh.
//   - A removed key leaves a mark of its revision, so that what is not newer does not bring it back.
//   - A connection to another start of the server drops values above the end of the log as it is now, since their events may be lost. Another incarnation of the session drops everything, and so does
//     a reset for that reason. Blocks do not name theirs: the server gives what is of a later incarnation higher revisions.
//   - Listeners are told once of each call, or of each batch, which keys changed. The map of all values is the same one until something changes.
package client
