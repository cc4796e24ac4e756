package surface_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

// The builders below write events as a log holds them; the seq is filled in by log.

func user(op string) string {
	return `"type":"user/message","data":{"id":"u","role":"user","content":[{"type":"text","text":"t"}],"source":{"kind":"user"}}` + op
}

func assistant(op string) string {
	return `"type":"assistant/message","data":{"turn":1,"step":1,"message":{"id":"a","role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"}}}` + op
}

// result is a tool/result; extra goes into its data, and inner is the inner content of its block.
func result(extra, inner, op string) string {
	return resultBlock(extra, `"type":"tool-result","toolCallId":"c1","content":`+inner+`,"isError":false`, op)
}

func resultBlock(extra, block, op string) string {
	return `"type":"tool/result","data":{"turn":1,"step":1,"message":{"id":"r","role":"user","content":[{` + block + `}],"source":{"kind":"tool","callId":"c1"}}` + extra + `}` + op
}

func plain(typ string) string { return `"type":"` + typ + `","data":{}` }

const appends = `,"surfaceOp":"append"`

func replaces(start, end int, sources string) string {
	op := fmt.Sprintf(`,"surfaceOp":{"op":"replace","start":%d,"end":%d}`, start, end)
	if sources != "" {
		op += `,"sourceEventSeqs":` + sources
	}
	return op
}

func from(sources string) string { return appends + `,"sourceEventSeqs":` + sources }

// log decodes events with seqs from base.
func log(t testing.TB, base int64, events ...string) []event.Draft {
	t.Helper()
	drafts := make([]event.Draft, len(events))
	for i, e := range events {
		d, err := event.DecodeDraft(fmt.Appendf(nil, `{"seq":%d,"time":0,%s}`, base+int64(i), e), 0)
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		drafts[i] = d
	}
	return drafts
}

// drive plans and applies drafts with a manager of its own, reading replaced events from the drafts.
func drive(base int64, drafts []event.Draft) (*surface.Manager, error) {
	m := surface.NewManager(base, func(seq int64) (event.Event, error) {
		return drafts[seq-base].Event, nil
	})
	for i := range drafts {
		p, err := m.Plan(&drafts[i])
		if err != nil {
			return m, &event.IndexError{Index: int64(i), Err: err}
		}
		m.Apply(p)
	}
	return m, nil
}

// both drives a manager and a full fold over the same log and requires that they agree.
func both(t testing.TB, drafts []event.Draft) (surface.State, error) {
	t.Helper()
	m, err := drive(0, drafts)
	state, foldErr := surface.Fold(slices.Values(drafts))
	if fmt.Sprint(err) != fmt.Sprint(foldErr) {
		t.Fatalf("manager says %v, fold says %v", err, foldErr)
	}
	if err == nil && (!slices.Equal(m.Nodes(), state.Nodes) || m.ReplaceGeneration() != state.ReplaceGeneration) {
		t.Fatalf("manager has %v at %d, fold %v at %d", m.Nodes(), m.ReplaceGeneration(), state.Nodes, state.ReplaceGeneration)
	}
	return state, err
}

func refusal(t testing.TB, err error) *event.Error {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return e
}
