package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Followed is one session to follow with others.
type Followed struct {
	ID string
	// After is where to begin, as in StreamOptions; empty is where StreamOptions says.
	After string
}

// Follow is Stream for up to 20 sessions on one connection. Of each session it gives the frames that Stream would, in the same order, and events of all sessions in the order of their commits as far as they
// are on one connection. Positions are those of each session, and so is what it goes on from: it makes no difference which sessions are followed together.
//
// A session that there is not when it begins is told by an UnknownFrame, one that is deleted by a DeletedFrame, also when that turns out later; the rest goes on. It ends when none is left,
// and else as Stream does.
func (c *Client) Follow(ctx context.Context, sessions []Followed, o StreamOptions) iter.Seq2[Frame, error] {
	return c.frames(ctx, o, func() course {
		m := &many{o: o, places: map[string]*place{}, n: len(sessions)}
		for _, s := range sessions {
			m.ids = append(m.ids, s.ID)
			m.places[s.ID] = &place{after: cmp.Or(s.After, o.After)}
		}
		return m
	})
}

// many is the course of several sessions.
type many struct {
	o   StreamOptions
	n   int
	ids []string
	// places are where those stand that are followed still.
	places map[string]*place
}

func (m *many) doing() string { return fmt.Sprintf("follow %d sessions", m.n) }

func (m *many) request() (*request, error) {
	list := []byte{'['}
	for _, id := range m.ids {
		p := m.places[id]
		if p == nil {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		var one fields
		one.raw("id", event.AppendString(nil, id))
		one.text("after", p.after)
		list = append(list, one.body()...)
	}
	var f fields
	f.raw("sessions", append(list, ']'))
	for name, names := range map[string][]string{"events": m.o.Events, "keys": m.o.Keys} {
		if names == nil {
			continue
		}
		text, err := json.Marshal(names)
		if err != nil {
			return nil, err
		}
		f.raw(name, text)
	}
	return post(m.doing(), "/v1/stream", f.body()), nil
}

func (m *many) note(f Frame) (pass Frame, moved, over bool) {
	id := f.Session()
	p := m.places[id]
	if p == nil {
		return nil, false, false // Of one that is followed no more there is nothing to tell.
	}
	_, unknown := f.(*UnknownFrame)
	if unknown && p.incarnation != "" {
		f = deleted(id)
	}
	if _, gone := f.(*DeletedFrame); gone || unknown {
		delete(m.places, id)
		return f, false, len(m.places) == 0
	}
	return f, p.note(f), false
}

func (m *many) last(*Error) Frame { return nil }
