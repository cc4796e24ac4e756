package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// session is the one that a frame is about.
func (fr *frame) session(t testing.TB) string {
	t.Helper()
	var of struct{ SessionID string }
	if err := json.Unmarshal([]byte(fr.data), &of); err != nil {
		t.Fatal(err)
	}
	return of.SessionID
}

// logged is the seq of an event.
func (fr *frame) logged(t testing.TB) int64 {
	t.Helper()
	var of struct{ Event struct{ Seq int64 } }
	if err := json.Unmarshal([]byte(fr.data), &of); err != nil {
		t.Fatal(err)
	}
	return of.Event.Seq
}

// of wants the next frame to be of this kind and of this session.
func (f *follower) of(id, kind, data string) frame {
	f.t.Helper()
	fr := f.want(kind, data)
	if got := fr.session(f.t); got != id {
		f.t.Fatalf("%s is about %q, want %q", kind, got, id)
	}
	return fr
}

const anySubscribed = `{"lastSeq":"*","incarnation":"*","epoch":"*","heartbeatMs":"*"}`

func TestAStreamOfManyInItsOrder(t *testing.T) {
	store := memory.New()
	s := serve(t, func(o *options) { o.store = store; o.api = api.Options{Heartbeat: 7 * time.Second} })
	for _, id := range []string{"a", "b"} {
		s.create(id)
		s.step(id, 2)
	}
	f := s.open("GET", "/v1/stream?session=a&session=none&session=b", "")
	f.of("none", "session/unknown", `{}`)
	f.of("a", "session/subscribed", fmt.Sprintf(`{"lastSeq":1,"incarnation":%q,"epoch":%q,"heartbeatMs":7000}`, s.incarnation("a"), s.host.Epoch()))
	f.of("b", "session/subscribed", anySubscribed)
	// Without a position there are no events of before.
	end := func() string {
		page, err := store.Tail(t.Context(), eventlog.TailQuery{After: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(store.Identity().StoreID, ":", page.End)
	}
	for _, id := range []string{"a", "b"} {
		if fr := f.of(id, "session/baseline", `{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":"*"}`); fr.id != end() {
			t.Errorf("the baseline of %s has id %q, want %q", id, fr.id, end())
		}
	}
	for i, id := range []string{"b", "a", "b"} {
		s.step(id, 1)
		seq := 2 + i/2
		if fr := f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, seq)); fr.id != end() {
			t.Errorf("the event has id %q, want %q", fr.id, end())
		}
		if fr := f.of(id, "session/projection", fmt.Sprintf(`{"key":"steps","value":%d,"seq":%d,"rev":"*"}`, seq+1, seq)); fr.id != "" {
			t.Errorf("a value moves the position to %q", fr.id)
		}
	}
	// One that goes is dropped, and the rest goes on; another life of the same id is not what was followed.
	s.do("DELETE", "/v1/sessions/a", "").want(204)
	f.of("a", "session/deleted", `{}`)
	s.create("a")
	s.step("a", 1)
	s.step("b", 1)
	f.of("b", "session/event", `{"event":"*"}`)
	f.of("b", "session/projection", `{"key":"steps","value":5,"seq":4,"rev":"*"}`)
	s.do("DELETE", "/v1/sessions/b", "").want(204)
	f.of("b", "session/deleted", `{}`)
	f.ended()
}

func TestWhatAStreamOfManyTakes(t *testing.T) {
	s := serve(t)
	var named []string
	list := func(n int) (query, body string) {
		named = named[:0]
		for i := range n {
			named = append(named, fmt.Sprint("s", i))
		}
		return "/v1/stream?session=" + strings.Join(named, "&session="), `{"sessions":[{"id":"` + strings.Join(named, `"},{"id":"`) + `"}]}`
	}
	query, body := list(20)
	for _, id := range named {
		s.create(id)
	}
	for _, f := range []*follower{s.open("GET", query, ""), s.open("POST", "/v1/stream", body)} {
		for _, kind := range []string{"session/subscribed", "session/baseline"} {
			for _, id := range named {
				if fr := f.next(); fr.kind != kind || fr.session(t) != id {
					t.Fatalf("%+v, want %s of %s", fr, kind, id)
				}
			}
		}
		f.end()
	}
	query, body = list(21)
	s.get(query).problem(400, "body-invalid", `"size":21`, `"limit":20`)
	s.post("/v1/stream", body).problem(400, "body-invalid", `"size":21`, `"limit":20`, `"path":"$.sessions"`)
	for _, query := range []string{"", "?session=", "?session=a&session=a", "?session=a&after=7", "?session=a&after=x", "?session=a&after=-2", "?session=a&after=s:9007199254740992", "?session=a&since=3", "?session=a&after=-1&after=-1"} {
		s.get("/v1/stream"+query).problem(400, "body-invalid")
	}
	for body, path := range map[string]string{
		`{}`: "", `{"sessions":[]}`: "", `{"sessions":[{}]}`: "", `{"sessions":[{"id":5}]}`: "", `{"sessions":[{"id":"a"},{"id":"a"}]}`: "",
		`{"sessions":{}}`:                                      "$.sessions",
		`{"sessions":["a"]}`:                                   "$.sessions[0]",
		`{"sessions":[{"id":"a","from":1}]}`:                   "$.sessions[0].from",
		`{"sessions":[{"id":"a","after":"x"}]}`:                "$.sessions[0].after",
		`{"sessions":[{"id":"a","after":-2}]}`:                 "$.sessions[0].after",
		`{"sessions":[{"id":"a","after":null}]}`:               "$.sessions[0].after",
		`{"sessions":[{"id":"a","after":"9007199254740992"}]}`: "$.sessions[0].after",
		`{"sessions":[{"id":"a"}],"after":7}`:                  "$.after",
		`{"sessions":[{"id":"a"}],"after":{}}`:                 "$.after",
		`{"sessions":[{"id":"a"}],"keys":[1]}`:                 "$.keys[0]",
		`{"sessions":[{"id":"a"}],"events":"x"}`:               "$.events",
		`{"sessions":[{"id":"a"}],"types":["x"]}`:              "$.types",
	} {
		if path == "" {
			s.post("/v1/stream", body).problem(400, "body-invalid")
		} else {
			s.post("/v1/stream", body).problem(400, "body-invalid", fmt.Sprintf(`"path":%q`, path))
		}
	}
	s.post("/v1/stream", `{"sessions":[]}`, "Content-Type: text/plain").problem(415, "content-type")
	// Of sessions that there are not, nothing comes.
	f := s.open("GET", "/v1/stream?session=x&session=..%2Fy", "")
	f.of("x", "session/unknown", `{}`)
	f.of("../y", "session/unknown", `{}`)
	f.ended()
}

// untilBaselines reads up to the baselines of n sessions, and gives the events of each, the resets, and the ids of events and baselines as they came.
func (f *follower) untilBaselines(n int) (events map[string][]int64, resets map[string]string, ids []string) {
	f.t.Helper()
	events, resets = map[string][]int64{}, map[string]string{}
	for n > 0 {
		fr := f.next()
		id := fr.session(f.t)
		switch fr.kind {
		case "session/subscribed":
		case "session/reset":
			var r struct{ Reason string }
			json.Unmarshal([]byte(fr.data), &r)
			resets[id] = r.Reason
		case "session/event":
			events[id] = append(events[id], fr.logged(f.t))
			ids = append(ids, fr.id)
		case "session/baseline":
			n--
			ids = append(ids, fr.id)
		default:
			f.t.Fatalf("before the baselines there is %+v", fr)
		}
	}
	return events, resets, ids
}

func TestResumeOfMany(t *testing.T) {
	mem := memory.New()
	s := serve(t, func(o *options) { o.store = logtest.Short(mem, 5) })
	// Positions: a is made at 1, b at 2, and then a 3, b 4, a 5, b 6, a 7, b 8, a 9, b 10.
	s.create("a")
	s.create("b")
	for range 4 {
		s.step("a", 1)
		s.step("b", 1)
	}
	store, life := mem.Identity().StoreID, s.incarnation("a")
	body := func(a, b, rest string) string {
		return fmt.Sprintf(`{"sessions":[{"id":"a"%s},{"id":"b"%s}]%s}`, a, b, rest)
	}
	for _, c := range []struct {
		name, body, header string
		a, b               string
		// ids is from which frame before the end on there are ids.
		ids int
	}{
		{"nowhere", body("", "", ""), "", "", "", 2},
		{"from the start", body("", "", `,"after":-1`), "", "0 1 2 3", "0 1 2 3", 10},
		{"from the start, as text", body("", "", `,"after":"-1"`), "", "0 1 2 3", "0 1 2 3", 10},
		{"an id", body("", "", `,"after":"`+store+`:6"`), "", "2 3", "2 3", 6},
		{"an id between", body("", "", `,"after":"`+store+`:7"`), "", "3", "2 3", 5},
		{"the end", body("", "", `,"after":"`+store+`:10"`), "", "", "", 2},
		{"what was sent by itself", body("", "", `,"after":-1`), store + ":8", "3", "3", 4},
		{"one from the start", body(`,"after":-1`, "", ""), "", "0 1 2 3", "", 2},
		{"each from elsewhere", body(`,"after":"`+life+`:0"`, `,"after":2`, ""), "", "1 2 3", "3", 4},
		{"further than all", body(`,"after":2`, "", `,"after":-1`), "", "3", "0 1 2 3", 5},
		{"not so far as all", body(`,"after":0`, "", `,"after":"`+store+`:6"`), "", "2 3", "2 3", 6},
		{"of its own and sent by itself", body(`,"after":0`, `,"after":3`, ""), store + ":7", "3", "", 2},
		{"another life, long since told", body(`,"after":"x:0"`, "", ""), store + ":7", "3", "2 3", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			var headers []string
			if c.header != "" {
				headers = append(headers, "Last-Event-ID: "+c.header)
			}
			f := s.open("POST", "/v1/stream", c.body, headers...)
			f.t = t
			defer f.end()
			events, resets, ids := f.untilBaselines(2)
			if a, b := strings.Trim(fmt.Sprint(events["a"]), "[]"), strings.Trim(fmt.Sprint(events["b"]), "[]"); a != c.a || b != c.b || len(resets) > 0 {
				t.Errorf("events of a: %s, of b: %s, resets %v", a, b, resets)
			}
			for i, id := range ids {
				if (id != "") != (len(ids)-i <= c.ids) {
					t.Errorf("the ids are %q", ids)
					break
				}
			}
			if !strings.HasSuffix(ids[len(ids)-1], ":10") {
				t.Errorf("it ends at %s", ids[len(ids)-1])
			}
		})
	}
	for _, c := range []struct{ name, body, header, a, b string }{
		{"another store", body("", "", `,"after":"other:3"`), "", "store", "store"},
		{"beyond the end", body("", "", `,"after":"`+store+`:11"`), "", "beyond-end", "beyond-end"},
		{"another store, sent by itself", body("", "", ""), "other:3", "store", "store"},
		{"no position at all", body("", "", ""), "odd", "unknown", "unknown"},
		{"a stale one beats the body", body("", "", `,"after":-1`), "other:3", "store", "store"},
		{"another life of one", body(`,"after":"x:0"`, `,"after":3`, ""), "", "incarnation", ""},
		{"one beyond its end", body("", `,"after":4`, ""), "", "", "beyond-end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := s.open("POST", "/v1/stream", c.body, "Last-Event-ID: "+c.header)
			f.t = t
			defer f.end()
			events, resets, ids := f.untilBaselines(2)
			if resets["a"] != c.a || resets["b"] != c.b || len(events) > 0 {
				t.Errorf("resets %v, events %v", resets, events)
			}
			if ids[0] != store+":10" || ids[1] != store+":10" {
				t.Errorf("the baselines have ids %q", ids)
			}
		})
	}
}

func TestFiltersOfMany(t *testing.T) {
	s := serve(t, func(o *options) { o.units = append(o.units, counter("others", "other")) })
	s.create("a")
	s.create("b")
	streams := map[string]*follower{
		"other":  s.open("GET", "/v1/stream?session=a&session=b&events=other&keys=others", ""),
		"listed": s.open("POST", "/v1/stream", `{"sessions":[{"id":"a"},{"id":"b"}],"events":["other"],"keys":["others"]}`),
		"none":   s.open("GET", "/v1/stream?session=a&session=b&events=none&keys=", ""),
		"empty":  s.open("POST", "/v1/stream", `{"sessions":[{"id":"a"},{"id":"b"}],"events":[],"keys":[]}`),
	}
	for name, f := range streams {
		values := `{"others":0}`
		if name == "none" || name == "empty" {
			values = `{}`
		}
		f.of("a", "session/subscribed", anySubscribed)
		f.of("b", "session/subscribed", anySubscribed)
		for _, id := range []string{"a", "b"} {
			if fr := f.of(id, "session/baseline", `{"epoch":"*","gen":"*","asOfSeq":-1,"values":`+values+`,"revs":"*"}`); fr.id == "" {
				t.Errorf("%s: a baseline without an id", name)
			}
		}
	}
	for _, id := range []string{"b", "a"} {
		s.post("/v1/sessions/"+id+"/events", `{"events":[{"type":"step","data":1},{"type":"other","data":2}]}`).want(200)
		for _, name := range []string{"other", "listed"} {
			streams[name].of(id, "session/event", `{"event":{"type":"other","seq":1,"time":"*","data":2}}`)
			streams[name].of(id, "session/projection", `{"key":"others","value":1,"seq":1,"rev":"*"}`)
		}
	}
	for _, id := range []string{"a", "b"} {
		s.do("DELETE", "/v1/sessions/"+id, "").want(204)
	}
	for _, f := range streams {
		f.want("session/deleted", `{}`)
		f.want("session/deleted", `{}`)
		f.ended()
	}
}

func TestGoingColdIsInvisibleOnAStreamOfMany(t *testing.T) {
	s := serve(t)
	s.create("a")
	s.create("b")
	f := s.open("GET", "/v1/stream?session=a&session=b", "")
	f.untilBaselines(2)
	for i := range 3 {
		for _, id := range []string{"a", "b"} {
			s.post("/v1/sessions/"+id+"/detach", "").want(200)
			s.step(id, 1)
			f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, i))
			f.of(id, "session/projection", fmt.Sprintf(`{"key":"steps","value":%d,"seq":%d,"rev":"*"}`, i+1, i))
		}
	}
	s.api.Stop()
	if fr := f.any(); fr.comment == "" {
		t.Errorf("the end is told by %+v", fr)
	}
	f.ended()
}

// Given a commit whose publication takes its time, when a later one of another session is published, then the first is sent before it: what comes behind an id is all there is.
func TestAnEventThatIsPublishedLateIsInItsPlace(t *testing.T) {
	store := &slowToSay{Store: memory.New(), committed: make(chan struct{}), publish: make(chan struct{})}
	s := serve(t, func(o *options) { o.store = store })
	s.create("a")
	s.create("b")
	f := s.open("GET", "/v1/stream?session=a&session=b", "")
	f.untilBaselines(2)
	store.armed.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.step("a", 1)
	}()
	<-store.committed
	s.step("b", 1)
	// What b did is told by its bell, and what a did before comes before.
	a := f.of("a", "session/event", `{"event":"*"}`)
	b := f.of("b", "session/event", `{"event":"*"}`)
	f.of("b", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	if a.seq(t) >= b.seq(t) {
		t.Errorf("a is at %s, b at %s", a.id, b.id)
	}
	close(store.publish)
	f.of("a", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	<-done
}

// The same of a value: its event is committed, and comes first although it is not published yet.
func TestAValueOfManyThatIsAheadOfWhatWasPublished(t *testing.T) {
	arrived, publish := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(publish) })
	defer release()
	s := serve(t, func(o *options) {
		o.observe = func(_ context.Context, _ *session.Session, events []event.Event) {
			if string(events[0].Data) == `"held"` {
				close(arrived)
				<-publish
			}
		}
	})
	s.create("a")
	s.create("b")
	f := s.open("GET", "/v1/stream?session=a&session=b", "")
	f.untilBaselines(2)
	s.step("b", 1)
	f.of("b", "session/event", `{"event":"*"}`)
	f.of("b", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	done := s.later(func() *answer { return s.post("/v1/sessions/a/events", `{"type":"step","data":"held"}`) })
	<-arrived
	f.of("a", "session/event", `{"event":{"type":"step","seq":0,"time":"*","data":"held"}}`)
	f.of("a", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	release()
	done().want(200)
	s.step("b", 1)
	f.of("b", "session/event", `{"event":"*"}`)
}

// Streams of many sessions that keep up do not read logs: what is committed is read once for all of them.
func TestStreamsOfManyThatKeepUpReadNoLog(t *testing.T) {
	store := &countedReads{Store: memory.New()}
	s := serve(t, func(o *options) { o.store, o.units = store, nil })
	ids := []string{"a", "b", "c"}
	for _, id := range append(ids, "alone") {
		s.create(id)
	}
	var streams []*follower
	for i := range 20 {
		f := s.open("GET", "/v1/stream?session=a&session=b&session=c"+[]string{"", "&events=step"}[i%2], "")
		f.untilBaselines(3)
		streams = append(streams, f)
	}
	for n := range 10 {
		s.step("alone", 1)
		last := ""
		for _, id := range ids {
			s.post("/v1/sessions/"+id+"/events", `{"events":[{"type":"step","data":null},{"type":"note","data":null}]}`).want(200)
			for i, f := range streams {
				step := f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, 2*n))
				if step.id == "" || i > 0 && step.id != last {
					t.Errorf("the event has id %q here and %q there", step.id, last)
				}
				if last = step.id; i%2 == 0 {
					f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"note","seq":%d,"time":"*","data":null}}`, 2*n+1))
				}
			}
		}
		if n == 0 {
			store.reads.Store(0) // Until here some may have read what was published while they began.
		}
	}
	if n := store.reads.Load(); n > 0 {
		t.Errorf("%d reads", n)
	}
}

// brokenTail is a store in which something is damaged that nobody follows.
type brokenTail struct{ *memory.Store }

func (s brokenTail) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if q.Types == nil {
		return eventlog.TailPage{}, &eventlog.CorruptError{ID: "other", Reason: "the test says so"}
	}
	return s.Store.Tail(ctx, q)
}

// slicedTail is a store that gives an event at a time, as if each were large, and counts.
type slicedTail struct {
	*memory.Store
	pages atomic.Int64
}

func (s *slicedTail) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if q.Types == nil {
		q.Limit = 1
		s.pages.Add(1)
	}
	return s.Store.Tail(ctx, q)
}

// Given much that others have committed, in few events, then a stream of many does not wait until all of that is read.
func TestAStreamOfManyDoesNotReadWhatIsNotItsOwnForLong(t *testing.T) {
	store := &slicedTail{Store: memory.New()}
	s := serve(t, func(o *options) { o.store = store })
	for _, id := range []string{"a", "b", "other"} {
		s.create(id)
	}
	f := s.open("GET", "/v1/stream?session=a&session=b", "")
	f.untilBaselines(2)
	for n := range 3 {
		s.step("other", 200)
		store.pages.Store(0)
		for _, id := range []string{"a", "b"} {
			s.step(id, 1)
			f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, n))
			f.of(id, "session/projection", fmt.Sprintf(`{"key":"steps","value":%d,"seq":%d,"rev":"*"}`, n+1, n))
		}
		if pages := store.pages.Load(); pages > 40 {
			t.Errorf("%d pages were read", pages)
		}
	}
}

// What others do to the store, be it that they fill it with much at once or that what is theirs is damaged, changes nothing on a stream.
func TestWhatOthersDoIsNothingToAStreamOfMany(t *testing.T) {
	for name, store := range map[string]eventlog.Store{"much at once": memory.New(), "damaged": brokenTail{memory.New()}} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(o *options) { o.store = store })
			s.create("a")
			s.create("b")
			f := s.open("GET", "/v1/stream?session=a&session=b", "")
			f.untilBaselines(2)
			seed := strings.Repeat(`{"type":"step","data":null},`, 5000)
			for n := range 3 {
				for _, id := range []string{"a", "b"} {
					s.step(id, 1)
					f.of(id, "session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, n))
					f.of(id, "session/projection", fmt.Sprintf(`{"key":"steps","value":%d,"seq":%d,"rev":"*"}`, n+1, n))
				}
				s.post("/v1/sessions", fmt.Sprintf(`{"id":"other%d","events":[%s]}`, n, strings.TrimSuffix(seed, ","))).want(201)
			}
		})
	}
}

// spoilt is a store in which one session is damaged as a whole, and another from an event on once that is armed.
type spoilt struct {
	*memory.Store
	armed atomic.Bool
}

func (s *spoilt) Info(ctx context.Context, id string) (eventlog.Info, error) {
	if id == "worse" {
		return eventlog.Info{}, &eventlog.CorruptError{ID: id, Reason: "the test says so"}
	}
	return s.Store.Info(ctx, id)
}

func (s *spoilt) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if q.Life.ID == "bad" && s.armed.Load() {
		return eventlog.Page{}, &eventlog.CorruptError{ID: "bad", Seq: 1, Reason: "the test says so"}
	}
	return s.Store.Read(ctx, q)
}

func (s *spoilt) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if q.Types == nil && s.armed.Load() {
		return eventlog.TailPage{}, &eventlog.CorruptError{ID: "bad", Seq: 1, Reason: "the test says so"}
	}
	return s.Store.Tail(ctx, q)
}

// Given a stream of sessions of which one cannot be read, from the beginning or from some time on, then it says so of that one, and goes on with the others as if they were alone; it ends with
// the last.
func TestADamagedSessionIsDroppedFromAStreamOfMany(t *testing.T) {
	store := &spoilt{Store: memory.New()}
	s := serve(t, func(o *options) { o.store = store })
	for _, id := range []string{"a", "b", "bad"} {
		s.create(id)
	}
	path := "/v1/stream?session=worse&session=bad&session=a&session=b"
	f := s.open("GET", path, "")
	f.of("worse", "session/reset", `{"reason":"damaged"}`)
	f.untilBaselines(3)
	s.step("bad", 1)
	f.of("bad", "session/event", `{"event":"*"}`)
	f.of("bad", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	store.armed.Store(true)
	s.step("bad", 1)
	f.of("bad", "session/reset", `{"reason":"damaged"}`)
	s.step("a", 1)
	a := f.of("a", "session/event", `{"event":{"type":"step","seq":0,"time":"*","data":null}}`)
	f.of("a", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	// Who comes again hears the same, and goes on where it was.
	s.step("b", 1)
	again := s.open("GET", path+"&after="+a.id, "")
	again.of("worse", "session/reset", `{"reason":"damaged"}`)
	for _, id := range []string{"bad", "a", "b"} {
		again.of(id, "session/subscribed", `{"lastSeq":"*","incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
	}
	again.of("bad", "session/reset", `{"reason":"damaged"}`)
	again.of("b", "session/event", `{"event":"*"}`)
	again.of("a", "session/baseline", `{"epoch":"*","gen":"*","asOfSeq":0,"values":{"steps":1},"revs":"*"}`)
	again.of("b", "session/baseline", `{"epoch":"*","gen":"*","asOfSeq":0,"values":{"steps":1},"revs":"*"}`)
	f.of("b", "session/event", `{"event":"*"}`)
	f.of("b", "session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	for _, id := range []string{"a", "b"} {
		s.do("DELETE", "/v1/sessions/"+id, "").want(204)
		f.of(id, "session/deleted", `{}`)
	}
	f.ended()
	s.get("/v1/stream?session=worse").problem(500, "internal")
	s.get("/v1/stream?session=worse&session=nobody").problem(500, "internal")
}

// Given appends to several sessions from all sides while streams come and go, then on each stream ids rise, each session has every event once and in order, no value before its event,
// and at the end the last one.
func TestOrderOfManyUnderConcurrentAppends(t *testing.T) {
	s := serve(t)
	ids := []string{"a", "b", "c", "d"}
	const each, streams = 80, 5
	for _, id := range ids {
		s.create(id)
	}
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			for range each {
				s.step(id, 1)
			}
		})
	}
	for range streams {
		all.Go(func() {
			f := s.open("GET", "/v1/stream?after=-1&session="+strings.Join(ids, "&session="), "")
			defer f.end()
			next, shown, at := map[string]int64{}, map[string]int64{}, int64(-1)
			finished := func() bool {
				return !slices.ContainsFunc(ids, func(id string) bool { return next[id] < each || shown[id] < each-1 })
			}
			for !finished() {
				fr := f.next()
				id := fr.session(t)
				switch fr.kind {
				case "session/subscribed":
					continue
				case "session/event":
					if seq := fr.logged(t); seq != next[id] || fr.seq(t) <= at {
						t.Errorf("event %d of %s with id %s where %d is next, after %d", seq, id, fr.id, next[id], at)
						return
					}
					at = fr.seq(t)
					next[id]++
				case "session/baseline":
					if fr.seq(t) < at {
						t.Errorf("a baseline with id %s after %d", fr.id, at)
					}
					at, shown[id] = fr.seq(t), next[id]-1
				case "session/projection":
					if p := fr.projection(t); p.Seq >= next[id] || p.Seq <= shown[id] {
						t.Errorf("%+v where %d is next, after %d", p, next[id], shown[id])
					}
					shown[id] = fr.projection(t).Seq
				default:
					t.Errorf("%+v", fr)
					return
				}
			}
		})
	}
	all.Wait()
}

// A reader that takes nothing delays nobody and grows nothing, whichever of its sessions moves.
func TestASlowReaderOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t, func(o *options) { o.api.WriteTimeout = time.Minute })
		defer s.close()
		s.create("a")
		s.create("b")
		const path = "/v1/stream?session=a&session=b"
		slow, dead := s.open("GET", path, ""), s.open("GET", path, "")
		defer slow.end()
		defer dead.end()
		slow.untilBaselines(2)
		dead.untilBaselines(2)
		s.step("a", 1)
		synctest.Wait() // Both streams wait with the first event in their hands.
		for range 500 {
			s.step("b", 1)
			s.step("a", 1)
		}
		time.Sleep(59 * time.Second)
		values, pos, last := 0, map[string]int64{"a": -1, "b": -1}, map[string]string{}
		for pos["a"] < 500 || pos["b"] < 499 || last["a"] != "501" || last["b"] != "500" {
			fr := slow.next()
			id := fr.session(t)
			switch fr.kind {
			case "session/event":
				if seq := fr.logged(t); seq != pos[id]+1 {
					t.Fatalf("event %d of %s after %d", seq, id, pos[id])
				}
				pos[id]++
			case "session/projection":
				p := fr.projection(t)
				if p.Seq > pos[id] {
					t.Errorf("%+v at %d", p, pos[id])
				}
				values++
				last[id] = string(p.Value)
			default:
				t.Fatalf("%+v", fr)
			}
		}
		if values > 8 {
			t.Errorf("it was told %d values", values)
		}
		time.Sleep(10 * time.Second) // A deadline may be an eighth later.
		synctest.Wait()
		if rest, err := io.ReadAll(dead.lines); err == nil || len(rest) > 1<<20 {
			t.Errorf("the one that took nothing is still served: %d bytes, %v", len(rest), err)
		}
	})
}

func TestHeartbeatsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t, func(o *options) { o.api.Heartbeat = 5 * time.Second })
		defer s.close()
		s.create("a")
		s.create("b")
		f := s.open("POST", "/v1/stream", `{"sessions":[{"id":"a"},{"id":"b"}]}`)
		defer f.end()
		f.untilBaselines(2)
		begun := time.Now()
		for range 3 {
			if fr := f.any(); fr.comment == "" || fr.kind != "" {
				t.Errorf("a heartbeat is %+v", fr)
			}
		}
		if took := time.Since(begun); took != 15*time.Second {
			t.Errorf("three heartbeats took %v", took)
		}
	})
}

// reader is a model of one who follows sessions, is cut off and goes on.
type reader struct {
	t  *rapid.T
	at *follower
	// told are the sessions of this connection of which a frame has come; known is what was read of each.
	known map[string]*followed
}

// followed is what a reader knows of a session.
type followed struct {
	life string
	// next is the event that is to come next, shown the seq of the last value.
	next, shown         int64
	based, gone, absent bool
	// reset says that it begins with the baseline, wherever that is by then.
	reset bool
}

// positions gives the positions of the events of sessions that there are, by life.
func positions(t *rapid.T, store eventlog.Store) map[string][]int64 {
	all := map[string][]int64{}
	for q := (eventlog.TailQuery{}); ; {
		page, err := store.Tail(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			all[e.Life.Incarnation] = append(all[e.Life.Incarnation], e.Position)
		}
		if q.After = page.Position; page.Position >= page.End {
			return all
		}
	}
}

// read takes frames until it has enough.
func (r *reader) read(until func() bool) {
	for !until() {
		fr := r.at.next()
		if fr.done {
			r.t.Fatalf("the stream ends with %+v", r.known)
		}
		id := fr.session(r.at.t)
		k := r.known[id]
		switch fr.kind {
		case "session/subscribed", "session/unknown", "session/reset":
			r.t.Fatalf("in the middle there is %+v", fr)
		case "session/event":
			if seq := fr.logged(r.at.t); seq != k.next || k.gone {
				r.t.Fatalf("event %d of %s comes where %d is next", seq, id, k.next)
			}
			k.next++
		case "session/baseline":
			var b struct {
				AsOfSeq int64
				Values  map[string]int64
			}
			json.Unmarshal([]byte(fr.data), &b)
			if k.reset && b.AsOfSeq >= k.next {
				k.next = b.AsOfSeq + 1
			}
			if k.based || b.AsOfSeq != k.next-1 || b.Values["steps"] != k.next {
				r.t.Fatalf("%+v where %d is next", fr, k.next)
			}
			k.based, k.shown = true, b.AsOfSeq
		case "session/projection":
			p := fr.projection(r.at.t)
			if !k.based || p.Seq >= k.next || p.Seq <= k.shown || string(p.Value) != fmt.Sprint(p.Seq+1) {
				r.t.Fatalf("%+v where %d is next, after %d", fr, k.next, k.shown)
			}
			k.shown = p.Seq
		case "session/deleted":
			if k.gone {
				r.t.Fatalf("%s is deleted twice", id)
			}
			k.gone = true
		default:
			r.t.Fatalf("%+v", fr)
		}
	}
}

// Given sessions that are appended to, deleted and made again at random, a reader that is cut off at random and goes on from where it was, by the id of the last frame or by what it
// knows of each session, has each event once and in order, no value before its event, and at the end the last value of each.
func TestManySessionsCutAndResumed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.New()
		s := serve(t, func(o *options) { o.store = logtest.Short(mem, rapid.Uint64().Draw(rt, "seed")) })
		defer s.close()
		ids := []string{"a", "b", "c", "d"}
		logs, lives := map[string]int64{}, map[string]string{} // how long they are, and which, of those that there are
		create := func(id string) {
			s.create(id)
			logs[id], lives[id] = 0, s.incarnation(id)
		}
		for _, id := range ids[:3] {
			create(id)
		}
		r := &reader{t: rt, known: map[string]*followed{}}
		lastID := ""
		hangUp := func() {
			if r.at != nil {
				if r.at.lastID != "" {
					lastID = r.at.lastID
				}
				r.at.end()
				r.at = nil
			}
		}
		defer hangUp()
		connect := func() {
			hangUp()
			all := positions(rt, mem)
			how := rapid.SampledFrom([]string{"id", "header", "each"}).Draw(rt, "how")
			_, number, _ := strings.Cut(lastID, ":")
			after := int64(-1)
			fmt.Sscan(number, &after)
			each := map[string]string{}
			if lastID == "" && len(r.known) > 0 {
				how = "each" // Cut off before there was an id, it knows of each where it is.
			} else if lastID == "" && how == "header" {
				how = "id"
			}
			switch how {
			case "id", "header":
				q := url.Values{"session": ids, "after": {"-1"}}
				var headers []string
				if how == "header" {
					headers = []string{"Last-Event-ID: " + lastID}
				} else if lastID != "" {
					q.Set("after", lastID)
				}
				r.at = s.open(http.MethodGet, "/v1/stream?"+q.Encode(), "", headers...)
			case "each":
				var list []string
				for _, id := range ids {
					each[id] = "-1"
					if k := r.known[id]; k != nil && k.life != "" {
						each[id] = fmt.Sprintf("%s:%d", k.life, k.next-1)
					}
					list = append(list, fmt.Sprintf(`{"id":%q,"after":%q}`, id, each[id]))
				}
				r.at = s.open(http.MethodPost, "/v1/stream", `{"sessions":[`+strings.Join(list, ",")+`]}`)
				lastID = "" // It does not matter any more; a new one comes once all are in line.
			}
			was := r.known
			r.known = map[string]*followed{}
			for len(r.known) < len(ids) {
				fr := r.at.next()
				id := fr.session(t)
				k := &followed{shown: -2}
				r.known[id] = k
				switch _, there := logs[id]; {
				case fr.kind == "session/unknown" && !there:
					if k.absent, k.gone = true, true; was[id] != nil {
						k.life, k.next = was[id].life, was[id].next
					}
				case fr.kind == "session/subscribed" && there:
					var sub struct {
						LastSeq     int64
						Incarnation string
					}
					json.Unmarshal([]byte(fr.data), &sub)
					if sub.LastSeq != logs[id]-1 {
						rt.Fatalf("%+v, and the log has %d events", fr, logs[id])
					}
					k.life = sub.Incarnation
					life, _, _ := strings.Cut(each[id], ":")
					switch {
					case how == "each" && life != "-1" && life != k.life:
						r.at.want("session/reset", `{"reason":"incarnation"}`)
						k.next, k.reset = logs[id], true
					case was[id] != nil && was[id].life == k.life:
						k.next = was[id].next
						// An id is where this reader is, whichever way it came.
						if how != "each" {
							for k.next > 0 && all[k.life][k.next-1] > after {
								rt.Fatalf("%s: event %d was read and is behind the id %s", id, k.next-1, lastID)
							}
						}
					case how != "each":
						k.next = int64(len(all[k.life]))
						for k.next > 0 && all[k.life][k.next-1] > after {
							k.next--
						}
					}
				default:
					rt.Fatalf("%s begins with %+v, and it is there: %v", id, fr, there)
				}
			}
		}
		// alive are the sessions that this connection follows still.
		alive := func(id string) bool {
			k := r.known[id]
			_, there := logs[id]
			return there && k != nil && !k.gone && k.life == lives[id]
		}
		caughtUp := func() bool {
			for _, id := range ids {
				k := r.known[id]
				switch {
				case k.absent:
				case alive(id):
					if k.next < logs[id] || !k.based || k.shown < logs[id]-1 {
						return false
					}
				case !k.gone:
					return false
				}
			}
			return true
		}
		allGone := func() bool {
			return !slices.ContainsFunc(ids, func(id string) bool { return !r.known[id].gone })
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				if len(logs) == 0 {
					rt.Skip()
				}
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(logs))).Draw(rt, "session")
				n := rapid.IntRange(1, 4).Draw(rt, "n")
				s.post("/v1/sessions/"+id+"/events", `{"events":[`+strings.Repeat(`{"type":"step","data":null},`, n-1)+`{"type":"step","data":null}]}`).want(200)
				logs[id] += int64(n)
			},
			"delete": func(rt *rapid.T) {
				if len(logs) == 0 || rapid.IntRange(0, 2).Draw(rt, "really") > 0 {
					rt.Skip()
				}
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(logs))).Draw(rt, "session")
				s.do("DELETE", "/v1/sessions/"+id, "").want(204)
				delete(logs, id)
			},
			"create": func(rt *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(rt, "session")
				if _, there := logs[id]; there {
					rt.Skip()
				}
				create(id)
			},
			"connect": func(rt *rapid.T) { connect() },
			"read some": func(rt *rapid.T) {
				if r.at == nil {
					rt.Skip()
				}
				left := int64(0)
				count := func() (n int64) {
					for _, id := range ids {
						if alive(id) {
							n += logs[id] - r.known[id].next
						}
					}
					return n
				}
				left = rapid.Int64Range(0, count()).Draw(rt, "leaving")
				r.read(func() bool { return count() <= left })
			},
			"read all": func(rt *rapid.T) {
				if r.at == nil {
					rt.Skip()
				}
				r.read(caughtUp)
				if allGone() {
					r.at.ended()
				}
			},
		})
		connect()
		r.read(caughtUp)
	})
}

// Streams whose sessions are quiet ask the store nothing: neither while nothing happens, nor when a heartbeat is due, nor when it is others that are not quiet.
func TestQuietStreamsReadNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countedReads{Store: memory.New()}
		s := serveInBubble(t, func(o *options) { o.store, o.units, o.api.Heartbeat = store, nil, 5*time.Second })
		defer s.close()
		for _, id := range []string{"a", "b", "never", "other"} {
			s.create(id)
		}
		var reading sync.WaitGroup
		defer reading.Wait()
		var got [5]atomic.Int64
		for i, path := range []string{"/v1/sessions/a/stream", "/v1/sessions/never/stream", "/v1/sessions/a/stream?events=none", "/v1/stream?session=a&session=b", "/v1/stream?session=never"} {
			f := s.open("GET", path, "")
			defer f.end()
			reading.Go(func() {
				for line, err := f.lines.ReadString('\n'); err == nil; line, err = f.lines.ReadString('\n') {
					if strings.Contains(line, `"seq":3`) {
						got[i].Add(1)
					}
				}
			})
		}
		s.step("a", 3)
		time.Sleep(time.Second)
		synctest.Wait()
		for range 5 {
			s.step("other", 1)
			synctest.Wait()
			store.reads.Store(0)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if n := store.reads.Load(); n > 0 {
				t.Errorf("%d reads at a heartbeat", n)
			}
		}
		s.step("a", 1)
		synctest.Wait()
		if a, row := got[0].Load(), got[3].Load(); a != 1 || row != 1 {
			t.Errorf("what is appended then comes %d and %d times", a, row)
		}
	})
}
