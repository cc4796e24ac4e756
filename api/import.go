package api

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// importLog makes a session of a log in the interchange form. The log goes from the connection to the store, a line at a time.
func (c *call) importLog() error {
	q := c.query("id", "strict")
	id, strict := q.text("id"), q.flag("strict", false)
	if q.err != nil {
		return q.err
	}
	if err := c.contentType(ndjson, "zstd"); err != nil {
		return err
	}
	if q.has("id") {
		if err := event.CheckID(id); err != nil {
			return err
		}
	}
	once, err := c.once(nil)
	if err != nil {
		return err
	}
	in := &arriving{c: c, read: digestOf(once.Digest)}
	defer c.conn.SetReadDeadline(time.Time{})
	log, err := jsonl.NewReader(in, jsonl.Options{Strict: strict, MaxEventBytes: c.api.sessions.MaxEventBytes()})
	if err != nil {
		return importProblem(err)
	}
	defer log.Close()
	header := log.Header()
	if q.has("id") {
		header.ID = id
	}
	next, stop := iter.Pull2(log.Events())
	defer stop()
	events := func(yield func(event.Draft, error) bool) {
		for d, err, more := next(); more && yield(d, err) && err == nil; d, err, more = next() {
		}
	}
	digest := func() string { return hex.EncodeToString(in.read.Sum(nil)) }
	ctx := c.r.Context()
	s, err := c.api.sessions.ImportOnce(ctx, header, events, once.Key, digest)
	if err == nil {
		info, err := s.Info(ctx)
		if err != nil {
			return err
		}
		return c.imported(&info, s.Live(), log.Warnings())
	}
	if once.Key == "" || !is[*eventlog.ExistsError](err) {
		return importProblem(err)
	}
	// Whether it is the same request is known when all of it was read.
	for _, err := range events {
		if err != nil {
			return importProblem(err)
		}
	}
	s, info, lost := c.api.sessions.Find(ctx, header.ID)
	if lost != nil {
		return err
	}
	once.Digest = digest()
	commit, known, other := s.Committed(ctx, once)
	if other != nil {
		return other
	}
	if !known {
		return err
	}
	info.Seq, info.UpdatedAt = commit.Seq, commit.Time
	return c.imported(&info, true, log.Warnings())
}

func (c *call) imported(info *eventlog.Info, live bool, warnings []jsonl.Warning) error {
	c.w.Header().Set("Location", "/v1/sessions/"+info.Header.ID)
	out := append(appendSession(nil, info, live), `,"warnings":[`...)
	for i, w := range warnings {
		if i > 0 {
			out = append(out, ',')
		}
		out = event.AppendString(out, strings.ToValidUTF8(w.String(), "\uFFFD"))
	}
	return c.json(http.StatusCreated, append(out, "]}"...))
}

// importProblem says what is wrong with a log, and where.
func importProblem(err error) error {
	if e, ok := errors.AsType[*jsonl.ReadError](err); ok {
		return bodyInvalid("", "the log could not be read to its end: "+e.Err.Error()+": nothing was imported")
	}
	at, ok := errors.AsType[*jsonl.LineError](err)
	if !ok {
		return err
	}
	p := problemOf(err)
	p.Detail = fmt.Sprintf("line %d: %s", at.Line, p.Detail)
	return p
}

// arriving is a body that has to keep moving, however long it takes, and is digested as it comes.
type arriving struct {
	c    *call
	read hash.Hash
}

// Read implements io.Reader. A body that breaks off is never one that ends: its error is not one that a reader of logs takes for a torn tail.
func (a *arriving) Read(p []byte) (int, error) {
	a.c.conn.SetReadDeadline(time.Now().Add(a.c.api.o.BodyTimeout)) // A body that has none is in memory.
	n, err := a.c.r.Body.Read(p)
	a.read.Write(p[:n])
	if err != nil && err != io.EOF {
		err = &brokenOffError{a.c.brokenOff(err)}
	}
	return n, err
}

// brokenOffError does not say by errors.Is what it is made of.
type brokenOffError struct{ text string }

func (e *brokenOffError) Error() string { return e.text }
