package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	c, err := s.touch(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer c.slot.release()
	if list, asOf, ok := c.keptMessages(); ok {
		return list, asOf, nil
	}
	// One builder at a time: who waits finds what the other has built.
	select {
	case c.building <- struct{}{}:
		defer func() { <-c.building }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if list, asOf, ok := c.keptMessages(); ok {
		return list, asOf, nil
	}
	return c.buildMessages(ctx)
}

func (c *core) keptMessages() (list []json.RawMessage, asOf int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.messages.list), c.planner.m.Next() - 1, c.messages.kept
}

// buildMessages reads the messages of the surface from the store without a lock, and keeps them if it can catch up with what
// is appended meanwhile.
func (c *core) buildMessages(ctx context.Context) (first []json.RawMessage, asOf int64, err error) {
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
			return slices.Clip(list), last, nil
		}
		c.mu.Unlock()
		more, err := c.readMessages(ctx, nodes[done:])
		if err != nil {
			return nil, 0, err
		}
		list, done, generation = append(list, more...), len(nodes), now
		if round == 0 {
			first, asOf = slices.Clip(list), last
		}
	}
	return first, asOf, nil
}

func (c *core) readMessages(ctx context.Context, nodes []int64) ([]json.RawMessage, error) {
	messages := make([]json.RawMessage, len(nodes))
	err := c.readNodes(ctx, nodes, func(i int, ev *event.Event) { messages[i] = messageOf(ev) })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(messages, func(m json.RawMessage) bool { return m == nil }), nil
}

// readNodes reads the events of nodes in the order of the log, which replacements make another than that of the nodes, and calls f with the index of
// each. Each page begins at a node, so that what was replaced since is passed over where there is much of it.
func (c *core) readNodes(ctx context.Context, nodes []int64, f func(i int, ev *event.Event)) error {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(nodes[a], nodes[b]) })
	q := eventlog.Query{Life: c.life(), Types: surfaceTypes}
	for len(order) > 0 {
		q.From, q.To = max(q.From, nodes[order[0]]), nodes[order[len(order)-1]]+1
		page, err := c.set.store.Read(ctx, q)
		if err != nil {
			return notFound(err)
		}
		for i := range page.Events {
			if len(order) > 0 && page.Events[i].Seq == nodes[order[0]] {
				f(order[0], &page.Events[i])
				order = order[1:]
			}
		}
		if len(order) > 0 && (page.Next > nodes[order[0]] || page.Next >= page.End) {
			return &eventlog.CorruptError{ID: c.s.id, Seq: nodes[order[0]], Reason: "an event of the surface is missing"}
		}
		q.From = page.Next
	}
	return nil
}
