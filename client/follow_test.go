package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/eventlog/memory"
)

func followAll(t testing.TB, c *client.Client, o client.StreamOptions, ids ...string) *reading {
	next, stop := iter.Pull2(c.Follow(bounded(t), followed(ids...), o))
	t.Cleanup(stop)
	return &reading{t, next}
}

func followed(ids ...string) (list []client.Followed) {
	for _, id := range ids {
		list = append(list, client.Followed{ID: id})
	}
	return list
}

// of reads the next frame, which must be of a kind and of a session.
func of[F client.Frame](r *reading, id string) F {
	r.t.Helper()
	f := frameOf[F](r)
	if f.Session() != id {
		r.t.Fatalf("%T is of %q, want %q", f, f.Session(), id)
	}
	return f
}

func TestFollowGivesTheFramesOfAll(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "a", 2)
	fill(t, c, "b", 1)
	r := followAll(t, c, client.StreamOptions{After: client.FromStart}, "a", "none", "b")
	of[*client.UnknownFrame](r, "none")
	a := of[*client.SubscribedFrame](r, "a")
	if a.LastSeq != 1 || a.Incarnation == "" || a.HeartbeatMs == 0 {
		t.Errorf("%+v", a)
	}
	b := of[*client.SubscribedFrame](r, "b")
	for i := range int64(2) {
		if ev := of[*client.EventFrame](r, "a"); ev.Event.Seq != i || ev.Position != fmt.Sprint(a.Incarnation, ":", i) {
			t.Errorf("%+v", ev)
		}
	}
	if ev := of[*client.EventFrame](r, "b"); ev.Event.Seq != 0 || ev.Position != b.Incarnation+":0" {
		t.Errorf("%+v", ev)
	}
	for _, sub := range []*client.SubscribedFrame{a, b} {
		base := of[*client.BaselineFrame](r, sub.Session())
		if base.Block.AsOfSeq != sub.LastSeq || base.Position != fmt.Sprint(sub.Incarnation, ":", sub.LastSeq) || string(base.Block.Values["steps"]) != fmt.Sprint(sub.LastSeq+1) {
			t.Errorf("%+v", base)
		}
	}
	if _, err := c.Append(bounded(t), "b", []client.Item{step(1)}, client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	of[*client.EventFrame](r, "b")
	if p := of[*client.ProjectionFrame](r, "b"); string(p.Value) != "2" || p.Seq != 1 {
		t.Errorf("%+v", p)
	}
	for _, id := range []string{"b", "a"} {
		if err := c.Delete(bounded(t), id); err != nil {
			t.Fatal(err)
		}
		of[*client.DeletedFrame](r, id)
	}
	r.ended("")
}

func TestWhatFollowTakes(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "a", 2)
	fill(t, c, "b", 2)
	r := followAll(t, c, client.StreamOptions{After: client.FromStart, Events: []string{}, Keys: []string{}}, "a", "b")
	of[*client.SubscribedFrame](r, "a")
	of[*client.SubscribedFrame](r, "b")
	for _, id := range []string{"a", "b"} {
		if b := of[*client.BaselineFrame](r, id); len(b.Block.Values) != 0 || b.Block.AsOfSeq != 1 {
			t.Errorf("%+v", b)
		}
	}
	var ids []string
	for i := range 21 {
		ids = append(ids, fmt.Sprint("s", i))
	}
	followAll(t, c, client.StreamOptions{}, ids...).ended(client.CodeBodyInvalid)
	followAll(t, c, client.StreamOptions{}).ended(client.CodeBodyInvalid)
	followAll(t, c, client.StreamOptions{}, "a", "a").ended(client.CodeBodyInvalid)
	r = followAll(t, c, client.StreamOptions{}, "x", "y")
	of[*client.UnknownFrame](r, "x")
	of[*client.UnknownFrame](r, "y")
	r.ended("")
}

// Given a network that cuts every connection after a few hundred bytes, a reader of several sessions gets every event of each once and in order, no value before its event, and at the end the latest value
// of each; and that one was deleted meanwhile.
func TestCutConnectionsOfMany(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	s := serve(t, nil, api.Options{})
	direct := s.client()
	const before, after = 12, 12
	ids := []string{"a", "b", "c"}
	for _, id := range append(ids, "gone") {
		fill(t, direct, id, before)
	}
	proxy := cut(t, s.url, func() int64 { return 900 + dice.Int64N(2500) })
	c := dial(t, client.Options{URL: proxy.url})
	broken := 0
	done := make(chan error, 1)
	next, last, gone, all := map[string]int64{}, map[string]string{}, 0, int64(0)
	finished := func() bool {
		for _, id := range ids {
			if next[id] < before+after || last[id] != fmt.Sprint(before+after) {
				return false
			}
		}
		return gone == 1
	}
	for f, err := range c.Follow(bounded(t), followed(append(ids, "gone")...), client.StreamOptions{After: client.FromStart, Broken: func(error, time.Duration) { broken++ }}) {
		if err != nil {
			t.Fatal(err)
		}
		id := f.Session()
		switch f := f.(type) {
		case *client.EventFrame:
			if f.Event.Seq != next[id] {
				t.Fatalf("event %d of %s comes where %d is next", f.Event.Seq, id, next[id])
			}
			next[id]++
			if all++; all == 4*before {
				go func() {
					for i := range after {
						for _, id := range ids {
							if _, err := direct.Append(context.Background(), id, []client.Item{step(before + i)}, client.AppendOptions{}); err != nil {
								done <- err
								return
							}
						}
					}
					done <- direct.Delete(context.Background(), "gone")
				}()
			}
		case *client.BaselineFrame:
			if f.Block.AsOfSeq != next[id]-1 {
				t.Fatalf("a baseline of %s as of %d after event %d", id, f.Block.AsOfSeq, next[id]-1)
			}
			last[id] = string(f.Block.Values["steps"])
		case *client.ProjectionFrame:
			if f.Seq >= next[id] {
				t.Fatalf("a value of event %d of %s before it", f.Seq, id)
			}
			last[id] = string(f.Value)
		case *client.DeletedFrame:
			if gone++; id != "gone" {
				t.Fatalf("%s is deleted", id)
			}
		case *client.ResetFrame, *client.UnknownFrame:
			t.Fatalf("%T of %s", f, id)
		}
		if finished() {
			break
		}
	}
	if err := <-done; err != nil || !finished() {
		t.Fatalf("%v events, %v values, %v", next, last, err)
	}
	if broken < 5 || proxy.cuts() < broken {
		t.Errorf("only %d breaks were met, and %d made", broken, proxy.cuts())
	}
}

// Given a server that is started anew, it goes on behind the last event of each; and says of each session that is gone, or another one by then, that it is.
func TestFollowOutlivesItsServer(t *testing.T) {
	store := memory.New()
	defer store.Close()
	first := serve(t, store, api.Options{})
	for _, id := range []string{"s", "gone", "again"} {
		fill(t, first.client(), id, 1)
	}
	now := first
	c := dialMoving(t, &now)
	r := followAll(t, c, client.StreamOptions{}, "s", "gone", "again")
	for range 3 {
		frameOf[*client.SubscribedFrame](r)
	}
	for range 3 {
		frameOf[*client.BaselineFrame](r)
	}
	first.close()
	now = serve(t, store, api.Options{})
	if _, err := c.Append(bounded(t), "s", []client.Item{step(1)}, client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"gone", "again"} {
		if err := c.Delete(bounded(t), id); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, c, "again", 3)
	of[*client.DeletedFrame](r, "gone")
	if sub := of[*client.SubscribedFrame](r, "s"); sub.LastSeq != 1 {
		t.Errorf("%+v", sub)
	}
	of[*client.SubscribedFrame](r, "again")
	if reset := of[*client.ResetFrame](r, "again"); reset.Reason != "incarnation" {
		t.Errorf("%+v", reset)
	}
	seen := map[string]client.Frame{}
	for len(seen) < 3 { // The baselines of the two, and the event before that of its session.
		f, err, ok := r.next()
		if err != nil || !ok {
			t.Fatal(err)
		}
		if ev, is := f.(*client.EventFrame); is && (f.Session() != "s" || ev.Event.Seq != 1 || seen["s"] != nil) {
			t.Errorf("%+v", f)
		}
		seen[fmt.Sprintf("%s %T", f.Session(), f)] = f
	}
	if seen["s *client.EventFrame"] == nil || seen["s *client.BaselineFrame"] == nil || seen["again *client.BaselineFrame"] == nil {
		t.Errorf("%v", seen)
	}
}

// Where it goes on, by what came before the break.
func TestWhereFollowGoesOn(t *testing.T) {
	sub := func(id, life string, last int) string {
		return fmt.Sprintf("event: session/subscribed\ndata: {\"sessionId\":%q,\"lastSeq\":%d,\"incarnation\":%q,\"heartbeatMs\":1000}\n\n", id, last, life)
	}
	ev := func(id string, seq int) string {
		return fmt.Sprintf("event: session/event\nid: S:99\ndata: {\"sessionId\":%q,\"event\":{\"type\":\"x\",\"seq\":%d,\"time\":0,\"data\":null}}\n\n", id, seq)
	}
	say := func(id, kind, rest string) string {
		return fmt.Sprintf("event: session/%s\ndata: {\"sessionId\":%q%s}\n\n", kind, id, rest)
	}
	both := sub("a", "A", 4) + sub("b", "B", 7)
	for name, c := range map[string]struct{ a, b, said, on string }{
		"nothing said":                {"", "", "", `{"id":"a"},{"id":"b"}`},
		"from now on, and from there": {"", "X:3", both, `{"id":"a","after":"A:4"},{"id":"b","after":"X:3"}`},
		"one is said, one is not":     {"-1", "2", sub("a", "A", 4), `{"id":"a","after":"A:-1"},{"id":"b","after":"2"}`},
		"events":                      {"-1", "2", both + ev("b", 3) + ev("a", 0) + ev("b", 4), `{"id":"a","after":"A:0"},{"id":"b","after":"B:4"}`},
		"a baseline":                  {"-1", "", both + say("b", "baseline", `,"asOfSeq":8`), `{"id":"a","after":"A:-1"},{"id":"b","after":"B:8"}`},
		"a reset":                     {"X:3", "", both + say("a", "reset", `,"reason":"incarnation"`), `{"id":"a","after":"X:3"},{"id":"b","after":"B:7"}`},
		"one is gone":                 {"-1", "-1", both + ev("b", 0) + say("a", "deleted", ""), `{"id":"b","after":"B:0"}`},
		"one was never there":         {"-1", "-1", say("a", "unknown", "") + sub("b", "B", 7), `{"id":"b","after":"B:-1"}`},
		"one that nobody follows":     {"-1", "-1", both + sub("c", "C", 7) + ev("c", 5), `{"id":"a","after":"A:-1"},{"id":"b","after":"B:-1"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var bodies []string
			cl := dial(t, client.Options{URL: "http://x", HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				if bodies = append(bodies, string(body)); len(bodies) > 1 || r.Method != "POST" || r.URL.Path != "/v1/stream" {
					return nil, errors.New("no more")
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: text(c.said)}, nil
			})}})
			var last error
			for f, err := range cl.Follow(t.Context(), []client.Followed{{ID: "a", After: c.a}, {ID: "b", After: c.b}}, client.StreamOptions{Keys: []string{"k"}, Tries: 2}) {
				if last = err; f != nil && f.Session() == "c" {
					t.Errorf("%s: it gives %T", name, f)
				}
			}
			if _, ok := errors.AsType[*client.NetworkError](last); !ok || len(bodies) < 2 || bodies[1] != `{"sessions":[`+c.on+`],"keys":["k"]}` {
				t.Errorf("%s: it sends %q, %v", name, bodies, last)
			}
		})
	}
}

// Leaving the loop ends the connection; a loop over the same sequence begins anew.
func TestLeavingFollow(t *testing.T) {
	s := serve(t, nil, api.Options{})
	for _, c := range []*client.Client{s.client(), s.inProcess()} {
		c.Create(bounded(t), client.NewSession{ID: "a"})
		c.Create(bounded(t), client.NewSession{ID: "b"})
		frames := c.Follow(bounded(t), followed("a", "b"), client.StreamOptions{After: client.FromStart})
		for range 2 {
			n := 0
			for f, err := range frames {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := f.(*client.BaselineFrame); ok {
					if n++; n == 2 {
						break
					}
				}
			}
		}
	}
}
