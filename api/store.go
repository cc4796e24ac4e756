package api

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
)

// Store is what there is to know and to do about the store as a whole, beside its logs. Its methods are called concurrently.
type Store interface {
	Stats(ctx context.Context) (StoreStats, error)
	// Check looks at everything, while it is in use, and repairs nothing; pages: also at the structure of its files. progress is told how many of about how many are done.
	Check(ctx context.Context, pages bool, progress func(done, total int64)) (StoreReport, error)
	// Backup copies it to a new file, while it is in use, and says how large that is. The error is a *TargetError when it cannot be written there.
	Backup(ctx context.Context, path string, progress func(done, total int64)) (bytes int64, err error)
}

// StoreStats say how large a store is and what it has done since it was opened.
type StoreStats struct {
	// StoreID and Boot tell stores and their starts apart. Path is its file, on the machine of the server.
	StoreID string
	Boot    int64
	Path    string
	// Logs and Events are what is there, Deleted how many logs are still to be swept from the disk.
	Logs, Events, Deleted int64
	// Position is the last commit position.
	Position int64
	// Bytes is the size of the file, Free how much of it will be used again, WAL the size of the changes that are not in it yet.
	Bytes, Free, WAL int64
	// Changes were committed in Groups transactions, with Syncs syncs.
	Changes, Groups, Syncs int64
	// Durability is its name.
	Durability string
}

// StoreReport is what a check of a store found.
type StoreReport struct {
	// Logs, Events and Rows were looked at.
	Logs, Events, Rows int64
	Problems           []StoreProblem
	// More counts the problems that are not listed.
	More int64
}

// StoreProblem is one thing that is wrong with a store. Session is empty where it is not known; Seq is negative where it is not about an event.
type StoreProblem struct {
	Code    string
	Session string
	Seq     int64
	Detail  string
}

// TargetError: a file cannot be written where it was asked for. What stood there still does.
type TargetError struct {
	Path string
	Err  error
}

func (e *TargetError) Error() string { return e.Err.Error() }

func (e *TargetError) Unwrap() error { return e.Err }

// store gives the store, of which a server may have none to speak of.
func (c *call) store() (Store, error) {
	if c.api.o.Store == nil {
		return nil, &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: "this server has no store that could be looked at: its sessions are in memory, or it is part of another program"}
	}
	return c.api.o.Store, nil
}

func (c *call) storeStats() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	store, err := c.store()
	if err != nil {
		return err
	}
	st, err := store.Stats(c.r.Context())
	if err != nil {
		return err
	}
	out := event.AppendString([]byte(`{"storeId":`), st.StoreID)
	number := func(name string, n int64) {
		out = strconv.AppendInt(append(append(append(out, `,"`...), name...), `":`...), n, 10)
	}
	number("boot", st.Boot)
	out = event.AppendString(append(out, `,"path":`...), st.Path)
	number("logs", st.Logs)
	number("events", st.Events)
	number("deleted", st.Deleted)
	number("position", st.Position)
	number("bytes", st.Bytes)
	number("free", st.Free)
	number("wal", st.WAL)
	number("changes", st.Changes)
	number("groups", st.Groups)
	number("syncs", st.Syncs)
	out = event.AppendString(append(out, `,"durability":`...), st.Durability)
	return c.json(http.StatusOK, append(out, '}'))
}

func (c *call) checkStore() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(true, "pages", "values")
	if err != nil {
		return err
	}
	pages, err := o.flag("pages")
	if err != nil {
		return err
	}
	values, err := o.flag("values")
	if err != nil {
		return err
	}
	store, err := c.store()
	if err != nil {
		return err
	}
	return c.long(func(ctx context.Context, progress func(done, total int64)) ([]byte, error) {
		// First what the store sees, then what it takes a session to see.
		report, err := store.Check(ctx, pages, func(done, total int64) { progress(done, 2*total) })
		if err != nil {
			return nil, err
		}
		found := func(p host.SessionProblem) {
			if len(report.Problems) == maxProblems {
				report.More++
				return
			}
			report.Problems = append(report.Problems, StoreProblem{Code: string(p.Code), Session: p.ID, Seq: p.Seq, Detail: p.Detail})
		}
		err = c.api.host.CheckSessions(ctx, values, found, func(done int64) { progress(report.Logs+done, 2*report.Logs) })
		return append(appendReport([]byte(`{"report":`), &report), '}'), err
	})
}

// maxProblems is how many problems a report lists; of a store with more nobody reads them all.
const maxProblems = 1000

func appendReport(dst []byte, r *StoreReport) []byte {
	dst = fmt.Appendf(dst, `{"logs":%d,"events":%d,"rows":%d,"problems":[`, r.Logs, r.Events, r.Rows)
	for i := range r.Problems {
		p := &r.Problems[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(append(dst, `{"code":`...), p.Code)
		if p.Session != "" {
			dst = event.AppendString(append(dst, `,"session":`...), p.Session)
		}
		if p.Seq >= 0 {
			dst = strconv.AppendInt(append(dst, `,"seq":`...), p.Seq, 10)
		}
		dst = append(event.AppendString(append(dst, `,"detail":`...), p.Detail), '}')
	}
	return append(strconv.AppendInt(append(dst, `],"more":`...), r.More, 10), '}')
}

func (c *call) backupStore() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(false, "path")
	if err != nil {
		return err
	}
	path, text := event.String(o.fields["path"])
	if !text || !filepath.IsAbs(path) {
		return bodyInvalid("$.path", "path must be the absolute path of a new file on the machine of the server")
	}
	store, err := c.store()
	if err != nil {
		return err
	}
	return c.long(func(ctx context.Context, progress func(done, total int64)) ([]byte, error) {
		bytes, err := store.Backup(ctx, path, progress)
		out := event.AppendString([]byte(`{"backup":{"path":`), path)
		return append(strconv.AppendInt(append(out, `,"bytes":`...), bytes, 10), "}}"...), err
	})
}

// long answers with lines that say how far work is, a hundred at most, and a last one that says what came of it. An error before the first line is an answer as any other. The work ends when
// nobody listens.
func (c *call) long(work func(ctx context.Context, progress func(done, total int64)) (last []byte, err error)) error {
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	line := func(text []byte) {
		if !c.begun {
			c.begin(http.StatusOK, ndjson)
		}
		if c.write(append(text, '\n')) != nil || c.conn.Flush() != nil {
			cancel()
		}
	}
	told := int64(-1)
	last, err := work(ctx, func(done, total int64) {
		if percent := done * 100 / max(total, 1); percent > told {
			told = percent
			line(fmt.Appendf(nil, `{"done":%d,"total":%d}`, done, total))
		}
	})
	switch {
	case err == nil:
		line(last)
	case !c.begun:
		return err
	default:
		p := problemOf(err)
		if p.Code == CodeInternal {
			c.log().Error("a request failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
		}
		line(append(p.AppendJSON([]byte(`{"problem":`)), '}'))
	}
	return nil
}
