package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// Bounds on a group, so that nobody waits for more than some tens of milliseconds of others' work.
const (
	groupRequests = 1024
	groupBytes    = 16 << 20
)

// headsMax bounds the heads that the writer remembers: 16,000 take about 4 MiB. One that is forgotten costs a look at two indexes.
const headsMax = 16_000

// writer is the goroutine that makes all changes, in groups. mu guards the line; what stands below it belongs to the goroutine.
type writer struct {
	s    *Store
	bell chan struct{}
	done chan struct{}

	mu    sync.Mutex
	line  []*request
	ended bool
	// abandoned are logs whose creation was given up.
	abandoned []int64
	// errands are what is to be done between groups, outside of any transaction.
	errands []func()

	c  *conn
	st statements
	// heads and types are what the transaction under way sees; when it fails they are forgotten.
	heads map[string]*log
	types map[string]int64
	// position and lastLog are the last that were given.
	position, lastLog int64
	now               int64
	// committed are told when the transaction is, grown is what it adds.
	committed []func()
	grown     growth

	// pages is the length of the WAL, tried what it was when it was last taken over.
	pages, tried, walPages int
	// trash are the logs that are still to be swept. swept says that one has been, and the WAL still has what it held; stuck that
	// neither can be helped before something changes.
	trash        []int64
	swept, stuck bool
	record       []byte
}

// statements of the writer.
type statements struct {
	begin, commit, rollback        *sqlite3.Stmt
	log, key, typ                  *sqlite3.Stmt
	addEvent, addType, addKey      *sqlite3.Stmt
	addLog, addHead, addBulk       *sqlite3.Stmt
	moveHead                       *sqlite3.Stmt
	dropLog, dropHead              *sqlite3.Stmt
	addTrash, dropTrash, meta      *sqlite3.Stmt
	sweepEvents, sweepKeys         *sqlite3.Stmt
	sweepRows, sweepPast           *sqlite3.Stmt
	sweepBulks, oldKeys            *sqlite3.Stmt
	eventSizes, keySizes, oldSizes *sqlite3.Stmt
	addRow, dropRow, rowSize       *sqlite3.Stmt
	addPast, dropPast, pastSizes   *sqlite3.Stmt
	lastPast, nextKey              *sqlite3.Stmt
	rowSizes, pastRowSizes         *sqlite3.Stmt
}

// oldest are the keys of a log from before a time and not among its last, of which so many may be, the oldest first. Positions alone do not tell: a request that appends nothing has that of the last
// event.
const oldest = `FROM keys WHERE log = ?1 AND time < ?2
	AND (time, position) < (SELECT time, position FROM keys WHERE log = ?1 ORDER BY time DESC, position DESC LIMIT 1 OFFSET ?3) ORDER BY time, position LIMIT ?4`

func newWriter(s *Store, c *conn, walPages int) *writer {
	return &writer{
		s: s, c: c, bell: make(chan struct{}, 1), done: make(chan struct{}),
		heads: map[string]*log{}, types: map[string]int64{}, walPages: walPages,
	}
}

// prepare makes the statements and finds out where the store stands.
func (w *writer) prepare() (err error) {
	w.c.WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		w.pages = pages
		return nil
	})
	st := &w.st
	err = w.c.prepareAll(map[**sqlite3.Stmt]string{
		&st.begin:    "BEGIN IMMEDIATE",
		&st.commit:   "COMMIT",
		&st.rollback: "ROLLBACK",

		&st.log: "SELECT " + logColumns + " FROM logs l LEFT JOIN heads h ON h.log = l.n WHERE l.id = ?",
		&st.key: "SELECT digest, first, seq, position, time, NULL FROM keys WHERE log = ? AND key = ?",
		&st.typ: "SELECT n FROM types WHERE name = ?",

		&st.addEvent: "INSERT INTO events (id, log, seq, type, time, data, extra, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		&st.addType:  "INSERT INTO types (name) VALUES (?)",
		&st.addKey:   "INSERT INTO keys (log, key, digest, first, seq, position, time, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		&st.oldKeys:  "DELETE FROM keys WHERE log = ?1 AND key IN (SELECT key " + oldest + ")",
		&st.oldSizes: "SELECT ifnull(length(answer), 0) " + oldest,
		&st.addLog:   "INSERT INTO logs (n, id, incarnation, header, first_live, sum) VALUES (?, ?, ?, ?, ?, ?)",
		&st.addHead:  "INSERT INTO heads (log, seq, position, updated, sum) VALUES (?, ?, ?, ?, ?)",
		&st.addBulk:  "INSERT INTO bulks (position, log, events) VALUES (?, ?, ?)",
		&st.moveHead: "UPDATE heads SET seq = ?2, position = ?3, updated = ?4, sum = ?5 WHERE log = ?1",

		&st.dropLog:   "DELETE FROM logs WHERE n = ?",
		&st.dropHead:  "DELETE FROM heads WHERE log = ?",
		&st.addTrash:  "INSERT INTO trash (log) VALUES (?)",
		&st.dropTrash: "DELETE FROM trash WHERE log = ?",
		&st.meta:      "UPDATE meta SET value = ?2 WHERE key = ?1",

		&st.addRow: `INSERT INTO rows (log, key, cut, seq, data, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (log, key) DO UPDATE SET cut = ?3, seq = ?4, data = ?5, sum = ?6 WHERE ?3 >= cut OR cut >= ?7`,
		&st.addPast: `INSERT INTO past (log, key, cut, seq, data, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (log, key, seq) DO UPDATE SET cut = ?3, data = ?5, sum = ?6`,
		&st.dropRow:   "DELETE FROM rows WHERE log = ? AND key = ?",
		&st.rowSize:   "SELECT length(data) FROM rows WHERE log = ? AND key = ?",
		&st.dropPast:  "DELETE FROM past WHERE log = ? AND key = ? AND seq > ? AND seq <= ?",
		&st.pastSizes: "SELECT seq, length(data) FROM past WHERE log = ? AND key = ? AND seq > ? AND seq <= ? ORDER BY seq",
		&st.lastPast:  "SELECT seq FROM past WHERE log = ? AND key = ? ORDER BY seq DESC LIMIT 1",
		&st.nextKey: `SELECT key FROM (SELECT * FROM (SELECT key FROM rows WHERE log = ?1 AND key > ?2 ORDER BY key LIMIT 1)
			UNION ALL SELECT * FROM (SELECT key FROM past WHERE log = ?1 AND key > ?2 ORDER BY key LIMIT 1)) ORDER BY key LIMIT 1`,

		&st.sweepEvents: "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE log = ? ORDER BY seq DESC LIMIT ?)",
		&st.sweepKeys:   "DELETE FROM keys WHERE log = ?1 AND key IN (SELECT key FROM keys WHERE log = ?1 ORDER BY time, position LIMIT ?2)",
		&st.sweepRows:   "DELETE FROM rows WHERE id IN (SELECT id FROM rows WHERE log = ? ORDER BY key LIMIT ?)",
		&st.sweepPast:   "DELETE FROM past WHERE id IN (SELECT id FROM past WHERE log = ? ORDER BY key, seq LIMIT ?)",
		&st.sweepBulks:  "DELETE FROM bulks WHERE log = ? AND ? > 0",
		// Sizes of what the statements beside them delete, in the order in which they do.
		&st.eventSizes:   "SELECT length(data) + ifnull(length(extra), 0) FROM events WHERE log = ? ORDER BY seq DESC LIMIT ?",
		&st.keySizes:     "SELECT ifnull(length(answer), 0) FROM keys WHERE log = ?1 ORDER BY time, position LIMIT ?2",
		&st.rowSizes:     "SELECT length(data) FROM rows WHERE log = ? ORDER BY key LIMIT ?",
		&st.pastRowSizes: "SELECT length(data) FROM past WHERE log = ? ORDER BY key, seq LIMIT ?",
	})
	if err != nil {
		return err
	}
	if w.position, err = w.c.number(lastPosition); err != nil {
		return err
	}
	if w.lastLog, err = w.c.metaNumber(metaLog); err != nil {
		return err
	}
	list, err := w.c.prepare("SELECT log FROM trash ORDER BY log")
	if err != nil {
		return err
	}
	defer list.Close()
	return each(list, func(st *sqlite3.Stmt) (bool, error) {
		w.trash = append(w.trash, st.ColumnInt64(0))
		return true, nil
	})
}

// put adds a request to the line.
func (w *writer) put(r *request) {
	w.mu.Lock()
	w.line = append(w.line, r)
	w.mu.Unlock()
	w.ring()
}

// between has the writer do something between two groups, and waits for it.
func (w *writer) between(f func() error) error {
	done := make(chan error, 1)
	w.mu.Lock()
	w.errands = append(w.errands, func() { done <- contained(f) })
	w.mu.Unlock()
	w.ring()
	return <-done
}

// betweenWithin is between for one who does not wait longer than ctx: f is not begun after that.
func (w *writer) betweenWithin(ctx context.Context, f func() error) error {
	var state atomic.Int32 // as of a request
	done := make(chan error, 1)
	w.mu.Lock()
	w.errands = append(w.errands, func() {
		if state.CompareAndSwap(waiting, taken) {
			done <- contained(f)
		}
	})
	w.mu.Unlock()
	w.ring()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if state.CompareAndSwap(waiting, left) {
			return ctx.Err()
		}
		return <-done
	}
}

// errand does what is to be done between groups, one thing at a time, and says whether there was any.
func (w *writer) errand() bool {
	w.mu.Lock()
	if len(w.errands) == 0 {
		w.mu.Unlock()
		return false
	}
	f := w.errands[0]
	w.errands = w.errands[1:]
	w.mu.Unlock()
	f()
	return true
}

func (w *writer) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// next takes the first of the line whose caller is still there.
func (w *writer) next() *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.line) > 0 {
		r := w.line[0]
		w.line[0] = nil
		w.line = w.line[1:]
		if r.take() {
			return r
		}
	}
	w.line = nil
	return nil
}

// end makes work return when the line is empty, and waits for it.
func (w *writer) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.ring()
	<-w.done
}

func (w *writer) isEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended && len(w.line) == 0
}

// work makes changes until the end.
func (w *writer) work() {
	defer close(w.done)
	for {
		busy := w.errand()
		r := w.next()
		switch {
		case r != nil:
			w.group(r)
		case busy:
		case w.isEnded():
			return
		case w.collectAbandoned() && !w.stuck && w.s.Failed() == nil:
			w.group(nil)
		case w.swept && !w.stuck && w.s.Failed() == nil:
			w.swept = !w.takeOver(sqlite3.CHECKPOINT_TRUNCATE)
			w.stuck = w.swept
		default:
			<-w.bell
		}
		w.fold()
	}
}

// group makes the change of a request and those of all that wait, or come meanwhile, in one transaction, and sweeps a little when there is something to sweep. Without a request it only
// sweeps.
func (w *writer) group(r *request) {
	// Whoever has been taken from the line is in the group, and gets its answer whatever happens.
	var group []*request
	size := 0
	if r != nil {
		group = append(group, r)
	}
	began := time.Now()
	err := w.transaction(func() error {
		for i := 0; i < len(group); i++ {
			r := group[i]
			if r.err = r.ctx.Err(); r.err == nil {
				r.err = r.apply(w)
			}
			if isDB(r.err) {
				return r.err
			}
			size += r.size
			if next := w.more(len(group), size); next != nil {
				group = append(group, next)
			}
		}
		crashpoint.Reach("group/applied")
		return w.sweep(len(group) == 0)
	})
	w.stuck = err != nil
	if err == nil {
		w.answered(group, time.Since(began))
		return
	}
	if _, full := errors.AsType[*eventlog.DiskFullError](err); full {
		// One that is large, or the sweep, must not refuse those that would fit.
		w.single(group)
		return
	}
	for _, r := range group {
		r.finish(err)
	}
}

// single makes changes one by one.
func (w *writer) single(group []*request) {
	for _, r := range group {
		began := time.Now()
		err := w.transaction(func() error {
			if r.err = r.ctx.Err(); r.err == nil {
				r.err = r.apply(w)
			}
			if isDB(r.err) {
				return r.err
			}
			return nil
		})
		if err == nil {
			w.answered([]*request{r}, time.Since(began))
		} else {
			r.finish(err)
		}
	}
}

// answered counts a transaction and tells those who were in it what came of it.
func (w *writer) answered(group []*request, took time.Duration) {
	changes := 0
	for _, r := range group {
		if r.err == nil {
			changes++
		}
	}
	w.s.groups.Add(1)
	w.s.changes.Add(int64(changes))
	if changes > 0 {
		w.s.groupSizes.Had(changes)
		w.s.groupSeconds.Took(took)
	}
	for _, r := range group {
		r.finish(r.err)
	}
}

// more gives the next request of a group, if it has room. When nobody waits it lets those run who were just answered, once: they are about to come back.
func (w *writer) more(requests, size int) *request {
	if requests >= groupRequests || size >= groupBytes {
		return nil
	}
	r := w.next()
	if r == nil {
		runtime.Gosched()
		r = w.next()
	}
	return r
}

// transaction carries out changes and commits them, or leaves everything as it was. Its error is what callers are told.
func (w *writer) transaction(f func() error) error {
	if err := w.s.Failed(); err != nil {
		return err
	}
	position, lastLog := w.position, w.lastLog
	w.now = time.Now().UnixMilli()
	w.committed, w.grown = w.committed[:0], growth{}
	w.s.disk.take()
	began := false
	err := contained(func() error {
		if err := run(w.st.begin); err != nil {
			return err
		}
		began = true
		if err := f(); err != nil {
			return err
		}
		crashpoint.Reach("group/commit")
		return run(w.st.commit)
	})
	if err == nil {
		crashpoint.Reach("group/committed")
		for _, f := range w.committed {
			f()
		}
		w.s.tally.committed(w.grown)
		return nil
	}
	w.position, w.lastLog = position, lastLog
	clear(w.heads)
	clear(w.types)
	err = w.failure(err)
	if began && !w.c.GetAutocommit() {
		if rollback := contained(func() error { return run(w.st.rollback) }); rollback != nil {
			return w.stop(rollback)
		}
	}
	return err
}

// failure says what an error of the database means for the store, and for those whose changes it undid.
func (w *writer) failure(err error) error {
	fault := w.s.disk.take()
	switch {
	case isFull(fault, err):
		return diskFull(fault, err)
	case fault != nil:
		return w.stop(fault)
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		return &BusyError{Path: w.s.path, Err: err} // it may let go
	}
	// Damage, a read that failed, or something that cannot be: a database that is wrong is not written to.
	return w.stop(err)
}

// stop makes the store refuse all further changes.
func (w *writer) stop(cause error) error {
	e := &eventlog.ReadOnlyError{Cause: cause}
	if w.s.failed.CompareAndSwap(nil, e) {
		w.s.log.Error("the store takes no changes any more", "dir", w.s.dir, "error", cause)
	}
	return w.s.Failed()
}

// close notes a clean end, takes the WAL over and closes the connection. Of a store that has failed nothing is written.
func (w *writer) close() error {
	if w.s.Failed() == nil && w.s.identity.Boot > 0 {
		err := w.settle()
		if err != nil {
			w.s.log.Warn("the store could not be closed cleanly; the next start will put it right", "dir", w.s.dir, "error", err)
		}
	}
	return w.c.close()
}

func (w *writer) settle() error {
	if err := w.c.exec("PRAGMA synchronous = FULL"); err != nil {
		return err
	}
	w.s.disk.take()
	mark := func() error { return w.c.transaction(func() error { return w.c.setMeta(metaRunning, "") }) }
	err := mark()
	if err != nil && isFull(w.s.disk.take(), err) && w.s.reserve.give() {
		err = mark()
		w.s.reserve.hold() // For the next start, before the database takes what is left.
	}
	if err != nil {
		return err
	}
	crashpoint.Reach("close")
	if _, _, err := w.c.WALCheckpoint("main", sqlite3.CHECKPOINT_TRUNCATE); err != nil {
		return doing("taking the WAL over into the database", err)
	}
	_, err = w.c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false)
	return doing("configuring the connection", err)
}

// head gives the log of an id as the transaction sees it.
func (w *writer) head(id string) (*log, error) {
	if l := w.heads[id]; l != nil {
		return l, nil
	}
	var l log
	var bad error
	found, err := first(w.st.log, func(st *sqlite3.Stmt) { l, bad = readLog(st) }, id)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, &eventlog.NotFoundError{ID: id}
	case bad != nil:
		return &l, bad
	}
	l.header = nil // the writer has no use for it
	w.remember(&l)
	return &l, nil
}

func (w *writer) remember(l *log) {
	if len(w.heads) >= headsMax {
		clear(w.heads)
	}
	w.heads[l.id] = l
}

// advance moves a head by a commit that has just been written.
func (w *writer) advance(l *log, seq int64) error {
	// Not in place: a transaction that fails forgets what it made, and nothing else may point to it.
	next := *l
	next.seq, next.position, next.updated = seq, w.position, w.now
	w.grown.events += seq - l.seq
	if err := run(w.st.moveHead, l.n, seq, w.position, w.now, headSum(l.n, seq, w.position, w.now)); err != nil {
		return err
	}
	w.remember(&next)
	return nil
}

// add writes an event. Its id is the next position.
func (w *writer) add(log int64, ev *event.Event) error {
	typ, err := w.typeNumber(ev.Type)
	if err != nil {
		return err
	}
	w.position++
	w.record = w.record[:0]
	extra := appendExtra(w.record, ev)
	if extra != nil {
		w.record = extra
	}
	st := w.st.addEvent
	binding := errors.Join(
		st.BindInt64(1, w.position), st.BindInt64(2, log), st.BindInt64(3, ev.Seq), st.BindInt64(4, typ), st.BindInt64(5, ev.Time),
		st.BindBlob(6, ev.Data), bindExtra(st, 7, extra), st.BindInt64(8, eventSum(log, ev, extra)),
	)
	if binding != nil {
		return doing(st.SQL(), binding)
	}
	return doing("writing an event", st.Exec())
}

func bindExtra(st *sqlite3.Stmt, param int, extra []byte) error {
	if extra == nil {
		return st.BindNull(param)
	}
	return st.BindBlob(param, extra)
}

// typeNumber gives the number of a type, which it gives one if it has none.
func (w *writer) typeNumber(name string) (n int64, err error) {
	if n, ok := w.types[name]; ok {
		return n, nil
	}
	found, err := first(w.st.typ, func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) }, blob(name))
	if err == nil && !found {
		if err = run(w.st.addType, blob(name)); err == nil {
			n = w.c.LastInsertRowID()
		}
	}
	if err != nil {
		return 0, err
	}
	if len(w.types) >= namesMax {
		clear(w.types)
	}
	w.types[name] = n
	return n, nil
}
