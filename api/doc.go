// Package api serves the sessions of a host over HTTP: JSON, and server-sent events for following a session.
//
// It carries and holds no domain knowledge: what an event may look like, what a log is and what values are is decided below. It owns the
// shapes on the wire, the codes of problems, and the order of frames on a stream. It never re-encodes an event or a value.
//
// openapi.json describes all of it. The tests hold every exchange of theirs against it, both ways: a field, a parameter, a status that is not in it fails them, and so does one in it
// that they have not seen.
//
// # State
//
// A request has its goroutine and nothing else. What they share is the hub: who follows which session, of each key of a followed session the latest change, and the end of its log.
// hub.go says what guards it. While nobody follows anything the registry is not listened to.
//
// # Access
//
// A request is admitted before anything of it is read: its Host, its Origin, its token, and the scope that the route asks for. What decides is made with the API and not changed.
//
// # Streams
//
// A notification is only a doorbell: a bell with one place. Who hears it pulls: events from the log, from where it stands, and values from the hub, the latest of each
// key. So a stream that is slow holds a small page of events and one value of each key, whatever happens meanwhile, and delays nobody; an event that is large it shares with those who are sending it too. Who takes nothing
// for WriteTimeout is given up.
//
// Of the log of a session that streams follow the hub has the end, as it was published, each event encoded once, as is each change. A stream of one session that has had its baseline and
// keeps up takes events from there and sends the same bytes as the others; it reads the log where that does not reach: when it is further back, or a value is further on. A stream that
// waits holds no buffer and no deep stack.
//
// The order on a stream is: session/subscribed; session/reset when the log does not have the position that was asked for; the events after the position up to a cut C;
// session/baseline, the block of C; then events, each before the values that it caused. So it is for each session of a stream of many. How it comes about, step by step:
//
//  1. The stream follows: from here on commits and changes ring.
//  2. It keeps the session live, so that everything that happens to its values is told; a session that is not live has nobody who would.
//  3. It asks the store for the length of the log, and says so.
//  4. It takes a snapshot, which fixes C, and again if C is below that length.
//  5. It reads the log, sends the baseline before the first event beyond C, and then goes round: take changes, read the log to its end, send the events, send the changes.
//
// A stream of many sessions does each step for all of them before the next: their followers share one bell, and a round is one for all, with one flush. What it has on top is
// the row. An id is a commit position and has to say of every session where it is, so events go out by their commit positions, whichever session they are of. Before a round reads
// any log it asks the store for the last position given, and sends nothing beyond. It holds a page of each log, a part of a page of the store.
//
// Once all of its sessions are in line and have had their baselines it reads no logs either. What was published has no position and does not say what was committed before it, so
// the hub reads what was committed to the store, once for all streams, and gives each followed session its events with their positions (tail.go). Up to where that has come is what the store would have
// said. What is much at once, and what cannot be read since something else is damaged, the hub leaves out, and streams read their logs over it.
//
// Where sessions begin at different places, as those of POST with positions of their own, or those that begin now beside one that begins earlier, there are positions that are behind the
// beginning of one and before that of another: who went on from there would get what was not asked for. What is sent up to the last of the beginnings has no id. By the incarnation and the
// seq of each session one can go on at any time.
//
// # Interleavings
//
//   - A commit before 3, published after 4: the snapshot has a lower C than the log has events. The stream waits for the bell that follows every publication, and
//     cuts again. So no position that the log has is taken for one beyond its end, and lastSeq is never above C.
//   - A commit between 4 and the reading up to C: the log is read up to C and not further. The event is after C and comes in a round; its bell
//     rang after 1, and the first round does not wait for one.
//   - A change between 1 and 4: it waits in the hub although the block has it already. What was shown of a key decides: a change of the same revision and no higher seq, or
//     of a lower revision, is no news.
//   - A change of seq N that is taken while the stream stands before N: changes are taken before the log is read, and N was committed before
//     anything was folded from it, so the reading finds N. Hence no value goes out before its event.
//   - The same where the end of the log is at hand: what is published may end before N, since values are told on another way. Then the log is read, up to N at least. When N is published
//     the stream has it.
//   - Committed and not published while the end of the log is at hand: the bell rings once it is. Where that never happens, because a session went cold before it, the stream hears that what
//     it kept is lost, and reads the log.
//   - Events that come faster than the reader takes them: a reading ends where the log ended at its first page, and the changes that were taken before it follow. Hence
//     values are never kept back for ever, and of a value that changed ten times meanwhile only the last goes out.
//   - Followed while it goes cold: it does not, since it is kept. By a detach, or by a drive that panicked, it does; the stream hears that what it kept is lost,
//     keeps it again, which opens it, and compares a new snapshot with what was shown. Where nothing differs nothing is sent.
//   - Followed while it is deleted: the same signal, and keeping it says that there is no such life any more. Reads of the log say so too. Either ends the stream
//     with session/deleted. A successor of the same id is another life, and what is told of one is not shown on the stream of the other.
//   - In a row, a commit to a with a lower position than one to b, that is published later: the bell of b rings, and both are sent in their order, since the logs are read to the last
//     position given, published or not. The values of a follow when they are told.
//   - In a row, a commit after the last position was asked for and before its log is read: the page has it, and it is left for the next round, or else one to another log that was
//     read already, with a position between, would come after it. Its bell rings after that, so there is a next round.
//   - In a row, a value is taken whose event is not published yet: what the hub has read may end before that event, which is committed. So the hub reads once more, which finds it.
//   - In a row, the logs were read further than the hub has read: what it has then is known already, and the position of the stream does not go back.
//   - In a row, one of the sessions is deleted: whatever is done with it next, reading, cutting or keeping it, says so. It is told by session/deleted and dropped; the events of the others stand
//     where they stood. What was deleted before the stream looked at it is told by session/unknown. With the last one the stream ends.
//   - In a row, one of the sessions cannot be read since its log is damaged: session/reset says so, and it is dropped as one that is deleted is. It is not said to be deleted or unknown, since
//     whoever keeps a copy would give that up. The last one that is left ends the stream with the error.
//   - Gone on with by an id, one of the sessions is another life by now: what was committed of that behind the id is sent. Whether that is all of it the incarnation and the seqs say; a
//     position of its own is answered by session/reset, as on a stream of one.
//   - Gone on with by an id beside positions of their own, which the request has from its beginning: of each session what is behind both is sent, and what session/reset has said is not said
//     again, since it was said before the first id.
//   - A unit is registered or released: a new key is told to nobody by itself, so the feed's word about registrations makes every stream compare a snapshot.
//   - The listener of the registry is taken away and another added: what the first still says comes with its number, and is not heard.
//   - A bell that rings for nothing, as for a heartbeat: a round in which nothing was published, changed or lost since the one before reads no log. What that one has not read was not published when it
//     began, and is counted when it is.
//   - Stop: every bell rings, and a stream looks whether the server stops before it waits; one that begins to follow meanwhile looks after that. Streams and reads that wait end, with whole frames. Appends that wait for their turn are finished.
//
// # Idempotency
//
// It needs no state here: a key goes into the store with what it made and commits with it. A twin in flight waits for its turn like any other append and finds the key.
// What a request makes elsewhere than in the session it names is found by its id: that of a child or of a new session comes from the key when none is given,
// and the session that was made keeps the key too. So a twin that comes second finds that the id is taken, and by whom. A fork claims the key in its source first: whatever
// happens between the claim and the child, the same request can be made again and no other has the key. The call of a tool is one whose answer the log does not tell: it is kept with
// the key, and twins wait in the host, so that a tool is called once for all of them.
package api
