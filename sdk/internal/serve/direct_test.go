package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// direct is a service with an instance, called without a wire: what it gives to a caller who has left is seen here alone.
func direct(t *testing.T, i Instance) *Service {
	t.Helper()
	s := NewService(Plugin{Start: func(json.RawMessage, hclog.Logger) (Instance, []Problem) { return i, nil }}, hclog.NewNullLogger())
	if _, err := s.Configure(t.Context(), &pluginproto.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// wire is a stream as a test plays it.
type wire[In, Out any] struct {
	grpc.ServerStream
	ctx  context.Context
	recv func() (In, error)
	send func(Out) error
}

func (w *wire[In, Out]) Context() context.Context { return w.ctx }
func (w *wire[In, Out]) Recv() (In, error)        { return w.recv() }
func (w *wire[In, Out]) Send(m Out) error         { return w.send(m) }

type (
	foldWire  = wire[*pluginproto.FoldBatch, *pluginproto.FoldReply]
	offerWire = wire[any, *pluginproto.RegistrationSet]
)

var errLine = errors.New("the line is dead")

func opening(cells ...unit.CellID) *unit.Batch {
	b := &unit.Batch{Through: -1}
	for _, id := range cells {
		b.Open = append(b.Open, unit.Open{Cell: id, Key: "sum", Seq: -1})
	}
	return b
}

// A host that is gone needs no more folding: the batch that is being carried out ends at its next step.
func TestFoldingEndsWithAStreamThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum := summer{entered: make(chan string, 2), leave: make(chan struct{})}
		s := direct(t, &fixed{units: compile(t, summing("sum", sum))})
		b := opening(1)
		b.Cells, b.Events, b.Through = []unit.CellID{1}, []event.Event{add(0, "a", `"wait"`), add(1, "a", `"wait"`)}, 1
		batches := []*pluginproto.FoldBatch{foldwire.Batch(b, 1, 1)}
		ended := make(chan error, 1)
		go func() {
			ended <- s.Fold(&foldWire{ctx: t.Context(), send: func(*pluginproto.FoldReply) error { return nil }, recv: func() (*pluginproto.FoldBatch, error) {
				if len(batches) == 0 {
					<-sum.entered
					return nil, errLine
				}
				next := batches[0]
				batches = batches[1:]
				return next, nil
			}})
		}()
		synctest.Wait() // the first event is being folded, and the stream has broken
		close(sum.leave)
		if err := <-ended; err != errLine {
			t.Errorf("the stream ended with %v", err)
		}
		if len(sum.entered) != 0 {
			t.Error("another event was folded after the one that was under way")
		}
	})
}

// A stream that cannot be written to is over: nothing more is sent, and batches that come in are not taken for long.
func TestAStreamThatCannotBeWrittenToEnds(t *testing.T) {
	s := direct(t, &fixed{units: compile(t, summing("sum", summer{}))})
	const most = 10_000
	received, sent := 0, 0
	failed := make(chan struct{})
	err := s.Fold(&foldWire{ctx: t.Context(),
		send: func(*pluginproto.FoldReply) error {
			if sent++; sent == 1 {
				close(failed)
			}
			return errLine
		},
		recv: func() (*pluginproto.FoldBatch, error) {
			if received++; received == most {
				return nil, io.EOF
			}
			if received > 1 {
				<-failed
			}
			return foldwire.Batch(opening(1), uint64(received), 1), nil
		}})
	if err != errLine || sent != 1 {
		t.Errorf("%d messages were sent, and the stream ended with %v", sent, err)
	}
	if received == most {
		t.Error("the stream was read to its end")
	}
	if err := s.flight.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMoreBatchesThanThePluginHoldsAtOnceAreAnswered(t *testing.T) {
	s := direct(t, &fixed{units: compile(t, summing("sum", summer{}))})
	received, answered := 0, map[uint64]bool{}
	err := s.Fold(&foldWire{ctx: t.Context(),
		send: func(m *pluginproto.FoldReply) error {
			answered[m.Batch] = true
			return nil
		},
		recv: func() (*pluginproto.FoldBatch, error) {
			if received++; received > 3*maxBatches {
				return nil, io.EOF
			}
			return foldwire.Batch(opening(unit.CellID(received)), uint64(received), 1), nil
		}})
	if err != nil || len(answered) != 3*maxBatches {
		t.Errorf("%d batches of %d were answered, %v", len(answered), 3*maxBatches, err)
	}
}

func TestRegistrationsEndWithTheirStream(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	sent := 0
	err := direct(t, &fixed{}).Registrations(nil, &offerWire{ctx: over, send: func(*pluginproto.RegistrationSet) error { sent++; return nil }})
	if err != nil || sent != 1 {
		t.Errorf("%d offers were sent, and the stream ended with %v", sent, err)
	}
	err = direct(t, &fixed{}).Registrations(nil, &offerWire{ctx: t.Context(), send: func(*pluginproto.RegistrationSet) error { return errLine }})
	if err != errLine {
		t.Errorf("a stream that cannot be written to ended with %v", err)
	}
}

// What a tool gives after its caller has left is no answer: the caller does not know whether its events count.
func TestACallThatWasGivenUpHasNoResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := direct(t, &fixed{tools: []unit.Tool{{Name: "late", Call: func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
		cancel()
		return unit.ToolResult{Text: "done"}, nil
	}}}})
	if a, err := s.CallTool(ctx, &pluginproto.CallToolRequest{Tool: "late"}); a != nil || status.Code(err) != codes.Canceled {
		t.Errorf("got %v, %v", a, err)
	}
}

// stuck is an instance that does not stop when it is asked first.
type stuck struct {
	fixed
	asked int
}

func (s *stuck) Stop(context.Context) error {
	if s.asked++; s.asked == 1 {
		return errors.New("busy")
	}
	return nil
}

func TestADrainThatIsNotDoneSaysSo(t *testing.T) {
	s := direct(t, &stuck{})
	if _, err := s.Drain(t.Context(), nil); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "busy") {
		t.Errorf("an instance that does not stop: %v", err)
	}
	if _, err := s.Drain(t.Context(), nil); err != nil {
		t.Errorf("asked again: %v", err)
	}

	s = direct(t, &stuck{})
	s.flight.enter()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Drain(over, nil); status.Code(err) != codes.Canceled {
		t.Errorf("with something in flight: %v", err)
	}
}

func TestAPluginIsDescribedAsItIs(t *testing.T) {
	p := Plugin{Name: "n", Version: "v", Summary: "s", BuiltWith: "b", ConfigSchema: json.RawMessage("{}"), Owned: []Owned{{"t", json.RawMessage("true")}, {Type: "u"}}}
	want := &pluginproto.DescribeResponse{Name: "n", Version: "v", Summary: "s", BuiltWith: "b", ConfigSchema: []byte("{}"),
		OwnedEvents: []*pluginproto.OwnedEvent{{Type: "t", DataSchema: []byte("true")}, {Type: "u"}}}
	if got, err := NewService(p, hclog.NewNullLogger()).Describe(t.Context(), nil); err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAToolIsOfferedAsItIs(t *testing.T) {
	long := strings.Repeat("x", maxText-1) + "ü"
	for _, c := range []struct {
		tool unit.Tool
		want *pluginproto.Tool
	}{
		{unit.Tool{Name: "n", Description: "d", ArgumentSchema: json.RawMessage("{}"), ResultSchema: json.RawMessage("true"), Reads: []string{"a", "b"}, Retry: unit.RetryNever},
			&pluginproto.Tool{Name: "n", Description: "d", ArgumentSchema: []byte("{}"), ResultSchema: []byte("true"), Reads: []string{"a", "b"}, Retry: pluginproto.Retry_RETRY_NEVER}},
		{unit.Tool{Name: "n", Description: long[:maxText-1] + "y"}, &pluginproto.Tool{Name: "n", Description: long[:maxText-1] + "y"}},
		{unit.Tool{Name: "n", Description: long}, &pluginproto.Tool{Name: "n", Description: long[:maxText-1] + "� …"}},
	} {
		if got := toolMessage(&c.tool); !proto.Equal(got, c.want) {
			t.Errorf("got %.200v\nwant %.200v", got, c.want)
		}
	}
}

func TestAPanicOnAStreamEndsThatStreamAlone(t *testing.T) {
	client, out := connect(t, Plugin{Start: func(json.RawMessage, hclog.Logger) (Instance, []Problem) { return panics{}, nil }})
	if _, err := client.Configure(t.Context(), &pluginproto.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	stream, err := client.Registrations(t.Context(), &pluginproto.RegistrationsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Internal || !out.has("no offer") {
		t.Errorf("got %v", err)
	}
	if _, err := client.Drain(t.Context(), &pluginproto.DrainRequest{}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// panics is an instance that has nothing to say.
type panics struct{}

func (panics) Stop(context.Context) error { return nil }

func (panics) Offer() ([]*unit.Compiled, []unit.Tool, <-chan struct{}) { panic("no offer") }
