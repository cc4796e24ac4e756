package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func TestNothingRunsBeforeConfigure(t *testing.T) {
	client, _ := connect(t, Plugin{Name: "p", Version: "1", Start: func(json.RawMessage, hclog.Logger) (Instance, []Problem) {
		return nil, []Problem{{"$.flag", "missing required value"}}
	}})
	describes := func() {
		t.Helper()
		if d, err := client.Describe(t.Context(), &pluginproto.DescribeRequest{}); err != nil || d.Name != "p" {
			t.Errorf("got %v, %v", d, err)
		}
	}
	refuses := func() {
		t.Helper()
		regs, err := client.Registrations(t.Context(), &pluginproto.RegistrationsRequest{})
		if err == nil {
			_, err = regs.Recv()
		}
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("Registrations: %v", err)
		}
		fold, err := client.Fold(t.Context())
		if err == nil {
			_, err = fold.Recv()
		}
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("Fold: %v", err)
		}
		if _, err := client.CallTool(t.Context(), &pluginproto.CallToolRequest{}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("CallTool: %v", err)
		}
	}
	describes()
	refuses()
	answer, err := client.Configure(t.Context(), &pluginproto.ConfigureRequest{})
	if err != nil || len(answer.Problems) != 1 || answer.Problems[0].Path != "$.flag" {
		t.Errorf("got %v, %v", answer, err)
	}
	refuses()
	if _, err := client.Configure(t.Context(), &pluginproto.ConfigureRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a second Configure: %v", err)
	}
	describes()
	if _, err := client.Drain(t.Context(), &pluginproto.DrainRequest{}); err != nil {
		t.Errorf("Drain: %v", err)
	}
}

func TestEveryChangeOfTheOfferIsPushed(t *testing.T) {
	units := compile(t, summing("a", summer{}), summing("b", summer{}))
	f := &fixed{}
	client, _ := configured(t, f)
	stream, err := client.Registrations(t.Context(), &pluginproto.RegistrationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want ...string) {
		t.Helper()
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range m.Units {
			got = append(got, u.Key)
		}
		for _, tool := range m.Tools {
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	next()
	f.offer(units, nil)
	next("a", "b")
	f.offer(units[1:], []unit.Tool{{Name: "tool"}})
	next("b", "tool")

	second, err := client.Registrations(t.Context(), &pluginproto.RegistrationsRequest{})
	if err == nil {
		_, err = second.Recv()
	}
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a second stream: %v", err)
	}
}

// exchange sends batches on a new fold stream and gives the answers by batch number.
func exchange(t *testing.T, client pluginproto.PluginClient, batches ...*pluginproto.FoldBatch) map[uint64][]*pluginproto.FoldReply {
	t.Helper()
	stream, err := client.Fold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := stream.Send(b); err != nil {
			t.Fatal(err)
		}
	}
	stream.CloseSend()
	got := map[uint64][]*pluginproto.FoldReply{}
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[m.Batch] = append(got[m.Batch], m)
	}
	for _, b := range batches {
		parts := got[b.Batch]
		if len(parts) == 0 || !parts[len(parts)-1].Last {
			t.Fatalf("batch %d is not answered in full: %v", b.Batch, parts)
		}
	}
	return got
}

func TestBatchesAreAnsweredWithTheirNumberAndGeneration(t *testing.T) {
	client, _ := configured(t, &fixed{units: compile(t, summing("other", summer{}, "other"), summing("sum", summer{}))})
	got := exchange(t, client,
		foldwire.Batch(&unit.Batch{Open: []unit.Open{{Cell: 5, Key: "sum", Seq: -1}}, Cells: []unit.CellID{5}, Events: []event.Event{add(0, "a", "2"), add(1, "a", "3")}, Through: 4, States: []unit.CellID{5}}, 7, 3),
		foldwire.Batch(&unit.Batch{Cells: []unit.CellID{5, 6}, Events: []event.Event{add(5, "a", `"bad"`)}, Through: 5}, 8, 3))
	first := got[7][0]
	if first.Generation != 3 || len(first.Values) != 3 || string(first.Values[2].View) != "5" || len(first.States) != 1 || first.States[0].Seq != 4 {
		t.Errorf("got %v", first)
	}
	second := got[8][0]
	if len(second.Faults) != 1 || second.Faults[0].Seq != 5 || !slices.Equal(second.Unknown, []uint64{6}) {
		t.Errorf("got %v", second)
	}
}

func TestABatchThatCannotBeReadIsRefusedAndItsCellsAreDropped(t *testing.T) {
	client, out := configured(t, &fixed{units: compile(t, summing("sum", summer{}))})
	got := exchange(t, client,
		foldwire.Batch(&unit.Batch{Open: []unit.Open{{Cell: 5, Key: "sum", Seq: -1}, {Cell: 6, Key: "sum", Seq: -1}}, Through: -1}, 1, 1),
		&pluginproto.FoldBatch{Batch: 2, Generation: 1, Cells: []uint64{5}, Mode: 99, Open: []*pluginproto.OpenCell{{Cell: 6}}},
		foldwire.Batch(&unit.Batch{Cells: []unit.CellID{5, 6}, Through: 3}, 3, 1))
	if got[2][0].Refused == "" {
		t.Errorf("got %v", got[2])
	}
	if !slices.Equal(got[3][0].Unknown, []uint64{5, 6}) {
		t.Errorf("a cell over a gap is still driven: %v", got[3])
	}
	if !out.has("cannot be read") {
		t.Error("nothing of it is in the log")
	}
}

func TestAReplyIsSplitAtTheSizeOfAMessage(t *testing.T) {
	big := json.RawMessage(`"` + strings.Repeat("x", pluginproto.TargetMessageBytes*2/3) + `"`)
	wide := unit.Definition{Key: "wide", StateSchema: json.RawMessage("true"), ViewSchema: json.RawMessage("true"), Inline: constant{big}}
	client, _ := configured(t, &fixed{units: compile(t, wide)})
	b := &unit.Batch{Through: -1}
	for id := unit.CellID(1); id <= 5; id++ {
		b.Open = append(b.Open, unit.Open{Cell: id, Key: "wide", Seq: -1})
	}
	parts := exchange(t, client, foldwire.Batch(b, 1, 1))[1]
	values := 0
	for i, p := range parts {
		values += len(p.Values)
		if p.Last != (i == len(parts)-1) {
			t.Errorf("part %d of %d is marked %v", i, len(parts), p.Last)
		}
	}
	if len(parts) < 5 || values != 5 {
		t.Errorf("%d values in %d messages", values, len(parts))
	}
}

// constant is a unit with one value for ever.
type constant struct{ value json.RawMessage }

func (c constant) Init() (unit.State, error) { return nil, nil }
func (c constant) Apply(s unit.State, _ *event.Event) (unit.State, bool, error) {
	return s, false, nil
}
func (c constant) View(unit.State) (json.RawMessage, error)   { return c.value, nil }
func (c constant) Encode(unit.State) (json.RawMessage, error) { return c.value, nil }
func (c constant) Decode(json.RawMessage) (unit.State, error) { return nil, nil }

func TestDrainWaitsForWhatIsInFlightAndTakesNothingNew(t *testing.T) {
	s := summer{entered: make(chan string), leave: make(chan struct{})}
	f := &fixed{units: compile(t, summing("sum", s))}
	client, _ := configured(t, f)
	stream, err := client.Fold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(b *unit.Batch, n uint64) {
		t.Helper()
		if err := stream.Send(foldwire.Batch(b, n, 1)); err != nil {
			t.Fatal(err)
		}
	}
	send(&unit.Batch{Open: []unit.Open{{Cell: 1, Key: "sum", Seq: -1}}, Cells: []unit.CellID{1}, Events: []event.Event{add(0, "a", `"wait"`)}, Mode: unit.LastOnly}, 1)
	<-s.entered

	drained := make(chan error, 1)
	go func() {
		_, err := client.Drain(t.Context(), &pluginproto.DrainRequest{})
		drained <- err
	}()
	// Once the door is closed, batches are refused while the first is still in flight.
	for n := uint64(2); ; n++ {
		send(&unit.Batch{Cells: []unit.CellID{2}, Through: 0}, n)
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.Refused != "" {
			break
		}
	}
	if a, err := client.CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: "any"}); err != nil || a.GetFailure() == nil {
		t.Errorf("a tool was called while draining: %v, %v", a, err)
	}
	select {
	case err := <-drained:
		t.Errorf("drained with a fold in flight: %v", err)
	default:
	}
	close(s.leave)
	if m, err := stream.Recv(); err != nil || m.Batch != 1 || len(m.Values) != 1 {
		t.Errorf("what was in flight was answered with %v, %v", m, err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if !f.stopped {
		t.Error("the instance was not stopped")
	}
}

func TestWhatComesOfAToolCall(t *testing.T) {
	tool := func(name string, call func(context.Context, unit.ToolCall) (unit.ToolResult, error)) unit.Tool {
		return unit.Tool{Name: name, Call: call}
	}
	entered := make(chan struct{})
	client, out := configured(t, &fixed{tools: []unit.Tool{
		tool("echo", func(_ context.Context, in unit.ToolCall) (unit.ToolResult, error) {
			return unit.ToolResult{Text: fmt.Sprint(in.Session, in.Seq), Value: in.Values["k"], Events: []unit.ToolEvent{{Type: "t", Data: in.Arguments, Ignorable: true}, {Type: "u"}}}, nil
		}),
		tool("refuse", func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
			return unit.ToolResult{}, errors.New("no \xff")
		}),
		tool("large", func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
			return unit.ToolResult{Value: make([]byte, pluginproto.MaxMessageBytes)}, nil
		}),
		tool("slow", func(ctx context.Context, _ unit.ToolCall) (unit.ToolResult, error) {
			close(entered)
			<-ctx.Done()
			return unit.ToolResult{}, ctx.Err()
		}),
		tool("panic", func(context.Context, unit.ToolCall) (unit.ToolResult, error) { panic("not contained") }),
	}})
	call := func(ctx context.Context, name string) (*pluginproto.CallToolResponse, error) {
		return client.CallTool(ctx, &pluginproto.CallToolRequest{Tool: name, Session: "s", Arguments: []byte("{}"), Seq: 4, Values: []*pluginproto.UnitValue{{Key: "k", View: []byte("1")}}})
	}
	a, err := call(t.Context(), "echo")
	want := &pluginproto.ToolSuccess{Text: "s4", Value: []byte("1"), Events: []*pluginproto.NewEvent{{Type: "t", Data: []byte("{}"), Ignorable: true}, {Type: "u"}}}
	if err != nil || !proto.Equal(a.GetSuccess(), want) {
		t.Errorf("got %v, %v", a, err)
	}
	for _, name := range []string{"refuse", "large", "no such tool"} {
		if a, err := call(t.Context(), name); err != nil || a.GetFailure().GetMessage() == "" {
			t.Errorf("%s: got %v, %v; want an error result", name, a, err)
		}
	}
	if _, err := call(t.Context(), "panic"); status.Code(err) != codes.Internal || !out.has("not contained") || !out.has("service_test.go") {
		t.Errorf("a panic: %v; it is an error, with the stack in the log", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := call(ctx, "slow"); status.Code(err) != codes.Canceled {
		t.Errorf("a call that was given up: %v", err)
	}
	if _, err := client.Drain(t.Context(), &pluginproto.DrainRequest{}); err != nil {
		t.Errorf("draining after the calls: %v", err)
	}
}

func TestTheSocketIsThatOfTheHandshakeLine(t *testing.T) {
	for line, want := range map[string]string{
		"1|1|unix|/run/x/plugin1|grpc|\n":  "/run/x/plugin1",
		"1|1|tcp|127.0.0.1:1234|grpc|\n":   "",
		"hello\n":                          "",
		"1|1|unix|/run/x|grpc|cert|true\n": "/run/x",
	} {
		if got := socketOf(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
