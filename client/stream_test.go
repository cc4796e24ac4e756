package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// reading is a stream that is read frame by frame.
type reading struct {
	t    testing.TB
	next func() (client.Frame, error, bool)
}

func follow(t testing.TB, c *client.Client, id string, o client.StreamOptions) *reading {
	next, stop := iter.Pull2(c.Stream(bounded(t), id, o))
	t.Cleanup(stop)
	return &reading{t, next}
}

// frame reads the next frame, which must be of a kind.
func frameOf[F client.Frame](r *reading) F {
	r.t.Helper()
	f, err, ok := r.next()
	want, is := f.(F)
	if err != nil || !ok || !is {
		var none F
		r.t.Fatalf("the stream gives %T %+v, %v; want %T", f, f, err, none)
	}
	return want
}

// ended wants the stream to end here, with an error of this code, or without one.
func (r *reading) ended(want client.Code) {
	r.t.Helper()
	f, err, ok := r.next()
	if want == "" && ok || want != "" && code(err) != want {
		r.t.Errorf("the stream gives %T, %v, %v", f, err, ok)
	}
}

func TestAStreamGivesFramesAsTheyCome(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "s", 2)
	r := follow(t, c, "s", client.StreamOptions{After: client.Position(0)})
	sub := frameOf[*client.SubscribedFrame](r)
	if sub.LastSeq != 1 || sub.Incarnation == "" || sub.Epoch == "" || sub.HeartbeatMs == 0 || sub.Session() != "s" {
		t.Errorf("%+v", sub)
	}
	if ev := frameOf[*client.EventFrame](r); ev.Event.Seq != 1 || ev.Event.Type != "step" || string(ev.Event.Data) != `{"n":1}` || ev.Position != sub.Incarnation+":1" {
		t.Errorf("%+v", ev)
	}
	if b := frameOf[*client.BaselineFrame](r); b.Block.AsOfSeq != 1 || string(b.Block.Values["steps"]) != "2" || b.Position != sub.Incarnation+":1" || !strings.Contains(string(b.JSON()), `"session/baseline"`) {
		t.Errorf("%+v", b)
	}
	if _, err := c.Append(bounded(t), "s", []client.Item{step(2), {Type: "break"}}, client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{2, 3} {
		if ev := frameOf[*client.EventFrame](r); ev.Event.Seq != want {
			t.Errorf("%+v", ev)
		}
	}
	f, _, _ := r.next()
	if p, is := f.(*client.ProjectionFrame); is { // The feed may have it, or only what came after it.
		if string(p.Value) != "3" || p.Key != "steps" || p.Seq != 2 || p.Rev == 0 {
			t.Errorf("%+v", p)
		}
		f, _, _ = r.next()
	}
	if u, is := f.(*client.UnavailableFrame); !is || u.Key != "steps" || u.Code != "faulted" {
		t.Errorf("%T %+v", f, f)
	}
	if err := c.Delete(bounded(t), "s"); err != nil {
		t.Fatal(err)
	}
	frameOf[*client.DeletedFrame](r)
	r.ended("")
}

func TestWhatAStreamLeavesOut(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "s", 2)
	r := follow(t, c, "s", client.StreamOptions{After: client.FromStart, Events: []string{}, Keys: []string{}})
	frameOf[*client.SubscribedFrame](r)
	if b := frameOf[*client.BaselineFrame](r); len(b.Block.Values) != 0 || b.Block.AsOfSeq != 1 {
		t.Errorf("%+v", b)
	}
	r = follow(t, c, "s", client.StreamOptions{After: client.Position(7)})
	frameOf[*client.SubscribedFrame](r)
	if reset := frameOf[*client.ResetFrame](r); reset.Reason != "beyond-end" {
		t.Errorf("%+v", reset)
	}
	frameOf[*client.BaselineFrame](r)
	follow(t, c, "other", client.StreamOptions{}).ended(client.CodeSessionNotFound)
	follow(t, c, "s", client.StreamOptions{After: "nowhere"}).ended(client.CodeBodyInvalid)
}

// Given a network that cuts every connection after a few hundred bytes, in the middle of whatever it is, a reader of a stream gets every event once and in order, and at the end the
// latest value; and so does a reader of the log.
func TestCutConnections(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	s := serve(t, nil, api.Options{})
	direct := s.client()
	const before, after = 25, 25
	fill(t, direct, "s", before)
	proxy := cut(t, s.url, func() int64 { return 300 + dice.Int64N(2000) })
	c := dial(t, client.Options{URL: proxy.url})
	broken := 0
	done := make(chan error, 1)
	next := int64(0)
	for f, err := range c.Stream(bounded(t), "s", client.StreamOptions{After: client.FromStart, Broken: func(error, time.Duration) { broken++ }}) {
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *client.EventFrame:
			if f.Event.Seq != next {
				t.Fatalf("event %d comes where %d is next", f.Event.Seq, next)
			}
			if next++; next == before {
				go func() {
					for i := range after {
						if _, err := direct.Append(context.Background(), "s", []client.Item{step(before + i)}, client.AppendOptions{}); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			continue
		case *client.BaselineFrame:
			if f.Block.AsOfSeq < next-1 {
				t.Fatalf("a baseline as of %d after event %d", f.Block.AsOfSeq, next-1)
			}
			if string(f.Block.Values["steps"]) != fmt.Sprint(before+after) {
				continue
			}
		case *client.ProjectionFrame:
			if f.Seq >= next {
				t.Fatalf("a value of event %d before it", f.Seq)
			}
			if string(f.Value) != fmt.Sprint(before+after) {
				continue
			}
		default:
			continue
		}
		break
	}
	if err := <-done; err != nil || next != before+after {
		t.Fatalf("%d events, %v", next, err)
	}
	if broken < 5 || proxy.cuts() < broken {
		t.Errorf("only %d breaks were met, and %d made", broken, proxy.cuts())
	}
	next = 0
	for ev, err := range c.Events(bounded(t), "s", client.EventsQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Seq != next {
			t.Fatalf("event %d comes where %d is next", ev.Seq, next)
		}
		next++
	}
	if next != before+after {
		t.Errorf("the log has %d events", next)
	}
}

// Given a server that is started anew, a stream goes on behind the last event, and says so; given a session that is gone then, it says that.
func TestAStreamOutlivesItsServer(t *testing.T) {
	store := memory.New()
	defer store.Close()
	first := serve(t, store, api.Options{})
	fill(t, first.client(), "s", 1)
	fill(t, first.client(), "gone", 1)
	now := first
	c := dialMoving(t, &now)
	r, gone := follow(t, c, "s", client.StreamOptions{}), follow(t, c, "gone", client.StreamOptions{})
	for _, r := range []*reading{r, gone} {
		frameOf[*client.SubscribedFrame](r)
		frameOf[*client.BaselineFrame](r)
	}
	first.close()
	now = serve(t, store, api.Options{})
	if _, err := c.Append(bounded(t), "s", []client.Item{step(1)}, client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(bounded(t), "gone"); err != nil {
		t.Fatal(err)
	}
	if sub := frameOf[*client.SubscribedFrame](r); sub.LastSeq != 1 {
		t.Errorf("%+v", sub)
	}
	if ev := frameOf[*client.EventFrame](r); ev.Event.Seq != 1 {
		t.Errorf("%+v", ev)
	}
	frameOf[*client.BaselineFrame](r)
	if d := frameOf[*client.DeletedFrame](gone); d.Session() != "gone" || fmt.Sprint(d) != string(d.JSON()) || string(d.JSON()) != `{"type":"session/deleted","sessionId":"gone"}` {
		t.Errorf("%+v", d)
	}
	gone.ended("")
}

// scripted answers the connections of a stream, one after the other, and hears where each began.
func scripted(t testing.TB, after *[]string, bodies ...io.ReadCloser) *client.Client {
	i := 0
	return dial(t, client.Options{URL: "http://x", Tries: 2, HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		*after = append(*after, r.URL.Query().Get("after"))
		if i == len(bodies) {
			return nil, errors.New("no more")
		}
		i++
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: bodies[i-1]}, nil
	})}})
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

const subscribed = "event: session/subscribed\ndata: {\"sessionId\":\"s\",\"lastSeq\":4,\"incarnation\":\"I\",\"heartbeatMs\":1000}\n\n"

// Where a stream goes on, by what came before the break.
func TestWhereAStreamGoesOn(t *testing.T) {
	ev := func(seq int) string {
		return fmt.Sprintf("event: session/event\nid: I:%d\ndata: {\"event\":{\"type\":\"x\",\"seq\":%d,\"time\":0,\"data\":null}}\n\n", seq, seq)
	}
	baseline := "event: session/baseline\nid: I:6\ndata: {\"asOfSeq\":6}\n\n"
	for name, c := range map[string]struct{ begin, said, on string }{
		"nothing said, from now on":           {"", "", ""},
		"subscribed, from now on":             {"", subscribed, "I:4"},
		"subscribed, from the start":          {"-1", subscribed, "I:-1"},
		"subscribed, from a place":            {"J:2", subscribed, "J:2"},
		"an event":                            {"-1", subscribed + ev(0), "I:0"},
		"an event that has no end":            {"-1", subscribed + ev(0) + strings.TrimSuffix(ev(1), "\n"), "I:0"},
		"a baseline":                          {"-1", subscribed + ev(0) + baseline, "I:6"},
		"kinds and fields of another version": {"-1", subscribed + ev(0) + "event: session/new\nid: I:9\ndata: {}\n\nretry: 5\nodd\n\n: comment\n\n", "I:0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var after []string
			cl := scripted(t, &after, text(c.said))
			var last error
			for _, err := range cl.Stream(t.Context(), "s", client.StreamOptions{After: c.begin, Tries: 2}) {
				last = err
			}
			if _, ok := errors.AsType[*client.NetworkError](last); !ok || len(after) < 2 || after[0] != c.begin || after[1] != c.on {
				t.Errorf("%s: it connects at %q, %v", name, after, last)
			}
		})
	}
}

// What makes no sense ends a stream, since it would come again.
func TestAStreamThatMakesNoSense(t *testing.T) {
	for name, said := range map[string]string{
		"no JSON":          "event: session/event\ndata: {\n\n",
		"no event":         "event: session/event\ndata: {\"event\":5}\n\n",
		"an endless frame": "event: session/event\n" + strings.Repeat("data: xxxxxxxxx\n", 100),
		"an endless line":  "data: " + strings.Repeat("x", 1000),
	} {
		c := dial(t, client.Options{URL: "http://x", MaxFrameBytes: 500, HTTP: &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: text(subscribed + said)}, nil
		})}})
		var last error
		for _, err := range c.Stream(bounded(t), "s", client.StreamOptions{}) {
			last = err
		}
		if _, ok := errors.AsType[*client.AnswerError](last); !ok {
			t.Errorf("%s: %v", name, last)
		}
	}
}

// silence is a body that says something and then nothing, until it is closed or its request ends.
func silence(said string) *http.Response {
	r, w := io.Pipe()
	go io.WriteString(w, said)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r}
}

// A connection on which not even heartbeats come is given up, while a reader that takes its time is no reason; and the context ends whatever is waited for.
func TestASilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var breaks []time.Time
		c := dial(t, client.Options{URL: "http://x", HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			res := silence(subscribed)
			context.AfterFunc(r.Context(), func() { res.Body.(*io.PipeReader).CloseWithError(r.Context().Err()) })
			return res, nil
		})}})
		frames := 0
		var late time.Time
		for f, err := range c.Stream(ctx, "s", client.StreamOptions{Broken: func(err error, _ time.Duration) { breaks = append(breaks, time.Now()) }}) {
			if f == nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("it ends with %v", err)
				}
				break
			}
			if frames++; frames == 1 {
				time.Sleep(time.Hour) // It has all the time in the world.
				late = time.Now()
			}
			if frames == 2 {
				time.AfterFunc(time.Second, cancel)
			}
		}
		if len(breaks) != 1 || frames != 2 || breaks[0].Sub(late) != 7*time.Second {
			t.Errorf("%d frames, breaks at %v", frames, breaks)
		}
	})
}

// Leaving the loop ends the connection, and the goroutines of the server with it; goleak looks.
func TestLeavingAStream(t *testing.T) {
	s := serve(t, nil, api.Options{})
	for _, c := range []*client.Client{s.client(), s.inProcess()} {
		c.Create(bounded(t), client.NewSession{ID: "s"})
		for f, err := range c.Stream(bounded(t), "s", client.StreamOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := f.(*client.BaselineFrame); ok {
				break
			}
		}
		var seqs []int64
		c.Append(bounded(t), "s", []client.Item{step(1), step(2)}, client.AppendOptions{})
		for ev := range c.Events(bounded(t), "s", client.EventsQuery{}) {
			seqs = append(seqs, ev.Seq)
			break
		}
		if !slices.Equal(seqs, []int64{0}) {
			t.Errorf("%v", seqs)
		}
	}
}

// A large event is no problem within the bound.
func TestLargeFrames(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "s", 0)
	large := strings.Repeat("x", 3<<20)
	if _, err := c.Append(bounded(t), "s", []client.Item{{Type: "large", Data: large}}, client.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	r := follow(t, c, "s", client.StreamOptions{After: client.FromStart})
	frameOf[*client.SubscribedFrame](r)
	got := frameOf[*client.EventFrame](r)
	if text, _ := event.String(got.Event.Data); text != large {
		t.Errorf("it comes with %d bytes", len(text))
	}
	small := s.client(func(o *client.Options) { o.MaxFrameBytes = 1 << 20 })
	for _, err := range small.Events(bounded(t), "s", client.EventsQuery{}) {
		if _, ok := errors.AsType[*client.AnswerError](err); !ok {
			t.Errorf("beyond the bound: %v", err)
		}
	}
}
