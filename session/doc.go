// Package session owns sessions: acceptance of events, sequence numbers, the one surface manager of each session, derived
// messages, seeds, forks, closers, and the set of live sessions with its single event subscription.
//
// It must never hold a whole log in memory, never acknowledge what the store has not committed, and never add an event that
// nobody asked for (session/end-seed after a seed is the one exception).
//
// # Handles, slots, cores
//
// A [Session] is a light handle: the set, an id, an incarnation, a header. What is heavy (surface, drive, cached messages)
// is a core, and there is a core only while the session is live. The set has at most one slot for each id; a slot is opening, live
// or ended. A handle that is touched while its session is cold opens it again, so going cold cannot be seen. A handle whose
// incarnation is not the one in the store gets [eventlog.NotFoundError], even when the id was created again.
//
// # What guards what
//
//   - Set.mu guards the map of slots. Nothing is called while it is held.
//   - slot.users counts the touches in progress and the holds, together with a bit that says the slot has ended. A touch begins by adding itself, which
//     fails once the bit is set; whoever meets an ended slot waits for it to leave the map and looks again. Idle eviction sets the bit only when both
//     counts are zero, in one atomic step, so it can never meet a touch or end what is held.
//   - core.turn is a queue of one place, a channel and not a mutex, so that waiting in it ends with the waiter's context. Whoever has the turn may
//     plan, call hooks, commit, publish, delete or detach. It is held across I/O by design; no reader ever waits for it.
//   - core.mu guards the surface, the seq and the message cache. It is held for memory work only, never across I/O, hooks or observers.
//
// Locks are taken in the order turn, Set.mu, and turn, core.mu; Set.mu and core.mu are never held together.
//
// # Going cold
//
// A session goes cold when nobody has touched it for IdleAfter, or when there are more than MaxLive and it was not touched for longest. The janitor
// does both, a few sessions at a time; what is touched or held stays. With a store that keeps rows, the surface is written then, and every 1,000
// changes beside the appends, so that opening reads one event and what came after it. A row is never trusted: its checksum, the event that it
// stands on and the rules of surfaces must hold, else the surface is folded from the log.
//
// # Interleavings
//
//   - Append against append: the turn makes them serial. Those that come while another has the turn stand in line (core.line), and whoever gets the turn next commits
//     what has come together there as one commit of the store, each accepted on top of those before it, published and answered by itself (together.go). One that waits
//     in line leaves with its context's error and has changed nothing; one that has been taken from it gets the store's answer. When the store refuses the commit, all of
//     them are tried one by one, also those that had been refused, since what they were refused for may not have come to be.
//   - Append against a replacement, a hook, or a batch that asks to be alone: these look at the nodes, the session or the log, so each has a commit of its own and finds
//     everything before it there.
//   - Append against eviction: an append is a touch, so eviction does not start. An eviction that has started is waited for, then the session opens
//     again.
//   - Append against Detach: Detach takes its turn. Appends queued behind it find that the core has ended and go on with the next one.
//   - Append against Delete: Delete takes its turn. Appends queued behind it get [eventlog.NotFoundError].
//   - Create against Delete or Open of the same id: Create has its name among the creations before it asks the store. If an opening began meanwhile, or a deletion
//     began or ended, the core it has built is thrown away and the session is opened from the store like any other: it may have gone cold again with more events.
//   - Opening against a context that ends: opening runs on a goroutine of the set. It is called off when the last waiter has left, and a later touch
//     starts another.
//   - A context that ends during a commit: the store's answer decides. Committed is committed, published and returned without error.
//   - An error whose outcome is not certain (anything but a refusal that says nothing was written), or somebody else's commit: before the turn is given
//     back, the head is read again from the store and what is new there is applied and published, in order and once. If that fails too, the core ends,
//     and the next touch opens from what the store holds. An append that failed this way may be in the log: that is what idempotency keys are for.
//   - A hook, an observer or a drive that appends to the session it is called for: told by its context, refused with [ErrReentrant].
//     Using a context of another origin instead would wait for itself; do not.
package session
