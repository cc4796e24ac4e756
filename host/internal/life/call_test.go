package life_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/remote"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func success(s *pluginproto.ToolSuccess) *pluginproto.CallToolResponse {
	return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Success{Success: s}}
}

func TestWhatComesOfACallOfATool(t *testing.T) {
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	fails := func(code codes.Code) func(context.Context) (*pluginproto.CallToolResponse, error) {
		return func(context.Context) (*pluginproto.CallToolResponse, error) { return nil, status.Error(code, "no") }
	}
	gives := func(m *pluginproto.CallToolResponse) func(context.Context) (*pluginproto.CallToolResponse, error) {
		return func(context.Context) (*pluginproto.CallToolResponse, error) { return m, nil }
	}
	failure := func(message string) *pluginproto.CallToolResponse {
		return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Failure{Failure: &pluginproto.ToolFailure{Message: message}}}
	}
	broken := is(new(*remote.BrokenError))
	for name, c := range map[string]struct {
		answer func(context.Context) (*pluginproto.CallToolResponse, error)
		is     func(error) bool
		took   time.Duration
	}{
		"success":                        {gives(success(&pluginproto.ToolSuccess{Text: "done", Events: []*pluginproto.NewEvent{{Type: "a", Data: []byte("1")}}})), nil, 0},
		"failure":                        {gives(failure("not today")), is(new(*life.FailureError)), 0},
		"a failure without words":        {gives(&pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Failure{}}), is(new(*life.FailureError)), 0},
		"neither":                        {gives(&pluginproto.CallToolResponse{}), broken, 0},
		"nothing of a success":           {gives(&pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Success{}}), nil, 0},
		"more text than anybody reads":   {gives(success(&pluginproto.ToolSuccess{Text: strings.Repeat("x", 1<<20+1)})), broken, 0},
		"more events than anybody needs": {gives(success(&pluginproto.ToolSuccess{Events: make([]*pluginproto.NewEvent, 1001)})), broken, 0},
		"an event without a type":        {gives(success(&pluginproto.ToolSuccess{Events: []*pluginproto.NewEvent{{Data: []byte("1")}}})), broken, 0},
		"an event without data":          {gives(success(&pluginproto.ToolSuccess{Events: []*pluginproto.NewEvent{{Type: "a"}}})), broken, 0},
		"an event that is not there":     {gives(success(&pluginproto.ToolSuccess{Events: []*pluginproto.NewEvent{nil}})), broken, 0},
		"an error":                       {fails(codes.Unknown), broken, 0},
		"an answer that is too large":    {fails(codes.ResourceExhausted), broken, 0},
		"no such call":                   {fails(codes.Unimplemented), broken, 0},
		"a lost connection":              {fails(codes.Unavailable), is(new(*unit.GoneError)), time.Second},
		"no answer":                      {func(ctx context.Context) (*pluginproto.CallToolResponse, error) { return nil, lifetest.Hang(ctx) }, is(new(*unit.DeadlineError)), 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := up(t, lifetest.Plugin{Units: []unit.Definition{number("a"), number("b")},
					Tools: []*pluginproto.Tool{tool("do", func(m *pluginproto.Tool) { m.Reads = []string{"a", "b"} })},
					Tool: func(ctx context.Context, m *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
						if m.Tool != "do" || m.Session != "s" || m.Seq != 4 || len(m.Values) != 2 || m.Values[0].Key != "a" {
							t.Errorf("called with %v", m)
						}
						return c.answer(ctx)
					}})
				began := time.Now()
				result, err := r.First.Tools[0].Call(t.Context(), unit.ToolCall{Session: "s", Seq: 4, Values: map[string]json.RawMessage{"b": json.RawMessage("2"), "a": json.RawMessage("1")}})
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v", took)
				}
				switch {
				case c.is == nil && err != nil, c.is != nil && !c.is(err):
					t.Errorf("%+v, %T: %v", result, err, err)
				}
				// A tool that went wrong is no reason to end its process.
				if broke, _ := r.told(); len(broke) > 0 || !r.process.Alive() {
					t.Errorf("broken %v", broke)
				}
			})
		})
	}
}

// TestACallThatIsGivenUpIsNobodysFault: the error is that of whoever gave it up.
func TestACallThatIsGivenUpIsNobodysFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := up(t, lifetest.Plugin{Tools: []*pluginproto.Tool{tool("do")},
			Tool: func(ctx context.Context, _ *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
				return nil, lifetest.Hang(ctx)
			}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.First.Tools[0].Call(ctx, unit.ToolCall{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// TestACallSaysHowItsProcessDied: in its last words.
func TestACallSaysHowItsProcessDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := up(t, lifetest.Plugin{Tools: []*pluginproto.Tool{tool("do")}, Called: at("calltool", func(_ context.Context, p *lifetest.Process) error {
			p.Die(3, "out of ideas")
			return nil
		})})
		var gone *unit.GoneError
		if _, err := r.First.Tools[0].Call(t.Context(), unit.ToolCall{}); !errors.As(err, &gone) || !strings.Contains(gone.Reason, "out of ideas") {
			t.Errorf("%T: %v", err, err)
		}
	})
}
