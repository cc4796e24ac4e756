//go:build unix

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/client"
)

// reader follows sessions and keeps what a program would: the log so far, and the values. mu guards logs.
type reader struct {
	name   string
	stores map[string]*client.Store

	mu   sync.Mutex
	logs map[string]*kept
	// moved has an entry when something came.
	moved  chan struct{}
	breaks atomic.Int64
	starts int
}

// kept is what a reader has of one session.
type kept struct {
	events []string
	after  string
	wrong  string
}

func newReader(name string, sessions []string) *reader {
	r := &reader{name: name, stores: map[string]*client.Store{}, logs: map[string]*kept{}, moved: make(chan struct{}, 1)}
	for _, id := range sessions {
		r.stores[id], r.logs[id] = client.NewStore(), &kept{after: client.FromStart}
	}
	return r
}

// follow reads until ctx ends. Now and then the program is started anew, as it were: it goes on from the position that it has kept, with stores that are empty.
func (r *reader) follow(ctx context.Context, c *client.Client, random *rand.Rand, restarts bool) error {
	for ctx.Err() == nil {
		one, cancel := context.WithCancel(ctx)
		left := -1
		if restarts {
			left = 20 + random.IntN(200)
		}
		err := r.once(one, c, func() {
			if left--; left == 0 {
				cancel()
			}
		})
		restarted := one.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case !restarted:
			return fmt.Errorf("%s: the stream ended: %w", r.name, err)
		}
		r.starts++
		for id := range r.stores {
			r.mu.Lock()
			r.stores[id] = client.NewStore()
			r.mu.Unlock()
		}
	}
	return nil
}

func (r *reader) once(ctx context.Context, c *client.Client, told func()) error {
	o := client.StreamOptions{Tries: math.MaxInt, Broken: func(error, time.Duration) { r.breaks.Add(1) }}
	var ids []client.Followed
	for id, k := range r.logs {
		ids = append(ids, client.Followed{ID: id, After: k.after})
	}
	frames := c.Follow(ctx, ids, o)
	if len(ids) == 1 {
		o.After = ids[0].After
		frames = c.Stream(ctx, ids[0].ID, o)
	}
	for f, err := range frames {
		if err != nil {
			return err
		}
		r.take(f)
		told()
		select {
		case r.moved <- struct{}{}:
		default:
		}
	}
	return nil
}

func (r *reader) take(f client.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.logs[f.Session()]
	r.stores[f.Session()].Take(f, false)
	switch f := f.(type) {
	case *client.EventFrame:
		if want := int64(len(k.events)); f.Event.Seq != want && k.wrong == "" {
			k.wrong = fmt.Sprintf("event %d came where %d was due", f.Event.Seq, want)
		}
		k.events = append(k.events, string(f.Event.AppendJSON(nil)))
		k.after = f.Position
	case *client.BaselineFrame:
		if k.after = f.Position; f.Block.AsOfSeq != int64(len(k.events))-1 && k.wrong == "" {
			k.wrong = fmt.Sprintf("a baseline as of %d came after %d events", f.Block.AsOfSeq, len(k.events))
		}
	case *client.ResetFrame, *client.DeletedFrame, *client.UnknownFrame:
		k.wrong = fmt.Sprintf("a frame that nothing has given cause for: %s", f.JSON())
	}
}

// lacks says what a reader does not have yet of a session, or has wrong; empty is nothing.
func (r *reader) lacks(id string, want *truth) (lack string, wrong bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, store := r.logs[id], r.stores[id]
	if k.wrong != "" {
		return k.wrong, true
	}
	for i, ev := range k.events {
		if i >= len(want.events) || ev != want.events[i] {
			return fmt.Sprintf("event %d is %s, which the host does not have there", i, ev), true
		}
	}
	if len(k.events) < len(want.events) {
		return fmt.Sprintf("%d of %d events", len(k.events), len(want.events)), false
	}
	values := store.Values()
	for key, value := range want.values {
		if e, ok := store.Get(key); !ok || e.Stale || !bytes.Equal(e.Value, value) {
			return fmt.Sprintf("the value of %s is %s (stale: %v), the host has %s", key, e.Value, e.Stale, value), false
		}
	}
	if len(values) != len(want.values) {
		return fmt.Sprintf("%d values, the host has %d", len(values), len(want.values)), false
	}
	return "", false
}

// catchUp waits until the reader has all of it.
func (r *reader) catchUp(ctx context.Context, all map[string]*truth) error {
	for id, want := range all {
		for r.logs[id] != nil {
			lack, wrong := r.lacks(id, want)
			if lack == "" {
				break
			}
			if wrong {
				return fmt.Errorf("%s, session %s: %s", r.name, id, lack)
			}
			select {
			case <-r.moved:
			case <-ctx.Done():
				return fmt.Errorf("%s, session %s: in the end it has %s", r.name, id, lack)
			}
		}
	}
	return nil
}
