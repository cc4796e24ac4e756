package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/surface"
)

func TestAResultHasTheFixedShape(t *testing.T) {
	for name, c := range map[string]struct {
		result host.Result
		file   string
		want   string
	}{
		"of an empty log": {host.Result{AsOfSeq: -1}, "",
			`{"accepted":true,"events":0,"asOfSeq":-1,"surface":{"nodes":[],"replaceGeneration":0,"replacements":[]},"messages":[],"closers":[],"changes":[],"values":{}}`},
		"with everything": {host.Result{
			Events: 3, AsOfSeq: 2,
			Surface:     surface.State{Nodes: []int64{2, 1}, ReplaceGeneration: 1, Replacements: []surface.Replacement{{Seq: 2, Start: 0, End: 0, ShadowedSeqs: []int64{0}}}},
			Messages:    []host.Message{{ID: []byte(`"<&>"`), Role: []byte(`"user"`)}},
			Closers:     []string{"step/end", "turn/end"},
			Changes:     []host.ReplayChange{{Key: "a", Seq: 1, Value: []byte(`{"<":1.0}`)}},
			Values:      map[string]json.RawMessage{"b": []byte(`null`), "a": []byte(`{"<":1.0}`)},
			Unavailable: map[string]registry.Unavailable{"c": {Code: registry.Faulted, Seq: 1, Message: "why"}},
		}, "a b.jsonl",
			`{"file":"a b.jsonl","accepted":true,"events":3,"asOfSeq":2,"surface":{"nodes":[2,1],"replaceGeneration":1,"replacements":[{"seq":2,"start":0,"end":0,"shadowedSeqs":[0]}]},` +
				`"messages":[{"id":"<&>","role":"user"}],"closers":["step/end","turn/end"],"changes":[{"key":"a","seq":1,"value":{"<":1.0}}],"values":{"a":{"<":1.0},"b":null},` +
				`"unavailable":{"c":{"code":"faulted","seq":1,"message":"why"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			if err := c.result.WriteJSON(&got, c.file); err != nil || got.String() != c.want {
				t.Errorf("got  %s, %v\nwant %s", got.String(), err, c.want)
			}
		})
	}
}

// pieces counts what is written and how much at once, until it has had enough.
type pieces struct{ most, sum, enough int }

func (p *pieces) Write(text []byte) (int, error) {
	if p.sum += len(text); p.sum > p.enough {
		return 0, io.ErrShortWrite
	}
	p.most = max(p.most, len(text))
	return len(text), nil
}

func TestALongResultGoesOutPieceByPiece(t *testing.T) {
	value := []byte(`"` + strings.Repeat("x", 10_000) + `"`)
	r := host.Result{Changes: make([]host.ReplayChange, 10_000)}
	for i := range r.Changes {
		r.Changes[i] = host.ReplayChange{Key: "k", Seq: int64(i), Value: value}
	}
	out := pieces{enough: 1 << 30}
	if err := r.WriteJSON(&out, ""); err != nil || out.sum < 100_000_000 || out.most > 1<<20 {
		t.Errorf("%d bytes, at most %d at once, %v", out.sum, out.most, err)
	}
	if err := r.WriteJSON(&pieces{enough: 1 << 20}, ""); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
}

func TestARefusalSaysWhereAndWhy(t *testing.T) {
	rule := &event.Error{Code: event.SurfaceOpMissing, Reason: "why"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a header":         {&event.IndexError{Index: event.HeaderIndex, Err: &event.Error{Code: event.HeaderInvalid, Reason: "why"}}, `{"index":null,"code":"header-invalid"}`},
		"a header alone":   {&event.Error{Code: event.HeaderInvalid, Reason: "why"}, `{"index":null,"code":"header-invalid"}`},
		"an event":         {&event.IndexError{Index: 7, Err: rule}, `{"index":7,"code":"surface-op-missing"}`},
		"wrapped":          {fmt.Errorf("while: %w", &event.IndexError{Index: 0, Err: rule}), `{"index":0,"code":"surface-op-missing"}`},
		"a missing file":   {&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, `{"index":null,"code":"file-unreadable"}`},
		"a log too short":  {&host.NotReachedError{Want: 5, Seq: 2}, `{"index":null,"code":"not-reached"}`},
		"something unread": {errors.New("the disk"), `{"index":null,"code":"file-unreadable"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Accepted bool
				Error    struct {
					Index   *int64 `json:"index"`
					Code    string `json:"code"`
					Message string `json:"message,omitempty"`
				}
			}
			if err := json.Unmarshal(host.RefusalOf(c.err).AppendJSON(nil, ""), &got); err != nil {
				t.Fatal(err)
			}
			if got.Accepted || got.Error.Message != c.err.Error() {
				t.Errorf("%+v", got)
			}
			got.Error.Message = ""
			if text, _ := json.Marshal(got.Error); string(text) != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}
