package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
)

// Each call does over a network and without one what docs/server.md says.
func TestCalls(t *testing.T) {
	for name, through := range map[string]func(*server) *client.Client{
		"over the network": func(s *server) *client.Client { return s.client() },
		"in this process":  (*server).inProcess,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, nil, api.Options{})
			calls(t, through(s))
		})
	}
}

func calls(t *testing.T, c *client.Client) {
	ctx := bounded(t)
	if err := c.Healthy(ctx); err != nil {
		t.Error(err)
	}
	if r, err := c.Ready(ctx); err != nil || !r.Ready && len(r.Missing) > 0 {
		t.Errorf("%+v %v", r, err)
	}

	made, created, err := c.Create(ctx, client.NewSession{ID: "a", CWD: "/<home>", CreatedAt: new(int64(5)), Seed: []client.Item{step(0)}})
	if err != nil || !created || made.Header.ID != "a" || made.Header.CWD != "/<home>" || made.Header.CreatedAt != 5 || made.Seq != 2 || made.FirstLiveSeq != 1 {
		t.Fatalf("%+v %v %v", made, created, err)
	}
	if _, created, err = c.Create(ctx, client.NewSession{ID: "a", Seed: []client.Item{step(0)}}); err != nil || created {
		t.Errorf("again: %v %v", created, err)
	}

	// Data goes through byte for byte.
	odd := `{"z":1.50,"a":"<&>\u2028 é","b":[1e3]}`
	a, err := c.Append(ctx, "a", []client.Item{
		{Type: "note", Data: json.RawMessage(odd), Time: new(int64(7)), Ignorable: true},
		client.RawItem([]byte(`{"type":"step","data":null}`)),
		{Type: event.UserMessage, Op: event.Append(), Data: map[string]any{"id": "u", "role": "user", "source": map[string]any{"kind": "user"}, "content": []any{}}},
	}, client.AppendOptions{ExpectedSeq: new(int64(2)), Projections: true})
	if err != nil || a.Seq != 5 || len(a.Events) != 3 || a.Events[0] != (client.Place{Seq: 2, Time: 7}) || a.Projections == nil || string(a.Projections.Values["steps"]) != "2" {
		t.Fatalf("%+v %v", a, err)
	}
	if a, err = c.Append(ctx, "a", []client.Item{step(2)}, client.AppendOptions{Projections: true, Keys: []string{}, Once: client.Once{NoKey: true}}); err != nil || a.Projections == nil || len(a.Projections.Values) != 0 {
		t.Errorf("no keys: %+v %v", a, err)
	}
	page, err := c.EventPage(ctx, "a", client.EventsQuery{From: 2, Limit: 1})
	if err != nil || page.Seq != 6 || len(page.Events) != 1 || string(page.Events[0].Data) != odd || !page.Events[0].Ignorable {
		t.Errorf("%+v %v", page, err)
	}
	for _, q := range []struct {
		client.EventsQuery
		want []int64
	}{
		{client.EventsQuery{}, []int64{0, 1, 2, 3, 4, 5}},
		{client.EventsQuery{From: 4}, []int64{4, 5}},
		{client.EventsQuery{Types: []string{"step", "note"}}, []int64{0, 2, 3, 5}},
		{client.EventsQuery{Types: []string{"step"}, Limit: 2}, []int64{0, 3}},
		{client.EventsQuery{From: 6}, nil},
	} {
		var got []int64
		for ev, err := range c.Events(ctx, "a", q.EventsQuery) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ev.Seq)
		}
		if !slices.Equal(got, q.want) {
			t.Errorf("%+v gives %v", q.EventsQuery, got)
		}
	}

	last, err := c.History(ctx, "a", client.HistoryQuery{MaxMessages: 1, Keys: []string{"steps"}})
	if err != nil || !last.HasMore || last.Events[0].Seq != 4 || len(last.Events) != 2 || last.Projections.AsOfSeq != 5 || string(last.Projections.Values["steps"]) != "3" {
		t.Errorf("%+v %v", last, err)
	}
	if before, err := c.History(ctx, "a", client.HistoryQuery{BeforeSeq: &last.Events[0].Seq}); err != nil || before.HasMore || len(before.Events) != 4 || before.Projections != nil {
		t.Errorf("%+v %v", before, err)
	}

	b, err := c.Projections(ctx, "a", client.ValuesQuery{At: new(int64(0))})
	if err != nil || b.AsOfSeq != 0 || !b.Historical || string(b.Values["steps"]) != "1" {
		t.Errorf("%+v %v", b, err)
	}
	if b, err = c.Projections(ctx, "a", client.ValuesQuery{MinSeq: new(int64(5)), Keys: []string{"steps", "none"}}); err != nil || b.Historical || string(b.Values["steps"]) != "3" || b.Revs["steps"] == 0 || b.Epoch == "" {
		t.Errorf("%+v %v", b, err)
	}
	if s, err := c.Surface(ctx, "a"); err != nil || !slices.Equal(s.Nodes, []int64{4}) || s.AsOfSeq != 5 {
		t.Errorf("%+v %v", s, err)
	}
	if m, err := c.Messages(ctx, "a"); err != nil || len(m.Messages) != 1 || m.AsOfSeq != 5 {
		t.Errorf("%+v %v", m, err)
	}
	message := map[string]any{"id": "c", "role": "user", "source": map[string]any{"kind": "compaction"}, "content": []any{}}
	if a, err := c.Compact(ctx, "a", client.Compaction{Start: 4, End: 4, Message: message}); err != nil || len(a.Events) != 1 || a.Seq != 7 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := c.Append(ctx, "a", []client.Item{{Type: event.TurnStart, Data: map[string]int{"turn": 1}}}, client.AppendOptions{}); err != nil {
		t.Error(err)
	}
	if a, err := c.Recover(ctx, "a", client.Once{}); err != nil || len(a.Events) != 1 {
		t.Errorf("%+v %v", a, err)
	}
	child, err := c.Fork(ctx, "a", client.Fork{ID: "b", AtSeq: new(int64(7))})
	if err != nil || child.Header.ID != "b" || child.Header.ParentSession != "a" {
		t.Errorf("%+v %v", child, err)
	}
	if b, err := c.Retry(ctx, "a", []string{"steps"}); err != nil || string(b.Values["steps"]) != "3" {
		t.Errorf("%+v %v", b, err)
	}
	if v, err := c.Verify(ctx, "a"); err != nil || !v.OK || v.Seq != 9 || !slices.Equal(v.Keys, []string{"steps"}) {
		t.Errorf("%+v %v", v, err)
	}
	var log bytes.Buffer
	if err := c.Export(ctx, "a", &log, client.ExportOptions{}); err != nil || bytes.Count(log.Bytes(), []byte("\n")) != 10 {
		t.Errorf("%s %v", &log, err)
	}
	torn := append(slices.Clone(log.Bytes()), `{"type":`...)
	var took client.Imported
	for range 2 { // With its key it is taken once.
		took, err = c.Import(ctx, bytes.NewReader(torn), client.ImportOptions{ID: "copy", Key: "k"})
	}
	if err != nil || took.Header.ID != "copy" || took.Seq != 9 || len(took.Warnings) != 1 {
		t.Errorf("%+v %v", took, err)
	}
	if _, err := c.Import(ctx, &log, client.ImportOptions{}); code(err) != client.CodeSessionConflict {
		t.Errorf("imported again: %v", err)
	}
	if err := c.Delete(ctx, "copy"); err != nil {
		t.Error(err)
	}
	if cold, err := c.Detach(ctx, "a"); err != nil || cold.Live {
		t.Errorf("%+v %v", cold, err)
	}

	first, err := c.List(ctx, client.ListQuery{Limit: 1, Keys: []string{}})
	if err != nil || len(first.Sessions) != 1 || first.Cursor == "" {
		t.Errorf("%+v %v", first, err)
	}
	var ids []string
	for one, err := range c.Sessions(ctx, client.ListQuery{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, one.Header.ID)
	}
	if slices.Sort(ids); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("the list is %v", ids)
	}
	got, err := c.Get(ctx, "a")
	if err != nil || got.Incarnation != made.Incarnation || got.Seq != 9 {
		t.Errorf("%+v %v", got, err)
	}
	// What is read can be written, and is the same.
	text, err := event.Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	var back client.Session
	if err := json.Unmarshal(text, &back); err != nil || back.Header.CWD != "/<home>" || back.Seq != got.Seq || !bytes.Contains(text, []byte(`"/<home>"`)) {
		t.Errorf("%s %v", text, err)
	}
	if err := c.Delete(ctx, "b"); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "b"); code(err) != client.CodeSessionNotFound {
		t.Errorf("deleted: %v", err)
	}
}

// code is that of an *Error.
func code(err error) client.Code {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return ""
	}
	return e.Code
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	s := serve(t, nil, api.Options{MaxBodyBytes: 1000})
	c := s.client()
	ctx := bounded(t)
	fill(t, c, "s", 2)
	appending := func(o client.AppendOptions, items ...client.Item) error {
		_, err := c.Append(ctx, "s", items, o)
		return err
	}
	values := func(q client.ValuesQuery) error {
		_, err := c.Projections(ctx, "s", q)
		return err
	}
	detailed := func(e *client.Error) bool { return e.Status == 400 && e.Detail != "" }
	for name, want := range map[string]struct {
		err  error
		code client.Code
		more func(*client.Error) bool
	}{
		"an unknown session": {c.Delete(ctx, "other"), client.CodeSessionNotFound, func(e *client.Error) bool { return e.Status == 404 }},
		"an expected seq": {appending(client.AppendOptions{ExpectedSeq: new(int64(9))}, step(1)), client.CodeSeqConflict,
			func(e *client.Error) bool { return e.Seq != nil && *e.Seq == 2 }},
		"an event that is none": {appending(client.AppendOptions{}, step(1), client.Item{Type: event.UserMessage, Op: event.Append()}), client.CodeEventInvalid,
			func(e *client.Error) bool { return e.Index != nil && *e.Index == 1 && e.Reason == "message-invalid" }},
		"a field that is none": {appending(client.AppendOptions{}, client.RawItem([]byte(`{"type":"x","data":1,"seq":4}`))), client.CodeBodyInvalid,
			func(e *client.Error) bool { return e.Path == "$.events[0].seq" }},
		"too much": {appending(client.AppendOptions{}, client.Item{Type: "x", Data: string(make([]byte, 1000))}), client.CodeTooLarge,
			func(e *client.Error) bool { return e.Limit == 1000 && e.Size > 1000 }},
		// What is below 0 is as wrong as it is in the address, and not taken for nothing said.
		"values before all":    {values(client.ValuesQuery{At: new(int64(-2))}), client.CodeBodyInvalid, detailed},
		"a wait into the past": {values(client.ValuesQuery{MinSeq: new(int64(1)), Wait: -time.Second}), client.CodeBodyInvalid, detailed},
		"events before all":    {func() error { _, err := c.EventPage(ctx, "s", client.EventsQuery{From: -1}); return err }(), client.CodeBodyInvalid, detailed},
		"less than no events":  {func() error { _, err := c.EventPage(ctx, "s", client.EventsQuery{Limit: -1}); return err }(), client.CodeBodyInvalid, detailed},
		"less than no events as they come": {func() (last error) {
			for _, err := range c.Events(ctx, "s", client.EventsQuery{Limit: -1}) {
				last = err
			}
			return last
		}(), client.CodeBodyInvalid, detailed},
		"less than no messages": {func() error { _, err := c.History(ctx, "s", client.HistoryQuery{MaxMessages: -1}); return err }(), client.CodeBodyInvalid, detailed},
		"less than no sessions": {func() error { _, err := c.List(ctx, client.ListQuery{Limit: -1}); return err }(), client.CodeBodyInvalid, detailed},
		"a fork before all":     {func() error { _, err := c.Fork(ctx, "s", client.Fork{AtSeq: new(int64(-1))}); return err }(), client.CodeBodyInvalid, detailed},
		"a seq that is not there": {values(client.ValuesQuery{MinSeq: new(int64(5)), Wait: 1}), client.CodeNotReached,
			func(e *client.Error) bool { return e.Status == 504 && *e.Seq == 2 }},
	} {
		e, ok := errors.AsType[*client.Error](want.err)
		if !ok || e.Code != want.code || e.Doing == "" || e.Detail == "" || !want.more(e) {
			t.Errorf("%s: %#v", name, want.err)
		}
	}
	for name, err := range map[string]error{
		"an id that leads elsewhere": func() error { _, err := c.Get(ctx, ".."); return err }(),
		"data that is no JSON":       appending(client.AppendOptions{}, client.Item{Type: "x", Data: func() {}}),
	} {
		if _, ok := errors.AsType[*event.Error](err); !ok {
			t.Errorf("%s: %#v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "..."} {
		_, tool := c.CallTool(ctx, "s", name, nil, client.Once{})
		_, plugin := c.RestartPlugin(ctx, name)
		for _, err := range []error{tool, plugin} {
			if e, ok := errors.AsType[*client.NameError](err); !ok || e.Name != name || e.Doing == "" {
				t.Errorf("the name %q: %#v", name, err)
			}
		}
	}
	// What else is no name is for the server to say.
	_, tool := c.CallTool(ctx, "s", "../..", nil, client.Once{})
	_, plugin := c.RestartPlugin(ctx, "../a")
	if code(tool) != client.CodeToolNotFound || code(plugin) != client.CodeNotFound {
		t.Errorf("a name with slashes: %v, %v", tool, plugin)
	}
	if at, ok := errors.AsType[*event.IndexError](appending(client.AppendOptions{}, step(1), client.RawItem([]byte("{")))); !ok || at.Index != 1 {
		t.Errorf("raw text that is no JSON: %v", at)
	}
	if now, err := c.Get(ctx, "s"); err != nil || now.Seq != 2 {
		t.Errorf("what was refused changed the log: %+v %v", now, err)
	}
}

func TestAnswersOfOtherPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       func(error) bool
	}{
		"a page": {404, "text/html", "<h1>no</h1>", func(err error) bool {
			e, ok := errors.AsType[*client.Error](err)
			return ok && e.Status == 404 && e.Code == ""
		}},
		"a page that says all is well": {200, "text/html", "<h1>yes</h1>", func(err error) bool {
			_, ok := errors.AsType[*client.AnswerError](err)
			return ok
		}},
		"another JSON": {200, "application/json", `{"header":[]}`, func(err error) bool {
			_, ok := errors.AsType[*client.AnswerError](err)
			return ok
		}},
		"a problem of others": {401, "application/problem+json", `{"code":"unauthenticated","detail":"a token"}`, func(err error) bool {
			return code(err) == client.CodeUnauthenticated
		}},
	} {
		other := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			w.Write([]byte(c.body))
		})
		_, err := dial(t, client.Options{URL: "http://other", HTTP: &http.Client{Transport: client.InProcess(other)}}).Get(bounded(t), "s")
		if err == nil || !c.want(err) {
			t.Errorf("%s: %#v", name, err)
		}
	}
	for _, url := range []string{"", "127.0.0.1:7420", "ftp://x", "http://", "http://x?y=1", "/tmp", "http://127.0.0.1:99999", "http://127.0.0.1:0"} {
		if _, err := client.New(client.Options{URL: url}); err == nil {
			t.Errorf("%q is taken for the URL of a server", url)
		}
	}
}

// A token goes with every call, also below a path.
func TestTokenAndPath(t *testing.T) {
	var seen []string
	c := dial(t, client.Options{URL: "http://h/below/", Token: "secret", HTTP: &http.Client{Transport: client.InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization")+" "+r.URL.RequestURI())
		w.WriteHeader(http.StatusNoContent)
	}))}})
	if err := c.Delete(bounded(t), "a.b"); err != nil {
		t.Fatal(err)
	}
	if err := c.Healthy(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Bearer secret /below/v1/sessions/a.b", "Bearer secret /below/healthz"}; !slices.Equal(seen, want) {
		t.Errorf("it sends %q", seen)
	}
}
