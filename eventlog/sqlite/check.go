package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Report is what Check found.
type Report struct {
	// Logs, Events and Rows were looked at.
	Logs, Events, Rows int64
	Problems           []Problem
	// More counts the problems beyond problemsMax, which are not listed.
	More int64
}

// Problem is one thing that is wrong.
type Problem struct {
	Code ProblemCode
	// ID is the log, empty where that is not known. Seq is the event, −1 where the problem is not one of an event.
	ID     string
	Seq    int64
	Detail string
}

func (p Problem) String() string {
	where := "the store"
	if p.ID != "" {
		where = fmt.Sprintf("session %q", p.ID)
	}
	if p.Seq >= 0 {
		where += fmt.Sprintf(", seq %d", p.Seq)
	}
	return fmt.Sprintf("%s: %s: %s", where, p.Code, p.Detail)
}

// ProblemCode is the kind of a problem.
type ProblemCode string

// The problems that a store can have.
const (
	// DamagedLog: what is stored of a log besides its events is missing or not as it was stored.
	DamagedLog ProblemCode = "damaged-log"
	// MissingEvent: no event stands at a seq below the log's length.
	MissingEvent ProblemCode = "missing-event"
	// DamagedEvent: an event is not as it was stored, or could not have been accepted.
	DamagedEvent ProblemCode = "damaged-event"
	// EventBeyond: an event stands beyond the log's end.
	EventBeyond ProblemCode = "event-beyond-end"
	// WrongIndex: reads by type would not find what is there.
	WrongIndex ProblemCode = "wrong-index"
	// DamagedRow: a checkpoint row is not as it was stored or stands beyond the log. It is not given to anybody and will be folded again.
	DamagedRow ProblemCode = "damaged-row"
	// Orphan: something belongs to a log that is not there.
	Orphan ProblemCode = "orphan"
	// DamagedPages: the database engine finds its own structure broken.
	DamagedPages ProblemCode = "damaged-pages"
)

// problemsMax bounds a report: whoever has a thousand problems has one, and it is not in this list.
const problemsMax = 1000

// CheckOptions say how to check.
type CheckOptions struct {
	// Pages also has the engine check the structure of the whole database. That is one long read: what is written meanwhile stays in the WAL until it is over.
	Pages bool
	// Progress is told after each log how many of about how many have been looked at.
	Progress func(done, total int64)
}

// Check looks at everything in a store that may be in use: that heads and headers are whole, seqs dense, events as they were stored and readable, indexes and rows in order. It
// reads in pages and repairs nothing. Problems are in the report; the error is one of looking: ctx's, ErrClosed.
func (s *Store) Check(ctx context.Context, o CheckOptions) (Report, error) {
	if err := s.enter(ctx); err != nil {
		return Report{}, err
	}
	defer s.leave()
	c := checking{s: s, ctx: ctx, o: o}
	err := c.run()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return c.report, err
}

// checking is one check under way.
type checking struct {
	s      *Store
	ctx    context.Context
	o      CheckOptions
	report Report
	buf    []byte
}

func (c *checking) add(code ProblemCode, id string, seq int64, detail string, args ...any) {
	if len(c.report.Problems) == problemsMax {
		c.report.More++
		return
	}
	c.report.Problems = append(c.report.Problems, Problem{code, id, seq, fmt.Sprintf(detail, args...)})
}

// read runs one step over one state of the store. Damage below the level of records ends the step and becomes a problem.
func (c *checking) read(id string, f func(*reader) error) error {
	err := c.s.readers.read(c.ctx, f)
	if bad, ok := errors.AsType[*DamagedError](err); ok {
		c.add(DamagedPages, id, -1, "%v", bad.Err)
		return nil
	}
	return err
}

func (c *checking) run() error {
	if c.o.Pages {
		if err := c.pages(); err != nil {
			return err
		}
	}
	var total int64
	if err := c.read("", func(r *reader) (err error) {
		total, err = r.c.number("SELECT count(*) FROM logs")
		return err
	}); err != nil {
		return err
	}
	for last := int64(0); ; {
		n, found := last, false
		if err := c.read("", func(r *reader) (err error) {
			n, err = r.c.next("SELECT min(n) FROM logs WHERE n > ?", last)
			found = n > last
			return err
		}); err != nil {
			return err
		}
		if !found {
			break
		}
		last = n
		if err := c.log(n); err != nil {
			return err
		}
		c.report.Logs++
		if c.o.Progress != nil {
			c.o.Progress(c.report.Logs, max(total, c.report.Logs))
		}
	}
	return c.orphans()
}

// next gives the next number after one in a column, 0 when there is none.
func (c *conn) next(sql string, last int64) (n int64, err error) {
	st, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	_, err = first(st, func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) }, last)
	return n, err
}

// pages has the engine check itself.
func (c *checking) pages() error {
	return c.read("", func(r *reader) error {
		st, err := r.c.prepare("PRAGMA integrity_check(100)")
		if err != nil {
			return err
		}
		defer st.Close()
		return each(st, func(st *sqlite3.Stmt) (bool, error) {
			if text := st.ColumnText(0); text != "ok" {
				c.add(DamagedPages, "", -1, "%s", text)
			}
			return true, nil
		})
	})
}

// log checks one log, a page of events at a time. One that is deleted meanwhile is no problem.
func (c *checking) log(n int64) error {
	var l log
	gone := false
	types := map[int64]int64{}
	err := c.read("", func(r *reader) error {
		st, err := r.c.prepare("SELECT " + logColumns + " FROM logs l LEFT JOIN heads h ON h.log = l.n WHERE l.n = ?")
		if err != nil {
			return err
		}
		defer st.Close()
		var bad error
		found, err := first(st, func(st *sqlite3.Stmt) { l, bad = readLog(st) }, n)
		if err != nil || !found {
			gone = !found
			return err
		}
		if bad == nil {
			_, bad = l.info()
		}
		if bad != nil {
			gone = true
			c.add(DamagedLog, l.id, -1, "%v", bad)
			return nil
		}
		if beyond, err := r.c.next("SELECT count(*) FROM (SELECT 1 FROM events WHERE log = ?1 AND seq >= (SELECT seq FROM heads WHERE log = ?1))", n); err != nil {
			return err
		} else if beyond > 0 {
			c.add(EventBeyond, l.id, l.seq, "%d events stand beyond the end", beyond)
		}
		return c.rows(r, &l)
	})
	if err != nil || gone {
		return err
	}
	for from := int64(0); from < l.seq; {
		next := l.seq
		err := c.read(l.id, func(r *reader) (err error) {
			if still, err := r.find(l.life()); err != nil || still.n != n {
				gone = true
				return nil
			}
			next, err = c.events(r, &l, from, types)
			return err
		})
		if err != nil || gone {
			return err
		}
		if next <= from {
			next = l.seq // the pages were damaged, which has been noted
		}
		from = next
	}
	return c.read(l.id, func(r *reader) error { return c.index(r, &l, types) })
}

// events checks a page of events and counts their types.
func (c *checking) events(r *reader, l *log, from int64, types map[int64]int64) (next int64, err error) {
	next = from
	page := 0
	err = each(r.events, func(st *sqlite3.Stmt) (bool, error) {
		seq := st.ColumnInt64(1)
		if seq > next {
			c.add(MissingEvent, l.id, next, "%d events are missing", seq-next)
		}
		next = seq + 1
		c.report.Events++
		ev, err := r.readEvent(st, l)
		if bad, ok := errors.AsType[*eventlog.CorruptError](err); ok {
			c.add(DamagedEvent, l.id, seq, "%s", bad.Reason)
		} else if err != nil {
			return false, err
		} else if reason := c.envelope(&ev); reason != "" {
			c.add(DamagedEvent, l.id, seq, "%s", reason)
		}
		types[st.ColumnInt64(2)]++
		page++
		return page < paging.Events, nil
	}, l.n, from, l.seq)
	if err == nil && page < paging.Events && next < l.seq {
		c.add(MissingEvent, l.id, next, "%d events are missing", l.seq-next)
		next = l.seq
	}
	return next, err
}

// envelope says why an event could not be read from a log, if it could not.
func (c *checking) envelope(ev *event.Event) string {
	c.buf = ev.AppendJSON(c.buf[:0])
	d, err := event.DecodeDraft(c.buf, eventMax)
	switch {
	case err != nil:
		return err.Error()
	case d.OpFault != "":
		return d.OpFault
	case d.SourcesFault != "":
		return d.SourcesFault
	}
	return ""
}

// index compares how often a type was met with how often its index has it. The log may have grown meanwhile, so only what the log was is counted.
func (c *checking) index(r *reader, l *log, types map[int64]int64) error {
	st, err := r.c.prepare("SELECT count(*) FROM events INDEXED BY events_by_type WHERE log = ? AND type = ? AND seq < ?")
	if err != nil {
		return err
	}
	defer st.Close()
	for n, want := range types {
		var have int64
		if _, err := first(st, func(st *sqlite3.Stmt) { have = st.ColumnInt64(0) }, l.n, n, l.seq); err != nil {
			return err
		}
		if still, err := r.find(l.life()); err != nil || still.n != l.n {
			return nil // deleted meanwhile
		}
		if have != want {
			c.add(WrongIndex, l.id, -1, "the index has %d events of type number %d, the log %d", have, n, want)
		}
	}
	return nil
}

// rows checks the checkpoint rows of a log.
func (c *checking) rows(r *reader, l *log) error {
	for _, table := range []string{"rows", "past"} {
		st, err := r.c.prepare("SELECT key, cut, seq, data, sum FROM " + table + " WHERE log = ?")
		if err != nil {
			return err
		}
		err = each(st, func(st *sqlite3.Stmt) (bool, error) {
			c.report.Rows++
			row, whole := readRow(st, l.n)
			switch {
			case !whole:
				c.add(DamagedRow, l.id, -1, "the row %q at seq %d in %s is not as it was stored", row.Key, row.Seq, table)
			case row.Cut >= l.seq:
				c.add(DamagedRow, l.id, -1, "the row %q in %s is of a cut at %d and the log ends at %d", row.Key, table, row.Cut, l.seq-1)
			}
			return true, nil
		}, l.n)
		_ = st.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// orphans looks for what belongs to no log. What is being made or swept belongs to the trash.
func (c *checking) orphans() error {
	for _, table := range []string{"events", "heads", "keys", "rows", "past", "bulks"} {
		for last := int64(0); ; {
			n := last
			err := c.read("", func(r *reader) (err error) {
				if n, err = r.c.next("SELECT min(log) FROM "+table+" WHERE log > ?", last); err != nil || n <= last {
					return err
				}
				known, err := r.c.next("SELECT count(*) FROM (SELECT n FROM logs WHERE n = ?1 UNION ALL SELECT log FROM trash WHERE log = ?1)", n)
				if err == nil && known == 0 {
					c.add(Orphan, "", -1, "table %s has records of log number %d, which is not there", table, n)
				}
				return err
			})
			if err != nil {
				return err
			}
			if n <= last {
				break
			}
			last = n
		}
	}
	return nil
}
