package session

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Compact appends one user/message that replaces the range of nodes from start to end, with sources naming all it shadows. message is the data of the
// event, as for Append. A range that would split a tool call from its result, or take a call whose result may still come, is refused with
// surface-range-invalid. Other errors are as for Append.
func (s *Session) Compact(ctx context.Context, start, end int64, message any) (event.Event, error) {
	return s.CompactOnce(ctx, Once{}, start, end, message)
}

// CompactOnce is Compact for a request with a key: one that was carried out gives its event again, whatever the surface looks like now.
func (s *Session) CompactOnce(ctx context.Context, once Once, start, end int64, message any) (event.Event, error) {
	var draft [1]event.Draft
	d := &draft[0]
	if err := write(d, event.UserMessage, message, Intent{Op: event.Replace(start, end)}); err != nil {
		return event.Event{}, err
	}
	c, err := s.take(ctx)
	if err != nil {
		return event.Event{}, err
	}
	defer c.leave()
	if once.Key != "" {
		_, events, known, err := c.repeated(ctx, once)
		switch {
		case err != nil:
			return event.Event{}, err
		case known && len(events) == 0: // it was claimed, by whoever names another request alike
			return event.Event{}, &eventlog.KeyReusedError{ID: s.id, Key: once.Key}
		case known:
			return events[0], nil
		}
	}
	if start >= 0 && end >= 0 { // else planning says what is wrong with them
		if d.Sources, err = c.shadowed(ctx, start, end); err != nil {
			return event.Event{}, err
		}
	}
	return c.appendOne(ctx, draft[:], condition{once: once})
}

// shadowed gives the nodes of a range that may be compacted. The turn is held.
func (c *core) shadowed(ctx context.Context, start, end int64) ([]int64, error) {
	c.mu.Lock()
	nodes := c.planner.m.Nodes()
	ranged, err := c.planner.m.Range(start, end)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return ranged, c.checkPairs(ctx, nodes, ranged)
}

// checkPairs refuses a range that separates what belongs together: a call and its result are both in it or both out of it.
func (c *core) checkPairs(ctx context.Context, nodes, ranged []int64) error {
	inside := make(map[int64]bool, len(ranged))
	for _, seq := range ranged {
		inside[seq] = true
	}
	calls := make([][]string, len(nodes)) // ids of the calls that a node makes
	results := make([]string, len(nodes)) // id of the call that a node answers
	answers := make([]bool, len(nodes))
	err := c.s.readNodes(ctx, nodes, func(i int, ev *event.Event) error {
		switch ev.Type {
		case event.AssistantMessage:
			for id := range toolCalls(event.MessageOf(ev)) {
				calls[i] = append(calls[i], id)
			}
		case event.ToolResult:
			results[i], answers[i] = toolResultCall(ev)
		}
		return nil
	})
	if err != nil {
		return err
	}
	open := make(map[string]int64) // the nodes of the calls without a result so far
	for i, seq := range nodes {
		for _, id := range calls[i] {
			open[id] = seq
		}
		if call, ok := open[results[i]]; ok && answers[i] {
			if inside[call] != inside[seq] {
				return rangeFault("splits-tool-call", fmt.Sprintf("the range would part the tool call %q at seq %d from its result at seq %d: widen or narrow it", results[i], call, seq))
			}
			delete(open, results[i])
		}
	}
	// In the order of the surface, so that the same range is refused for the same call, and each node is asked about once.
	over := int64(-1)
	for _, id := range slices.SortedFunc(maps.Keys(open), func(a, b string) int { return cmp.Or(cmp.Compare(open[a], open[b]), cmp.Compare(a, b)) }) {
		call := open[id]
		if !inside[call] || call == over {
			continue
		}
		ended, err := c.stepOver(ctx, call)
		if err != nil {
			return err
		}
		if !ended {
			return rangeFault("open-tool-call", fmt.Sprintf("the tool call %q at seq %d has no result yet: end the range before it, or wait for the result", id, call))
		}
		over = call
	}
	return nil
}

// stepOver says whether the step of the event at seq has ended, after which nothing answers its calls.
func (c *core) stepOver(ctx context.Context, seq int64) (bool, error) {
	n := c.seq()
	if seq+1 >= n {
		return false, nil
	}
	q := eventlog.Query{Life: c.life(), From: seq + 1, To: n, Types: []string{event.StepEnd, event.TurnStart, event.TurnEnd}, Limit: 1}
	for _, err := range eventlog.Scan(ctx, c.set.store, q) {
		return err == nil, notFound(err)
	}
	return false, nil
}

func rangeFault(rule, reason string) error {
	return &event.Error{Code: event.SurfaceRangeInvalid, Rule: rule, Path: "$.surfaceOp", Reason: reason}
}
