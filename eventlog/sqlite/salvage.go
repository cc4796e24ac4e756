package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// SalvagedLog is what is whole of one log.
type SalvagedLog struct {
	// Header is the log's. HeaderLost says that it was damaged: it may have been another one, and has the id "salvaged-N" where nothing of it is left.
	Header     event.Header
	HeaderLost bool
	// Events are those from seq 0 on, up to the first that is missing or damaged. The error is one of reading: ctx's.
	Events iter.Seq2[event.Event, error]
}

// SalvageReport says what Salvage met.
type SalvageReport struct {
	// Whole logs were given to their end, Cut ones up to the place that a problem names. Events is how many were given.
	Whole, Cut, Events int64
	Problems           []Problem
	// More counts the problems beyond problemsMax, which are not listed.
	More int64
}

// Salvage reads what is whole of the store in a directory, log by log, in the order in which they were made, and changes nothing. It is for stores that Check finds damaged and for those
// that Open refuses; nobody may have it open. save is called for each log and must read its events; its error ends the salvage and is
// returned. Checkpoint rows and idempotency keys are not salvaged.
//
// A report without problems is one of a store that is sound as a whole: where all logs are, the engine looks at the rest of the file too.
//
// Errors: *LockedError, *NotStoreError, *NewerError, *DirError, *DamagedError when not even the beginning can be read, so that nothing was saved, ctx's.
func Salvage(ctx context.Context, dir string, save func(SalvagedLog) error) (SalvageReport, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return SalvageReport{}, fmt.Errorf("finding the data directory: %w", err)
	}
	path := filepath.Join(dir, dbName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return SalvageReport{}, &NotStoreError{Path: path, Reason: "it is not there"}
	}
	l, err := acquire(dir)
	if err != nil {
		return SalvageReport{}, err
	}
	defer l.release()
	d := newDisk(Options{}.withDefaults().base)
	defer d.close()
	s := salvaging{ctx: ctx, save: save, path: path}
	if err := contained(func() error { return s.open(d) }); err != nil {
		if isDB(err) {
			err = &DamagedError{Path: path, Reason: "not even its beginning can be read", Remedy: "nothing was salvaged; restore a backup", Err: err}
		}
		return SalvageReport{}, err
	}
	defer s.r.c.close()
	err = s.run()
	return s.report, err
}

// salvaging is one salvage under way.
type salvaging struct {
	ctx    context.Context
	path   string
	save   func(SalvagedLog) error
	r      *reader
	report SalvageReport
	// scan reads the events of a log without the index, for one that is damaged.
	scan, row, head, known *sqlite3.Stmt
}

func (s *salvaging) open(d *disk) error {
	// With writable_schema, which writes nothing here, the engine also opens a file that is shorter than its header says.
	c, err := openConn(s.path, d, "writable_schema = ON", "query_only = ON", "cache_size = -16384")
	if err != nil {
		return err
	}
	s.r = &reader{c: c, names: map[int64]string{}}
	err = func() error {
		if version, err := c.number("PRAGMA user_version"); err != nil {
			return err
		} else if know := int64(len(migrations)); version > know {
			return &NewerError{Path: s.path, Have: version, Know: know}
		}
		if err := s.r.prepare(); err != nil {
			return err
		}
		return c.prepareAll(map[**sqlite3.Stmt]string{
			&s.row:  "SELECT id, incarnation, header, first_live, sum FROM logs WHERE n = ?",
			&s.head: "SELECT seq, position, updated, sum FROM heads WHERE log = ?",
			// A log's events have rising ids.
			&s.scan:  "SELECT " + eventColumns + " FROM events e NOT INDEXED WHERE e.log = ? AND e.seq >= ? AND e.seq < ? ORDER BY e.id",
			&s.known: "SELECT 1 FROM trash WHERE log = ?",
		})
	}()
	if err != nil {
		_ = c.close()
	}
	return err
}

func (s *salvaging) add(code ProblemCode, id string, seq int64, detail string, args ...any) {
	if len(s.report.Problems) == problemsMax {
		s.report.More++
		return
	}
	s.report.Problems = append(s.report.Problems, Problem{code, id, seq, fmt.Sprintf(detail, args...)})
}

// try runs a read, and says whether it went well. What the engine says becomes a problem.
func (s *salvaging) try(id string, f func() error) bool {
	err := contained(f)
	if err != nil && s.ctx.Err() == nil {
		s.add(DamagedPages, id, -1, "%v", err)
	}
	return err == nil
}

func (s *salvaging) run() error {
	s.r.c.SetInterrupt(s.ctx)
	defer s.r.c.SetInterrupt(context.Background())
	// The highest number that a log has, by whatever can still be read.
	last := int64(0)
	for _, sql := range []string{
		"SELECT value FROM meta WHERE key = 'log'", "SELECT max(n) FROM logs", "SELECT max(log) FROM heads", "SELECT max(log) FROM events",
	} {
		s.try("", func() error {
			n, err := s.r.c.number(sql)
			last = max(last, n)
			return err
		})
	}
	for n := int64(1); n <= last; n++ {
		if err := s.log(n); err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
	}
	if len(s.report.Problems) == 0 {
		s.beside()
	}
	return s.ctx.Err()
}

// beside looks at what is not the logs': whoever salvages a store that cannot be opened is to hear what is wrong with it, also where every log is whole.
func (s *salvaging) beside() {
	err := contained(func() error {
		f, err := os.Open(s.path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := inspectHeader(s.path, f); err != nil {
			return err
		}
		return s.r.c.sound(s.path)
	})
	if err == nil || s.ctx.Err() != nil {
		return
	}
	reason := err.Error()
	if e, ok := errors.AsType[*DamagedError](err); ok {
		reason = e.Reason
	}
	if e, ok := errors.AsType[*NotStoreError](err); ok {
		reason = e.Reason
	}
	s.add(DamagedPages, "", -1, "every log is whole, and the store is damaged beside them: %s", reason)
}

// log salvages one log, if there is anything of it.
func (s *salvaging) log(n int64) error {
	trash := false
	s.try("", func() (err error) {
		trash, err = first(s.known, func(*sqlite3.Stmt) {}, n)
		return err
	})
	if trash {
		return nil
	}
	l := log{n: n, seq: -1}
	sum := int64(0)
	there, sound := false, false
	s.try("", func() (err error) {
		there, err = first(s.row, func(st *sqlite3.Stmt) {
			l.id, l.incarnation, l.header = st.ColumnText(0), st.ColumnText(1), st.ColumnBlob(2, []byte{})
			l.firstLive, sum = st.ColumnInt64(3), st.ColumnInt64(4)
		}, n)
		return err
	})
	sound = there && sum == logSum(n, l.id, l.incarnation, l.header, l.firstLive)
	if l.id == "" {
		l.id = fmt.Sprint("salvaged-", n)
	}
	headThere := false
	s.try(l.id, func() (err error) {
		headThere, err = first(s.head, func(st *sqlite3.Stmt) {
			if seq := st.ColumnInt64(0); st.ColumnInt64(3) == headSum(n, seq, st.ColumnInt64(1), st.ColumnInt64(2)) {
				l.seq = seq
			}
		}, n)
		return err
	})
	if !there && !headThere {
		some := false
		if s.try(l.id, func() (err error) {
			some, err = first(s.r.events, func(*sqlite3.Stmt) {}, n, 0, int64(event.MaxInteger))
			return err
		}) && !some {
			return nil // a number that nothing has any more
		}
	}
	out := SalvagedLog{HeaderLost: !sound}
	var err error
	if out.Header, err = event.DecodeHeader(l.header); err != nil {
		out.Header, out.HeaderLost = event.Header{ID: l.id}, true
	}
	if out.HeaderLost {
		s.add(DamagedLog, l.id, -1, "its header is not as it was stored")
	}
	var whole bool
	out.Events = func(yield func(event.Event, error) bool) { whole = s.events(&l, yield) }
	if err := s.save(out); err != nil {
		return err
	}
	if whole {
		s.report.Whole++
	} else {
		s.report.Cut++
	}
	return nil
}

// events gives the events of a log as far as they are whole, and says whether that was to its end.
func (s *salvaging) events(l *log, yield func(event.Event, error) bool) (whole bool) {
	next, end := int64(0), l.seq
	if end < 0 {
		end = event.MaxInteger
		s.add(DamagedLog, l.id, -1, "its length is not known")
	}
	st := s.r.events
	for next < end {
		if err := s.ctx.Err(); err != nil {
			yield(event.Event{}, err)
			return false
		}
		page, reason := []event.Event{}, ""
		ok := s.try(l.id, func() error {
			return each(st, func(st *sqlite3.Stmt) (bool, error) {
				want := next + int64(len(page))
				ev, err := s.r.readEvent(st, l)
				if bad, ok := errors.AsType[*eventlog.CorruptError](err); ok {
					reason = bad.Reason
					return false, nil
				}
				if err != nil || ev.Seq != want {
					return false, err
				}
				page = append(page, ev)
				return len(page) < paging.Events, nil
			}, l.n, next, end)
		})
		for _, ev := range page {
			if !yield(ev, nil) {
				return false
			}
			next++
			s.report.Events++
		}
		switch {
		case !ok && st != s.scan:
			st = s.scan // once more, by the table alone
		case reason != "":
			s.add(DamagedEvent, l.id, next, "%s", reason)
			return false
		case !ok || len(page) == 0:
			if l.seq < 0 {
				return false // how long it was is not known, so neither is this
			}
			s.add(MissingEvent, l.id, next, "%d events from here on are lost", end-next)
			return false
		}
	}
	return true
}
