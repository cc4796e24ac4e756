package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/foldhost/foldhost/event"
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
	if f.AtSeq, err = o.integer("atSeq"); err != nil {
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
	child, err := c.api.sessions.ForkTurn(c.r.Context(), c.r.PathValue("id"), f)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/v1/sessions/"+child.ID())
	return c.session(http.StatusCreated, child)
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
	for name, missing := range map[string]bool{"start": start == nil, "end": end == nil, "message": !o.has("message")} {
		if missing {
			return bodyInvalid("$."+name, name+" is missing: a compaction has the seqs of the first and the last node that it replaces, and a message to stand for them")
		}
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	ev, err := s.Compact(c.r.Context(), *start, *end, json.RawMessage(o.fields["message"]))
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
	if _, err := c.object(true); err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	events, err := s.Recover(c.r.Context())
	if err != nil {
		return err
	}
	var seq int64
	if n := len(events); n > 0 {
		seq = events[n-1].Seq + 1
	} else if info, err := s.Info(c.r.Context()); err != nil {
		return err
	} else {
		seq = info.Seq
	}
	return c.appended(s, seq, events, q.has("projections"), keys)
}
