// Package sqlite is the embedded store: one database in one directory, owned by one process at a time.
//
// # Commit
//
// One goroutine, the writer, owns the only connection that writes. Appends, creations, deletions and row writes of all sessions stand in one
// line; the writer takes whatever waits into one transaction and one full sync, and then answers all of it. What a
// request is refused for (a seq, a key, a life) is found before it writes, so a refusal costs the others nothing. A transaction that fails fails
// for all that were in it. Seqs and positions are given inside the transaction, so neither has gaps by failure.
//
// # What is on disk
//
// foldhost.db, in SQLite's WAL mode, holds events (their rowid is their commit position), logs and their heads, idempotency keys,
// checkpoint rows and the lists of what is still to be swept. Payload bytes are stored as they came. Each
// record carries a CRC-32C over what it means, which is compared when it is read: damage is a *eventlog.CorruptError with the place, never a wrong answer. Lists leave out a log whose
// header or head is damaged, and log that they do. foldhost.lock is held
// by the owner and names its pid; a lock dies with its process. foldhost.reserve holds nothing but room for a start on a full disk.
//
// A creation of more than some thousand events is staged: its events are committed in parts, seen by nobody, and the log appears with the last
// commit. Its events then stand in the order of that commit, which table bulks remembers. A deletion takes the log
// away at once and its content in slices, with later commits, overwritten by zeros. Rows are dropped in slices as well. None of these holds up appends.
//
// # Reading
//
// A few connections read, each call in one short read transaction of at most a page. None is held from page to page, so the log of changes (the WAL) can always be
// taken over into the database, which the writer does between commits.
//
// # Failure
//
// After a failed sync, a write that came out short, or damage met while writing, the store refuses changes with *eventlog.ReadOnlyError; reads go on. A full disk is
// *eventlog.DiskFullError and passes when there is room. A change that failed in either way, or whose process died, may be found done after a restart, whole, and never half: use an
// idempotency key to find out. Only of rows that were to be dropped may some be there and others not.
//
// # Durability
//
// Full, the default: what returned is on disk. Relaxed: what returned survives the death of the process, and the last moments may be
// lost with the power. At a start that follows an unclean end under Relaxed every log gets a new incarnation, rows are
// dropped and positions leap ahead, because something that was seen may be gone.
package sqlite
