package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// buildRounds bounds how often a build runs after appends that came while it read. What it has is right as of its own look at the surface; only
// keeping it needs to have caught up.
const buildRounds = 4

// messageCache keeps the derived messages of a surface. core.mu guards it.
type messageCache struct {
	// kept says that list is right: nodes of the surface are in it, and no replacement since.
	kept bool
	list []json.RawMessage
	size int
}

// add follows an event that was applied to the surface.
func (m *messageCache) add(e *event.Event, limit int) {
	switch {
	case !m.kept || e.Op.Kind == event.OpNone:
	case e.Op.Kind == event.OpReplace:
		*m = messageCache{}
	default:
		if msg := messageOf(e); msg != nil {
			m.list = append(m.list, msg)
			if m.size += len(msg); m.size > limit {
				*m = messageCache{}
			}
		}
	}
}

// messageOf is event.MessageOf for lists that are kept. A message that is less than half of its event is copied: as a piece it would hold on to the rest,
// such as the meta of a tool/result, which nobody counts.
func messageOf(e *event.Event) json.RawMessage {
	msg := event.MessageOf(e)
	if msg != nil && len(msg) < len(e.Data)/2 {
		return bytes.Clone(msg)
	}
	return msg
}

// set keeps a list that is right for the surface as it is now, unless it is too large.
func (m *messageCache) set(list []json.RawMessage, limit int) {
	size := 0
	for _, msg := range list {
		size += len(msg)
	}
	if size <= limit {
		*m = messageCache{kept: true, list: list, size: size}
	}
}

// Messages derives the messages that a model would see, verbatim, in node order. The list never changes afterwards and must not
// be written to. It touches the session, and never waits for an append.
func (s *Session) Messages(ctx context.Context) ([]json.RawMessage, error) {
	list, _, err := s.MessagesAsOf(ctx)
	return list, err
}

// MessagesAsOf is Messages that also says which seq they are as of: that of the last event that counts, −1 when there is none.
func (s *Session) MessagesAsOf(ctx context.Context) ([]json.RawMessage, int64, error) {
	list, _, asOf, err := s.messages(ctx, math.MaxInt)
	return list, asOf, err
}

// EachMessage calls yield with each message of MessagesAsOf, and gives the seq that they are as of. It does not hold them all: where there are more than are kept, they are read from the store
// a page at a time, and no append, no other reader and no deletion waits for yield. It ends with the first error of yield, and with one of reading in the middle.
func (s *Session) EachMessage(ctx context.Context, yield func(json.RawMessage) error) (asOf int64, err error) {
	list, nodes, asOf, err := s.messages(ctx, s.set.o.MaxMessageBytes)
	if err != nil {
		return 0, err
	}
	for _, msg := range list {
		if err := yield(msg); err != nil {
			return asOf, err
		}
	}
	for len(nodes) > 0 {
		// A message that replaces others stands where they stood, before what is older than itself: the nodes are in the order of the log in between.
		run := 1
		for run < len(nodes) && nodes[run] > nodes[run-1] {
			run++
		}
		if err := s.readNodes(ctx, nodes[:run], func(_ int, ev *event.Event) error {
			if msg := event.MessageOf(ev); msg != nil {
				return yield(msg)
			}
			return nil
		}); err != nil {
			return asOf, err
		}
		nodes = nodes[run:]
	}
	return asOf, nil
}

// messages gives the list, or, where it has more than most bytes, the nodes that it is to be read by.
func (s *Session) messages(ctx context.Context, most int) (list []json.RawMessage, nodes []int64, asOf int64, err error) {
	c, err := s.touch(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	defer c.slot.release()
	if list, asOf, ok := c.keptMessages(); ok {
		return list, nil, asOf, nil
	}
	// One builder at a time: who waits finds what the other has built.
	select {
	case c.building <- struct{}{}:
		defer func() { <-c.building }()
	case <-ctx.Done():
		return nil, nil, 0, ctx.Err()
	}
	if list, asOf, ok := c.keptMessages(); ok {
		return list, nil, asOf, nil
	}
	return c.buildMessages(ctx, most)
}

func (c *core) keptMessages() (list []json.RawMessage, asOf int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.messages.list), c.planner.m.Next() - 1, c.messages.kept
}

// buildMessages reads the messages of the surface from the store without a lock, and keeps them if it can catch up with what
// is appended meanwhile. Where they have more than most bytes, it gives the nodes instead.
func (c *core) buildMessages(ctx context.Context, most int) (first []json.RawMessage, over []int64, asOf int64, err error) {
	var list []json.RawMessage
	var done int
	var generation int64
	for round := range buildRounds {
		c.mu.Lock()
		nodes, now, last := c.planner.m.Nodes(), c.planner.m.ReplaceGeneration(), c.planner.m.Next()-1
		if round > 0 && now != generation {
			c.mu.Unlock()
			break
		}
		if round > 0 && len(nodes) == done {
			c.messages.set(list, c.set.o.MaxMessageBytes)
			c.mu.Unlock()
			return slices.Clip(list), nil, last, nil
		}
		c.mu.Unlock()
		more, err := c.readMessages(ctx, nodes[done:], most)
		if err == errMany && round == 0 {
			return nil, nodes, last, nil
		}
		if err == errMany {
			break
		}
		if err != nil {
			return nil, nil, 0, err
		}
		list, done, generation = append(list, more...), len(nodes), now
		if round == 0 {
			first, asOf = slices.Clip(list), last
		}
	}
	return first, nil, asOf, nil
}

// errMany ends a reading of messages that have more bytes than were wanted.
var errMany = errors.New("the messages are many")

func (c *core) readMessages(ctx context.Context, nodes []int64, most int) ([]json.RawMessage, error) {
	messages := make([]json.RawMessage, len(nodes))
	err := c.s.readNodes(ctx, nodes, func(i int, ev *event.Event) error {
		messages[i] = messageOf(ev)
		if most -= len(messages[i]); most < 0 {
			return errMany
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m json.RawMessage) bool { return m == nil }), nil
}

// readNodes reads the events of nodes in the order of the log, which replacements make another than that of the nodes, and calls f with the index of
// each, up to the first error of f. Each page begins at a node, so that what was replaced since is passed over where there is much of it.
func (s *Session) readNodes(ctx context.Context, nodes []int64, f func(i int, ev *event.Event) error) error {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(nodes[a], nodes[b]) })
	q := eventlog.Query{Life: s.life(), Types: surfaceTypes}
	for len(order) > 0 {
		q.From, q.To = max(q.From, nodes[order[0]]), nodes[order[len(order)-1]]+1
		page, err := s.set.store.Read(ctx, q)
		if err != nil {
			return notFound(err)
		}
		for i := range page.Events {
			if len(order) > 0 && page.Events[i].Seq == nodes[order[0]] {
				if err := f(order[0], &page.Events[i]); err != nil {
					return err
				}
				order = order[1:]
			}
		}
		if len(order) > 0 && (page.Next > nodes[order[0]] || page.Next >= page.End) {
			return &eventlog.CorruptError{ID: s.id, Seq: nodes[order[0]], Reason: "an event of the surface is missing"}
		}
		q.From = page.Next
	}
	return nil
}
