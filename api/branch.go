package api

import (
	"errors"
	"net/http"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
)

func (c *call) forkSession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(true, "atSeq", "id")
	if err != nil {
		return err
	}
	var f session.TurnFork
	if f.AtSeq, err = o.seq("atSeq"); err != nil {
		return err
	}
	if o.has("id") {
		var text bool
		if f.Child, text = event.String(o.fields["id"]); !text {
			return &Problem{Status: http.StatusUnprocessableEntity, Code: CodeIDInvalid, Path: "$.id", Detail: "id must be a string"}
		}
		if err := event.CheckID(f.Child); err != nil {
			return err
		}
	}
	if f.Once, err = c.once(o.raw); err != nil {
		return err
	}
	ctx, id := c.r.Context(), c.r.PathValue("id")
	if f.Once.Key == "" || f.Child == id { // A session is no child of its own, and its key is no sign that it was made so.
		child, err := c.api.sessions.ForkTurn(ctx, id, f)
		if err != nil {
			return err
		}
		return c.created(child)
	}
	// The key is the source's, whatever comes of the fork; the child keeps it as well, which tells what has come of it.
	source, _, err := c.find()
	if err != nil {
		return err
	}
	if err := source.Claim(ctx, f.Once); err != nil {
		return err
	}
	if f.Child == "" {
		f.Child = madeID(f.Once, "fork", id, source.Incarnation())
	}
	child, err := c.api.sessions.ForkTurn(ctx, id, f)
	if err == nil {
		return c.created(child)
	}
	if e, refused := errors.AsType[*session.ForkError](err); !refused || e.Code != session.ForkChildExists {
		return err
	}
	s, info, lost := c.api.sessions.Find(ctx, f.Child)
	if lost != nil { // deleted since, as a rule: then the conflict is over, and the same request may try again
		return err
	}
	known, other := c.madeBefore(s, &info, f.Once)
	if is[*eventlog.KeyReusedError](other) || !known && other == nil { // the child is somebody else's
		return err
	}
	return other
}

func (c *call) compactSession() error {
	q := c.query("projections")
	keys := q.list("projections")
	if q.err != nil {
		return q.err
	}
	o, err := c.object(false, "start", "end", "message")
	if err != nil {
		return err
	}
	start, err := o.integer("start")
	if err != nil {
		return err
	}
	end, err := o.integer("end")
	if err != nil {
		return err
	}
	for _, name := range []string{"start", "end", "message"} {
		if !o.has(name) {
			return bodyInvalid("$."+name, name+" is missing: a compaction has the seqs of the first and the last node that it replaces, and a message to stand for them")
		}
	}
	once, err := c.once(o.raw)
	if err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	ev, err := s.CompactOnce(c.r.Context(), once, *start, *end, o.fields["message"])
	if err != nil {
		return rangeProblem(err)
	}
	return c.appended(s, ev.Seq+1, []event.Event{ev}, q.has("projections"), keys)
}

// rangeProblem tells a range that cannot be compacted from a message that cannot be appended.
func rangeProblem(err error) error {
	if e, ok := errors.AsType[*event.Error](err); ok && (e.Code == event.SurfaceRangeInvalid || e.Code == event.SurfaceOpInvalid) {
		return &Problem{Status: http.StatusUnprocessableEntity, Code: CodeSurfaceRangeInvalid, Detail: e.Reason}
	}
	return err
}

func (c *call) recoverSession() error {
	q := c.query("projections")
	keys := q.list("projections")
	if q.err != nil {
		return q.err
	}
	o, err := c.object(true)
	if err != nil {
		return err
	}
	once, err := c.once(o.raw)
	if err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	commit, events, err := s.RecoverOnce(c.r.Context(), once)
	if err != nil {
		return err
	}
	return c.appended(s, commit.Seq, events, q.has("projections"), keys)
}
