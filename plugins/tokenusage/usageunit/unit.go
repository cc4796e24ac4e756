// Package usageunit is the unit of the tokenusage plugin: what a session's model calls have used.
//
// A model reports its usage while it streams and again when it is done. Only the report of the most recent step is replaced by
// a later one for the same step; every other report adds. Totals therefore survive compaction of the surface. The package
// holds no state of its own.
package usageunit

import (
	"encoding/json"

	"github.com/foldhost/foldhost/sdk"
)

// Buckets are numbers of tokens by what they cost.
type Buckets struct {
	UncachedInputTokens int64 `json:"uncachedInputTokens"`
	OutputTokens        int64 `json:"outputTokens"`
	CacheReadTokens     int64 `json:"cacheReadTokens"`
	CacheWriteTokens    int64 `json:"cacheWriteTokens"`
}

// State is the totals and the report that may still be replaced.
type State struct {
	Totals Buckets `json:"totals"`
	Last   *Report `json:"last"`
}

// Report is what one step has used, by its latest report.
type Report struct {
	Turn    int64   `json:"turn"`
	Step    int64   `json:"step"`
	Buckets Buckets `json:"buckets"`
}

// Projection is the totals of the session. A session has thousands of chunks for each report, so the handlers look before they
// decode.
var Projection = sdk.ProjectionDefinition[State, Buckets]{
	Key:          "tokenUsage",
	StateVersion: 1,
	On: sdk.Handlers[State]{
		"assistant/chunk": sdk.OnRaw(func(s State, ev *sdk.Event) (State, bool, error) {
			if string(sdk.Lookup(ev.Data, "chunk", "type")) != `"usage"` {
				return s, false, nil
			}
			return s.report(ev, sdk.Lookup(ev.Data, "chunk", "usage"), "$.data.chunk.usage")
		}),
		"assistant/message": sdk.OnRaw(func(s State, ev *sdk.Event) (State, bool, error) {
			return s.report(ev, sdk.Lookup(ev.Data, "usage"), "$.data.usage")
		}),
	},
	View: func(s State) Buckets { return s.Totals },
}

// report takes a report in that stands at path. One that is absent or says the same again changes nothing.
func (s State) report(ev *sdk.Event, usage json.RawMessage, path string) (State, bool, error) {
	if usage == nil || string(usage) == "null" {
		return s, false, nil
	}
	var err error
	number := func(raw json.RawMessage, path string) int64 {
		n, ok := sdk.Integer(raw)
		if !ok && err == nil {
			err = &sdk.PayloadError{Type: ev.Type, Seq: ev.Seq, Path: path, Reason: "it is not an integer"}
		}
		return n
	}
	tokens := func(name string) int64 {
		raw := sdk.Lookup(usage, name)
		if raw == nil {
			return 0
		}
		return number(raw, path+"."+name)
	}
	r := Report{
		Turn: number(sdk.Lookup(ev.Data, "turn"), "$.data.turn"),
		Step: number(sdk.Lookup(ev.Data, "step"), "$.data.step"),
		Buckets: Buckets{
			UncachedInputTokens: tokens("inputTokens"),
			OutputTokens:        tokens("outputTokens"),
			CacheReadTokens:     tokens("cacheReadTokens"),
			CacheWriteTokens:    tokens("cacheWriteTokens"),
		},
	}
	if err != nil {
		return s, false, err
	}
	if s.Last != nil && s.Last.Turn == r.Turn && s.Last.Step == r.Step {
		if *s.Last == r {
			return s, false, nil
		}
		s.Totals = s.Totals.plus(s.Last.Buckets, -1)
	}
	return State{Totals: s.Totals.plus(r.Buckets, 1), Last: &r}, true, nil
}

// plus adds o, times sign.
func (b Buckets) plus(o Buckets, sign int64) Buckets {
	return Buckets{
		UncachedInputTokens: b.UncachedInputTokens + sign*o.UncachedInputTokens,
		OutputTokens:        b.OutputTokens + sign*o.OutputTokens,
		CacheReadTokens:     b.CacheReadTokens + sign*o.CacheReadTokens,
		CacheWriteTokens:    b.CacheWriteTokens + sign*o.CacheWriteTokens,
	}
}
