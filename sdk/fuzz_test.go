package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// Whatever bytes a config is, it is taken or refused with a path for each problem; a config that was taken is taken again once it is
// written out with its defaults.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"flag":true}`, `{"flag":true,"pool":{}}`, `{"flag":true,"list":[{},null]}`, `{"flag":true,"by":{"":{}}}`, `{"flag":1e400}`, "{\"flag\":\xff}", `[[[`, `{"flag":true,"flag":true}`} {
		f.Add([]byte(seed))
	}
	var got settings
	p := sdk.Plugin{Name: "p", Configure: sdk.Configured(func(_ *sdk.Registrar, s settings) error {
		got = s
		return nil
	})}
	f.Fuzz(func(t *testing.T, config []byte) {
		running, err := p.Start(sdk.StartOptions{Config: config})
		if err != nil {
			var refused *sdk.ConfigError
			if !errors.As(err, &refused) || len(refused.Problems) == 0 {
				t.Fatalf("%q: %v", config, err)
			}
			for _, problem := range refused.Problems {
				if problem.Path == "" || problem.Path[0] != '$' || problem.Message == "" {
					t.Errorf("%q: %+v", config, problem)
				}
			}
			return
		}
		running.Stop(t.Context())
		if got.Pool.Size < 1 {
			t.Errorf("%q passed with a pool of %d", config, got.Pool.Size)
		}
		for _, in := range append(got.List, got.Pool) {
			if in.Size < 1 {
				t.Errorf("%q passed with a pool of %d in it", config, in.Size)
			}
		}
		full, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Start(sdk.StartOptions{Config: full})
		if err != nil {
			t.Fatalf("%q is taken, and not when written out as %s: %v", config, full, err)
		}
		again.Stop(t.Context())
	})
}

// Whatever bytes arguments are, a tool sees what its type says or is not called.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"n":1}`, `{"n":1.0}`, `{"n":1e30}`, `{"N":1}`, `{"n":1,"n":2}`, `null`, `{"n":`, "\xff"} {
		f.Add([]byte(seed))
	}
	called := 0
	running, err := sdk.Plugin{Name: "p", Tools: []sdk.AnyTool{sdk.Tool[tick, tick]{Name: "t", Call: func(_ context.Context, _ *sdk.Call, a tick) (tick, error) {
		called++
		return a, nil
	}}}}.Start(sdk.StartOptions{})
	if err != nil {
		f.Fatal(err)
	}
	tool := running.Tools()[0]
	f.Fuzz(func(t *testing.T, args []byte) {
		called = 0
		result, err := tool.Call(t.Context(), unit.ToolCall{Arguments: args})
		if refused := (*sdk.ArgumentError)(nil); err != nil && !errors.As(err, &refused) {
			t.Fatalf("%q: %v", args, err)
		}
		if (err == nil) != (called == 1) {
			t.Fatalf("%q: called %d times and %v", args, called, err)
		}
		if err == nil && !json.Valid(result.Value) {
			t.Errorf("%q: the result is %q", args, result.Value)
		}
	})
}
