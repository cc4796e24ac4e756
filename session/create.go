package session

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// New is a session to be made.
type New struct {
	// Header is copied. ID empty: one is made up. CreatedAt 0: now, unless Dated says that 1970 is meant.
	Header event.Header
	Dated  bool
	// Seed is nil for none; an empty seed is a seed. Elements are validated as appends would be, and copied.
	Seed []event.Draft
	// Once says whose creation it is, for Session.Committed.
	Once Once
}

// Create makes a session and leaves it live. A seed ends with session/end-seed, which is added unless it is there. Errors: *eventlog.ExistsError,
// *event.Error (header), *event.IndexError (seed), ErrClosed, and what the store says.
func (t *Set) Create(ctx context.Context, n New) (*Session, error) {
	h := cloneHeader(n.Header)
	if h.ID == "" {
		h.ID = rand.Text()
	}
	if h.CreatedAt == 0 && !n.Dated {
		h.CreatedAt = t.o.Now().UnixMilli()
	}
	if n.Seed == nil {
		return t.create(ctx, h, 0, nil, false, n.Once.Key, n.Once.digest)
	}
	seed := func(yield func(event.Draft, error) bool) {
		for i := range n.Seed {
			d, err := detached(&n.Seed[i])
			if err != nil {
				err = &event.IndexError{Index: int64(i), Err: err}
			}
			if !yield(d, err) {
				return
			}
		}
	}
	return t.create(ctx, h, int64(len(n.Seed)), seed, true, n.Once.Key, n.Once.digest)
}

// detached copies a draft that a Go caller may have made by hand and may go on to change: its data is checked here.
func detached(d *event.Draft) (event.Draft, error) {
	raw, err := event.Compact(d.Data, "$.data")
	if err != nil {
		return event.Draft{}, err
	}
	c := *d
	c.Data = raw
	if d.Sources != nil {
		c.Sources = append([]int64{}, d.Sources...)
	}
	return c, nil
}

// Import makes a session from the events of a log: no seed, nothing is added. All or nothing. The drafts must have passed event.DecodeDraft or the
// equal of it; they are pulled once, in order, and not kept. An error that events yields is returned as it is; others are as for Create.
func (t *Set) Import(ctx context.Context, h event.Header, events iter.Seq2[event.Draft, error]) (*Session, error) {
	return t.ImportOnce(ctx, h, events, "", nil)
}

// ImportOnce is Import for a request with a key. digest is asked once the events have been pulled, as it may be one of what they are read from; Committed tells by it what has come of the
// request.
func (t *Set) ImportOnce(ctx context.Context, h event.Header, events iter.Seq2[event.Draft, error], key string, digest func() string) (*Session, error) {
	return t.create(ctx, cloneHeader(h), 0, events, false, key, digest)
}

// create makes a session from drafts, nil for none. An import has no seed: firstLive is 0 and nothing is added at the end.
func (t *Set) create(ctx context.Context, h event.Header, firstLive int64, drafts iter.Seq2[event.Draft, error], endSeed bool, key string, digest func() string) (*Session, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	b := newBeginning(t)
	creation := eventlog.Creation{Header: h, FirstLiveSeq: firstLive, Key: key, Digest: digest}
	if drafts != nil {
		creation.Events = b.events(drafts, endSeed)
	}
	return t.commitCreation(ctx, creation, b.planner)
}

// commitCreation hands a creation to the store and makes the session live with the planner that followed its events.
func (t *Set) commitCreation(ctx context.Context, creation eventlog.Creation, p *planner) (*Session, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	defer t.running.Done()
	id := creation.Header.ID
	meanwhile := t.beginCreation(id)
	defer t.endCreation(id, meanwhile)
	info, err := t.store.Create(ctx, creation)
	if err != nil {
		return nil, err
	}
	c := newCore(t, t.handle(info.Header, info.Incarnation), p)
	if p.m.Next() > 0 {
		c.keeper.changes = 1 // a seed has no row yet
	}
	t.stats.Created.Add(1)
	if t.install(c, meanwhile) {
		return c.s, nil
	}
	// Somebody opened it first, or deleted: it exists, so it is the store that says what has become of it.
	var gone *eventlog.NotFoundError
	live, err := c.s.touch(ctx)
	if err == nil {
		defer live.slot.release()
		return live.s, nil
	}
	if errors.As(err, &gone) {
		return nil, err
	}
	return c.s, nil // made, only not live; the next touch opens it
}

// making is what those who create an id at once share: overtaken says that somebody else has opened or deleted it meanwhile. What a creator has
// planned is then the beginning of the log and need not be all of it any more, even if nobody has the session live now.
type making struct {
	creators  int
	overtaken bool
}

func (t *Set) beginCreation(id string) *making {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.creating[id]
	if m == nil {
		m = &making{}
		t.creating[id] = m
	}
	m.creators++
	return m
}

func (t *Set) endCreation(id string, m *making) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.creators--; m.creators == 0 {
		delete(t.creating, id)
	}
}

// overtake tells the creators of an id that it is being opened or deleted. mu is held.
func (t *Set) overtake(id string) {
	if m := t.creating[id]; m != nil {
		m.overtaken = true
	}
}

// install makes a core live that was just created, unless the id has a slot or was overtaken.
func (t *Set) install(c *core, meanwhile *making) bool {
	t.mu.Lock()
	if t.closed.Load() || meanwhile.overtaken || t.slots[c.s.id] != nil {
		t.mu.Unlock()
		return false
	}
	sl := newSlot(c.s.id)
	sl.settled = true
	sl.touched.Store(true)
	t.slots[sl.id] = sl
	t.crowd()
	t.mu.Unlock()
	err := t.attach(c, sl)
	if err != nil {
		c.contained(err)
		t.mu.Lock()
		delete(t.slots, sl.id)
		t.mu.Unlock()
	}
	t.settle(sl, c, err)
	return err == nil
}
