package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
)

// creation is what a request asks for.
type creation struct {
	header event.Header
	// dated says that createdAt was given, seeded that events were.
	dated, seeded bool
	items         []session.Item
}

func (c *call) createSession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(false, "id", "cwd", "preset", "createdAt", "events")
	if err != nil {
		return err
	}
	wish, err := o.creation()
	if err != nil {
		return err
	}
	unknown := c.unknownPreset(wish.header.AgentPreset)
	once, err := c.once(o.raw)
	if err != nil {
		return err
	}
	if wish.header.ID == "" && once.Key != "" {
		wish.header.ID = madeID(once, "create")
	}
	n := session.New{Header: wish.header, Dated: wish.dated, Once: once}
	if wish.seeded {
		n.Seed = drafts(wish.items, time.Now().UnixMilli())
	}
	ctx := c.r.Context()
	// Twice at most when it is deleted between the two looks, and then again: whoever deletes as often as others create gets a conflict.
	for range 3 {
		if unknown == nil {
			s, err := c.api.sessions.Create(ctx, n)
			if err == nil {
				return c.created(s)
			}
			if !is[*eventlog.ExistsError](err) {
				return err
			}
		} else if wish.header.ID == "" {
			return unknown
		}
		// One that was made while there was such a preset is the same still.
		s, info, err := c.api.sessions.Find(ctx, wish.header.ID)
		if is[*eventlog.NotFoundError](err) {
			if unknown != nil {
				return unknown
			}
			continue
		}
		if err != nil {
			return err
		}
		if known, err := c.madeBefore(s, &info, once); known || err != nil {
			return err
		}
		if err := wish.fits(ctx, s, &info); err != nil {
			return err
		}
		if err := c.existed(s, once); !is[*eventlog.NotFoundError](err) {
			return err
		}
	}
	return &eventlog.ExistsError{ID: wish.header.ID}
}

// unknownPreset says why no session can be made with a preset; nil when one can.
func (c *call) unknownPreset(preset *string) error {
	if preset == nil {
		return nil
	}
	err := c.api.host.CheckPreset(*preset)
	if *preset == "" {
		err = errors.New("preset is empty: leave it out for the default set")
	}
	if err == nil {
		return nil
	}
	return unknownPreset(err, "$.preset")
}

// created answers with a session that was made.
func (c *call) created(s *session.Session) error {
	c.w.Header().Set("Location", "/v1/sessions/"+s.ID())
	return c.session(http.StatusCreated, s)
}

// existed answers with a session that was there already as it is asked for. The answer is kept with the key, so that it is the first one from then on, and the key is of no use for anything else.
func (c *call) existed(s *session.Session, once session.Once) error {
	if once.Key == "" {
		return c.session(http.StatusOK, s)
	}
	info, err := s.Info(c.r.Context())
	if err != nil {
		return err
	}
	body := append(appendSession(nil, &info, s.Live()), '}')
	twin, err := s.Answer(c.r.Context(), once, string(body))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, []byte(cmp.Or(twin.Answer, string(body))))
}

// madeBefore answers as the first time when a session was made by the same request with the same key.
func (c *call) madeBefore(s *session.Session, info *eventlog.Info, once session.Once) (known bool, err error) {
	if once.Key == "" {
		return false, nil
	}
	commit, known, err := s.Committed(c.r.Context(), once)
	if err != nil || !known {
		return known, err
	}
	if commit.First == commit.Seq { // It may be the key of a request that found the session as it asked for it.
		a, _, err := s.Answered(c.r.Context(), once)
		if err != nil {
			return true, err
		}
		if a.Answer != "" {
			return true, c.json(http.StatusOK, []byte(a.Answer))
		}
	}
	c.w.Header().Set("Location", "/v1/sessions/"+s.ID())
	first := *info
	first.Seq, first.UpdatedAt = commit.Seq, commit.Time
	return true, c.json(http.StatusCreated, append(appendSession(nil, &first, true), '}'))
}

// creation reads what is asked for.
func (o *object) creation() (w creation, err error) {
	text := func(name string, to *string, code Code) {
		if !o.has(name) || err != nil {
			return
		}
		var ok bool
		if *to, ok = event.String(o.fields[name]); !ok {
			err = &Problem{Status: http.StatusUnprocessableEntity, Code: code, Path: "$." + name, Detail: name + " must be a string"}
		} else if *to == "" && code == CodeHeaderInvalid {
			err = &Problem{Status: http.StatusUnprocessableEntity, Code: code, Path: "$." + name, Detail: name + " is empty: leave it out, or say something"}
		}
	}
	var preset string
	text("id", &w.header.ID, CodeIDInvalid)
	text("cwd", &w.header.CWD, CodeHeaderInvalid)
	text("preset", &preset, CodePresetUnknown)
	if err != nil {
		return w, err
	}
	if o.has("id") {
		if err := event.CheckID(w.header.ID); err != nil {
			return w, err
		}
	}
	if o.has("preset") {
		w.header.AgentPreset = &preset
	}
	if w.dated = o.has("createdAt"); w.dated {
		at, ok := event.Integer(o.fields["createdAt"])
		if !ok {
			return w, &Problem{Status: http.StatusUnprocessableEntity, Code: CodeHeaderInvalid, Path: "$.createdAt",
				Detail: "createdAt must be an integer from 0 to 2^53-1, milliseconds since the epoch"}
		}
		w.header.CreatedAt = at
	}
	w.seeded = o.has("events")
	w.items, err = o.items()
	return w, err
}

// eventAt is the place of an event in a body that has a list of them.
func eventAt(i int) string { return fmt.Sprintf("$.events[%d]", i) }

// fits says whether a session that exists is what the request asks for: what was given is equal, and the events are the first that are stored.
func (w *creation) fits(ctx context.Context, s *session.Session, info *eventlog.Info) error {
	conflict := func(what string) error {
		return &Problem{Status: http.StatusConflict, Code: CodeSessionConflict, Detail: fmt.Sprintf("session %q exists and its %s: take another id", info.Header.ID, what)}
	}
	have := &info.Header
	switch {
	case w.header.CWD != "" && w.header.CWD != have.CWD:
		return conflict("cwd is another")
	case w.header.AgentPreset != nil && (have.AgentPreset == nil || *have.AgentPreset != *w.header.AgentPreset):
		return conflict("preset is another")
	case w.dated && w.header.CreatedAt != have.CreatedAt:
		return conflict("createdAt is another")
	case int64(len(w.items)) > info.Seq:
		return conflict("log is shorter than these events")
	case len(w.items) == 0:
		return nil
	}
	i := 0
	for ev, err := range s.Scan(ctx, 0, int64(len(w.items)), nil) {
		if err != nil {
			return err
		}
		if !same(&w.items[i], &ev) {
			return conflict(fmt.Sprintf("event %d is another", i))
		}
		i++
	}
	if i < len(w.items) {
		return errors.New("the log ends before its length")
	}
	return nil
}
