package sqlite

import (
	"context"
	"errors"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
)

// pool lends the connections that read. A slot without a reader opens one when it is taken.
type pool struct {
	s     *Store
	slots chan *reader
}

// newPool opens the first reader, so that a store that opens can be read.
func newPool(s *Store, n int) (*pool, error) {
	p := &pool{s: s, slots: make(chan *reader, n)}
	r, err := p.open()
	if err != nil {
		return nil, err
	}
	p.slots <- r
	for range n - 1 {
		p.slots <- nil
	}
	return p, nil
}

func (p *pool) open() (*reader, error) {
	c, err := openConn(p.s.path, p.s.disk,
		"query_only = ON",
		// 4 MiB of pages: a page of the largest events, or the indexes of a page of small ones.
		"cache_size = -4096",
	)
	if err != nil {
		return nil, err
	}
	r := &reader{c: c, names: map[int64]string{}}
	if err := r.prepare(); err != nil {
		_ = c.close()
		return nil, err
	}
	return r, nil
}

// read runs f in one read transaction, with whatever contexts can interrupt. f must not keep the reader.
func (p *pool) read(ctx context.Context, f func(*reader) error) error {
	var r *reader
	select {
	case r = <-p.slots:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := contained(func() error {
		if r == nil {
			opened, err := p.open()
			if err != nil {
				return err
			}
			r = opened
		}
		return r.transaction(ctx, f)
	})
	switch {
	case errors.Is(err, errPanic):
		// What state it is in nobody knows; its memory is given up.
		r = nil
	case r != nil && !r.c.GetAutocommit():
		// Its transaction did not end: no other could begin, and it would see the same state for ever.
		_ = r.c.close()
		r = nil
	case r != nil && r.large > largeMost:
		_ = r.c.close() // It has only read.
		r = nil
	}
	p.slots <- r
	return p.s.readError(ctx, err)
}

// close closes the readers, all of which must be in the pool.
func (p *pool) close() error {
	var errs []error
	for range cap(p.slots) {
		if r := <-p.slots; r != nil {
			errs = append(errs, r.c.close())
		}
	}
	return errors.Join(errs...)
}

// reader is a connection that reads, with its statements.
type reader struct {
	c *conn
	// names are the types that were met, by number. A type never changes.
	names map[int64]string
	// large is how many bytes of large values it has read.
	large int

	begin, end                      *sqlite3.Stmt
	log, list, name, number, key    *sqlite3.Stmt
	events, seqs, event, tail, bulk *sqlite3.Stmt
	last, rows, past, staged, place *sqlite3.Stmt
}

// What the memory of a connection has grown to it keeps, and a value is held there whole. Pages of the cache come to lie in what the last large value took, so that each of some dozen needs new
// memory: after events of 8 MiB a reader kept 80 MiB, and after one of 200 it would keep 400. So one that has read 32 MiB in values of more than 1 MiB is closed, and its slot opens another for who comes next, which takes
// about a millisecond.
const (
	largeValue = 1 << 20
	largeMost  = 32 << 20
)

// had counts a value that was read.
func (r *reader) had(bytes int) {
	if bytes > largeValue {
		r.large += bytes
	}
}

// namesMax bounds the types that a connection remembers; real logs have some dozens.
const namesMax = 4096

const (
	logColumns   = `l.n, l.id, l.incarnation, l.header, l.first_live, l.sum, h.seq, h.position, h.updated, h.sum`
	eventColumns = `e.id, e.seq, e.type, e.time, e.data, e.extra, e.sum`
)

func (r *reader) prepare() error {
	return r.c.prepareAll(map[**sqlite3.Stmt]string{
		&r.begin:  "BEGIN",
		&r.end:    "ROLLBACK",
		&r.log:    "SELECT " + logColumns + " FROM logs l LEFT JOIN heads h ON h.log = l.n WHERE l.id = ?",
		&r.list:   "SELECT " + logColumns + " FROM heads h JOIN logs l ON l.n = h.log WHERE h.position < ? ORDER BY h.position DESC LIMIT ?",
		&r.name:   "SELECT name FROM types WHERE n = ?",
		&r.number: "SELECT n FROM types WHERE name = ?",
		&r.events: "SELECT " + eventColumns + " FROM events e WHERE e.log = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.seq",
		&r.seqs:   "SELECT id, seq FROM events WHERE log = ? AND type = ? AND seq >= ? AND seq < ? ORDER BY seq LIMIT ?",
		&r.event:  "SELECT " + eventColumns + " FROM events e WHERE e.id = ?",
		&r.tail: "SELECT " + eventColumns + `, e.log, l.id, l.incarnation, ifnull(b.events, 0) FROM events e
			LEFT JOIN logs l ON l.n = e.log LEFT JOIN bulks b ON b.log = e.log WHERE e.id > ? AND e.id <= ? ORDER BY e.id`,
		&r.bulk: `SELECT b.position, b.log, b.events, l.id, l.incarnation FROM bulks b
			JOIN logs l ON l.n = b.log WHERE b.position > ? ORDER BY b.position LIMIT 1`,
		&r.staged: "SELECT position, events FROM bulks WHERE log = ?",
		&r.place:  "SELECT id FROM events WHERE log = ? AND seq = ?",
		&r.last:   lastPosition,
		// A row of a cut beyond the log is not one of this log.
		&r.rows: "SELECT key, cut, seq, data, sum FROM rows WHERE log = ? AND cut < ?",
		&r.past: "SELECT key, cut, seq, data, sum FROM past WHERE log = ? AND key = ? AND seq <= ? AND cut < ? ORDER BY seq DESC",
		&r.key:  "SELECT digest, first, seq, position, time, answer FROM keys WHERE log = ? AND key = ?",
	})
}

// transaction runs f over one state of the database.
func (r *reader) transaction(ctx context.Context, f func(*reader) error) error {
	// BEGIN and ROLLBACK take no time, and are not to be interrupted: a statement that is may be done all the same, and the transaction would be there without an end.
	if err := run(r.begin); err != nil {
		return err
	}
	r.c.SetInterrupt(ctx)
	defer r.c.SetInterrupt(context.Background())
	err := f(r)
	r.c.SetInterrupt(context.Background())
	if ending := run(r.end); err == nil {
		err = ending
	}
	return err
}

// find gives the log of a life.
func (r *reader) find(life eventlog.Life) (log, error) {
	var l log
	var bad error
	found, err := first(r.log, func(st *sqlite3.Stmt) { l, bad = readLog(st) }, life.ID)
	switch {
	case err != nil:
		return log{}, err
	case !found:
		return log{}, &eventlog.NotFoundError{ID: life.ID}
	case bad != nil:
		return l, bad
	}
	return l, l.is(life)
}
