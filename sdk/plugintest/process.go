package plugintest

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/unit"
)

// Laws of processes.
const (
	// LastIsLast: asked for the last value alone, a plugin gives the last of all values.
	LastIsLast Law = "last-is-last"
	// AnswersBatches: each batch is answered with what it asks for, also one that is nothing but openings, events, a question for states or drops.
	AnswersBatches Law = "answers-batches"
)

// laws are those of this package by the names that the host has for them.
var laws = map[string]Law{
	"answers": NoFault, "true-to-schema": MatchesSchema, "repeatable": Deterministic,
	"splits-anywhere": ResumesAnywhere, "last-is-last": LastIsLast, "indifferent": IgnoresUnrelated,
	"answers-batches": AnswersBatches,
}

// Process puts an executable under test, in any language: it is started by the host's own launcher, given the config (nil, JSON, or any value
// that encoding/json can write), and stopped when the test ends. One that does not start ends the test, with the reason.
//
// The laws are held over the events that each case gives, as far as a process can be asked: what it does to old states is not seen from
// outside.
func Process(t TB, path string, with any) *Plugin {
	t.Helper()
	c := config.Plugin{Config: configOf(t, with)}
	ctx, cancel := context.WithCancel(context.Background())
	trial, err := host.Try(ctx, path, host.InspectOptions{Config: &config.File{Plugins: map[string]config.Plugin{nameOf(path): c}}})
	if err != nil {
		cancel()
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		trial.Close()
		cancel()
	})
	for _, refused := range trial.Inspection.Refused {
		t.Errorf("the host refuses %v", refused)
	}
	return &Plugin{
		t: t,
		fixture: func(key string) *Fixture {
			return &Fixture{t: t, def: unit.Definition{Key: key}, check: process{t, trial}.check}
		},
		call: func(name string, call unit.ToolCall) (unit.ToolResult, error) {
			result, err := trial.CallTool(context.Background(), name, call)
			if errors.Is(err, host.ErrNoTool) {
				t.Fatalf("%v", err)
			}
			return result, err
		},
	}
}

// nameOf is the operator's name of a plugin: that of its file, less .exe.
func nameOf(path string) string {
	name := filepath.Base(path)
	if ext := filepath.Ext(name); ext == ".exe" {
		name = name[:len(name)-len(ext)]
	}
	return name
}

// process checks units through a process.
type process struct {
	t     TB
	trial *host.Trial
}

func (p process) check(def unit.Definition, events []event.Event) *Report {
	r := &Report{Key: def.Key}
	folded, err := p.trial.Fold(context.Background(), def.Key, events)
	if unknown := (*host.UnknownUnitError)(nil); errors.As(err, &unknown) {
		p.t.Fatalf("%v", err)
	}
	if err != nil {
		r.breaks(NoFault, -1, "%v; the last that it wrote was:\n%s", err, p.trial.Tail())
		return r
	}
	for _, v := range folded.Values {
		step := Step{Seq: v.Seq, View: v.View}
		if n := len(r.Steps); n > 0 {
			step.Sent = !bytes.Equal(v.View, r.Steps[n-1].View)
		}
		r.Steps = append(r.Steps, step)
	}
	if len(r.Steps) == 0 {
		r.Steps = []Step{{Seq: -1}}
	}
	r.Steps[len(r.Steps)-1].State = folded.State
	for _, b := range folded.Broken {
		law, ok := laws[b.Law]
		if !ok {
			law = Law(b.Law)
		}
		r.breaks(law, b.Seq, "%s", b.Reason)
	}
	return r
}
