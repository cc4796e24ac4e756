package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// incarnation is that of a session.
func (s *server) incarnation(id string) string {
	s.t.Helper()
	return s.get("/v1/sessions/" + id).want(200).object()["incarnation"].(string)
}

func TestAStreamInItsOrder(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{Heartbeat: 7 * time.Second} })
	s.create("s")
	s.step("s", 2)
	life := s.incarnation("s")
	f := s.follow("s", "")
	f.want("session/subscribed", fmt.Sprintf(`{"lastSeq":1,"incarnation":%q,"epoch":%q,"heartbeatMs":7000}`, life, s.host.Epoch()))
	// Without a position there are no events of before.
	fr := f.want("session/baseline", fmt.Sprintf(`{"epoch":%q,"gen":"*","asOfSeq":1,"values":{"steps":2},"revs":{"steps":"*"}}`, s.host.Epoch()))
	if fr.id != life+":1" {
		t.Errorf("the baseline has id %q", fr.id)
	}
	s.post("/v1/sessions/s/events", `{"events":[{"type":"note","data":{"text":"<&>\n"}},{"type":"step","data":null}]}`).want(200)
	fr = f.want("session/event", `{"event":{"type":"note","seq":2,"time":"*","data":{"text":"<&>\n"}}}`)
	if fr.id != life+":2" || !strings.Contains(fr.data, `{"text":"<&>\n"}`) {
		t.Errorf("the event is %+v", fr)
	}
	f.want("session/event", `{"event":{"type":"step","seq":3,"time":"*","data":null}}`)
	if fr = f.want("session/projection", `{"key":"steps","value":3,"seq":3,"rev":"*"}`); fr.id != "" {
		t.Errorf("a value moves the position to %q", fr.id)
	}
	s.do("DELETE", "/v1/sessions/s", "").want(204)
	f.want("session/deleted", `{}`)
	f.ended()
}

func TestAnEmptySessionIsFollowed(t *testing.T) {
	s := serve(t)
	s.create("s")
	f := s.follow("s", "?after=-1")
	events, base := f.opening()
	if len(events) > 0 || base.seq(t) != -1 {
		t.Errorf("%v %+v", events, base)
	}
	s.step("s", 1)
	f.want("session/event", `{"event":{"type":"step","seq":0,"time":"*","data":null}}`)
	f.want("session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
}

func TestResume(t *testing.T) {
	s := serve(t, func(o *options) { o.store = logtest.Short(memory.New(), 3) })
	s.create("s")
	s.step("s", 10)
	life := s.incarnation("s")
	for _, c := range []struct {
		name, query string
		headers     []string
		want        string
	}{
		{"from the start", "?after=-1", nil, "0 1 2 3 4 5 6 7 8 9"},
		{"a bare seq", "?after=6", nil, "7 8 9"},
		{"an id", "?after=" + life + ":6", nil, "7 8 9"},
		{"an id from the start", "?after=" + life + ":-1", nil, "0 1 2 3 4 5 6 7 8 9"},
		{"the end", "?after=9", nil, ""},
		{"nowhere", "", nil, ""},
		{"what a browser sends", "", []string{"Last-Event-ID: " + life + ":7"}, "8 9"},
		{"a browser that connects again", "?after=0", []string{"Last-Event-ID: " + life + ":7"}, "8 9"},
		{"some types", "?after=2&events=step", nil, "3 4 5 6 7 8 9"},
		{"other types", "?after=2&events=note,other", nil, ""},
		{"no events", "?after=2&events=none", nil, ""},
		{"all events", "?after=7&events=all", nil, "8 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := s.follow("s", c.query, c.headers...)
			f.t = t
			events, base := f.opening()
			if got := strings.Trim(fmt.Sprint(events), "[]"); got != c.want || base.id != life+":9" {
				t.Errorf("events %s, baseline %s", got, base.id)
			}
		})
	}
	for name, c := range map[string]struct{ query, header, reason string }{
		"another life":                  {"?after=other:3", "", "incarnation"},
		"beyond the end":                {"?after=99", "", "beyond-end"},
		"beyond the end of its life":    {"?after=" + life + ":99", "", "beyond-end"},
		"another life, sent by itself":  {"", "other:3", "incarnation"},
		"a position of another kind":    {"", "some-store:x", "unknown"},
		"a seq that says no life":       {"", "3", "unknown"},
		"a stale one beats the address": {"?after=1", "other:3", "incarnation"},
	} {
		t.Run(name, func(t *testing.T) {
			f := s.follow("s", c.query, "Last-Event-ID: "+c.header)
			f.t = t
			f.want("session/subscribed", `{"lastSeq":"*","incarnation":"*","epoch":"*","heartbeatMs":15000}`)
			f.want("session/reset", fmt.Sprintf(`{"reason":%q}`, c.reason))
			fr := f.want("session/baseline", `{"epoch":"*","gen":"*","asOfSeq":"*","values":{"steps":"*"},"revs":"*"}`)
			s.step("s", 1)
			if next := f.next(); next.kind != "session/event" || next.seq(t) != fr.seq(t)+1 {
				t.Errorf("after %+v it goes on with %+v", fr, next)
			}
		})
	}
	for _, bad := range []string{"?after=x", "?after=-2", "?after=9007199254740992", "?after=:3", "?after=1&after=2", "?before=3", "?after=1.5"} {
		s.get("/v1/sessions/s/stream"+bad).problem(400, "body-invalid")
	}
}

func TestFilters(t *testing.T) {
	s := serve(t, func(o *options) { o.units = append(o.units, counter("others", "other")) })
	s.create("s")
	byType, none, oneKey, noKey := s.follow("s", "?events=other"), s.follow("s", "?events=none"), s.follow("s", "?keys=others"), s.follow("s", "?keys=")
	for f, values := range map[*follower]string{byType: `{"steps":0,"others":0}`, none: `{"steps":0,"others":0}`, oneKey: `{"others":0}`, noKey: `{}`} {
		_, base := f.opening()
		same(t, "the baseline", base.data, `{"type":"session/baseline","sessionId":"s","epoch":"*","gen":"*","asOfSeq":-1,"revs":"*","values":`+values+`}`)
	}
	s.post("/v1/sessions/s/events", `{"events":[{"type":"step","data":1},{"type":"other","data":2}]}`).want(200)
	const step, other = `{"event":{"type":"step","seq":0,"time":"*","data":1}}`, `{"event":{"type":"other","seq":1,"time":"*","data":2}}`
	byType.want("session/event", other)
	byType.want("session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	byType.want("session/projection", `{"key":"others","value":1,"seq":1,"rev":"*"}`)
	none.want("session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	none.want("session/projection", `{"key":"others","value":1,"seq":1,"rev":"*"}`)
	oneKey.want("session/event", step)
	oneKey.want("session/event", other)
	oneKey.want("session/projection", `{"key":"others","value":1,"seq":1,"rev":"*"}`)
	noKey.want("session/event", step)
	noKey.want("session/event", other)
	s.step("s", 1)
	noKey.want("session/event", `{"event":"*"}`)
}

// Given appends from all sides while streams come and go, then each stream has every event from its position on, once and in order, no value before its event, values that
// rise, and at the end the last one.
func TestOrderUnderConcurrentAppends(t *testing.T) {
	s := serve(t, func(o *options) { o.units = append(o.units, counter("all", "step", "other")) })
	s.create("s")
	s.step("s", 20)
	const appenders, each, streams = 4, 50, 6
	const last = 20 + appenders*each - 1
	var all sync.WaitGroup
	for i := range appenders {
		all.Go(func() {
			for range each {
				s.post("/v1/sessions/s/events", fmt.Sprintf(`{"type":%q,"data":null}`, []string{"step", "other"}[i%2])).want(200)
			}
		})
	}
	for i := range streams {
		all.Go(func() {
			f := s.follow("s", fmt.Sprintf("?after=%d", i))
			f.want("session/subscribed", `{"lastSeq":"*","incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
			pos, shown := int64(i), map[string]projection{}
			based := false
			for {
				fr := f.next()
				switch fr.kind {
				case "session/event":
					if seq := fr.seq(t); seq != pos+1 {
						t.Errorf("event %d after %d", seq, pos)
					}
					pos++
				case "session/baseline":
					if based || fr.seq(t) != pos {
						t.Errorf("the baseline has seq %d at %d", fr.seq(t), pos)
					}
					based = true
					var b struct {
						Values map[string]json.RawMessage
						Revs   map[string]int64
					}
					if err := json.Unmarshal([]byte(fr.data), &b); err != nil {
						t.Error(err)
					}
					for key, v := range b.Values {
						shown[key] = projection{key, v, pos, b.Revs[key]}
					}
				case "session/projection":
					p := fr.projection(t)
					before := shown[p.Key]
					if !based || p.Seq > pos || p.Seq <= before.Seq || p.Rev < before.Rev {
						t.Errorf("value %+v at %d after %+v", p, pos, before)
					}
					shown[p.Key] = p
				default:
					t.Errorf("%+v", fr)
					return
				}
				if pos == last && string(shown["all"].Value) == fmt.Sprint(last+1) && string(shown["steps"].Value) == fmt.Sprint(20+appenders/2*each) {
					return
				}
			}
		})
	}
	all.Wait()
}

// slowToSay is a store that commits, and keeps whoever appended waiting for it once.
type slowToSay struct {
	*memory.Store
	armed              atomic.Bool
	committed, publish chan struct{}
}

func (s *slowToSay) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	c, err := s.Store.Append(ctx, b)
	if s.armed.CompareAndSwap(true, false) {
		close(s.committed)
		<-s.publish
	}
	return c, err
}

// An event that is committed and not published yet is in the log: a position there is no position beyond its end.
func TestAPositionThatIsBeingPublished(t *testing.T) {
	store := &slowToSay{Store: memory.New(), committed: make(chan struct{}), publish: make(chan struct{})}
	s := serve(t, func(o *options) { o.store = store })
	s.create("s")
	s.step("s", 1)
	store.armed.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.step("s", 1)
	}()
	<-store.committed
	f := s.follow("s", "?after=1")
	f.want("session/subscribed", `{"lastSeq":1,"incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
	close(store.publish)
	fr := f.want("session/baseline", `{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":"*"}`)
	if fr.seq(t) != 1 {
		t.Errorf("%+v", fr)
	}
	<-done
	s.step("s", 1)
	f.want("session/event", `{"event":{"type":"step","seq":2,"time":"*","data":null}}`)
}

// Given a value that is told before its event is published to streams, then the event still comes first, and once.
func TestAValueThatIsAheadOfWhatWasPublished(t *testing.T) {
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
	s.create("s")
	f := s.follow("s", "")
	f.opening()
	s.step("s", 1)
	f.want("session/event", `{"event":{"type":"step","seq":0,"time":"*","data":null}}`)
	f.want("session/projection", `{"key":"steps","value":1,"seq":0,"rev":"*"}`)
	done := s.later(func() *answer { return s.post("/v1/sessions/s/events", `{"type":"step","data":"held"}`) })
	<-arrived
	f.want("session/event", `{"event":{"type":"step","seq":1,"time":"*","data":"held"}}`)
	f.want("session/projection", `{"key":"steps","value":2,"seq":1,"rev":"*"}`)
	release()
	done().want(200)
	s.step("s", 1)
	f.want("session/event", `{"event":{"type":"step","seq":2,"time":"*","data":null}}`)
	f.want("session/projection", `{"key":"steps","value":3,"seq":2,"rev":"*"}`)
}

// countedReads is a store that counts its reads.
type countedReads struct {
	*memory.Store
	reads atomic.Int64
}

func (s *countedReads) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	s.reads.Add(1)
	return s.Store.Read(ctx, q)
}

// Streams that keep up with their session do not read its log, whichever of its events they want.
func TestStreamsThatKeepUpReadNoLog(t *testing.T) {
	store := &countedReads{Store: memory.New()}
	s := serve(t, func(o *options) { o.store, o.units = store, nil })
	s.create("s")
	var streams []*follower
	for i := range 20 {
		f := s.follow("s", []string{"", "?events=step", "?events=step,other"}[i%3])
		f.opening()
		streams = append(streams, f)
	}
	for n := range int64(10) {
		s.post("/v1/sessions/s/events", `{"events":[{"type":"step","data":"<&>"},{"type":"note","data":null},{"type":"other","data":null}]}`).want(200)
		for i, f := range streams {
			for k, kind := range []string{"step", "note", "other"} {
				if kind == "step" || i%3 == 0 || i%3 == 2 && kind == "other" {
					if fr := f.want("session/event", fmt.Sprintf(`{"event":{"type":%q,"seq":%d,"time":"*","data":"*"}}`, kind, 3*n+int64(k))); fr.seq(t) != 3*n+int64(k) {
						t.Errorf("%+v", fr)
					}
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

// A followed session cannot be seen to go cold, whatever makes it.
func TestGoingColdIsInvisibleOnAStream(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.step("s", 1)
	f := s.follow("s", "")
	f.opening()
	for i := range 3 {
		s.post("/v1/sessions/s/detach", "").want(200)
		s.step("s", 1)
		f.want("session/event", fmt.Sprintf(`{"event":{"type":"step","seq":%d,"time":"*","data":null}}`, i+1))
		f.want("session/projection", fmt.Sprintf(`{"key":"steps","value":%d,"seq":%d,"rev":"*"}`, i+2, i+1))
	}
}

// What is told of one life is not shown on the stream of another.
func TestDeletedAndMadeAgainWhileFollowed(t *testing.T) {
	s := serve(t)
	for range 5 {
		s.create("s")
		s.step("s", 3)
		f := s.follow("s", "?after=-1")
		f.opening()
		s.do("DELETE", "/v1/sessions/s", "").want(204)
		s.create("s")
		s.step("s", 1)
		g := s.follow("s", "?after="+f.lastID)
		f.want("session/deleted", `{}`)
		f.ended()
		g.want("session/subscribed", `{"lastSeq":0,"incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
		g.want("session/reset", `{"reason":"incarnation"}`)
		g.want("session/baseline", `{"epoch":"*","gen":"*","asOfSeq":0,"values":{"steps":1},"revs":"*"}`)
		s.step("s", 1)
		g.want("session/event", `{"event":{"type":"step","seq":1,"time":"*","data":null}}`)
		g.want("session/projection", `{"key":"steps","value":2,"seq":1,"rev":"*"}`)
		s.do("DELETE", "/v1/sessions/s", "").want(204)
		g.want("session/deleted", `{}`)
	}
}

func TestUnitsThatComeFailAndGoWhileFollowed(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.post("/v1/sessions/s/events", `{"type":"other","data":1}`).want(200)
	f := s.follow("s", "")
	f.opening()
	added, err := s.host.Register("late", counter("others", "other"))
	if err != nil {
		t.Fatal(err)
	}
	// It may be told as late before it is there.
	fr := f.next()
	if fr.kind == "session/projection-unavailable" {
		fr = f.next()
	}
	if p := fr.projection(t); fr.kind != "session/projection" || p.Key != "others" || string(p.Value) != "1" || p.Seq != 0 {
		t.Errorf("a unit that is new shows itself by %+v", fr)
	}
	added.Release()
	f.want("session/projection-removed", `{"key":"others","rev":"*"}`)
	s.post("/v1/sessions/s/events", `{"type":"break","data":1}`).want(200)
	f.want("session/event", `{"event":{"type":"break","seq":1,"time":"*","data":1}}`)
	f.want("session/projection-unavailable", `{"key":"steps","code":"faulted","seq":0,"message":"*","rev":"*"}`)
	g := s.follow("s", "")
	_, base := g.opening()
	same(t, "the baseline", base.data, `{"type":"session/baseline","sessionId":"s","epoch":"*","gen":"*","asOfSeq":1,"values":{},"revs":{},
		"unavailable":{"steps":{"code":"faulted","seq":0,"message":"*"}}}`)
}

func TestStopEndsStreamsWithWholeFrames(t *testing.T) {
	s := serve(t)
	s.create("s")
	f := s.follow("s", "")
	f.opening()
	s.api.Stop()
	if fr := f.any(); fr.comment == "" {
		t.Errorf("the end is told by %+v", fr)
	}
	f.ended()
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t, func(o *options) { o.api.Heartbeat = 5 * time.Second })
		defer s.close()
		s.create("s")
		f := s.follow("s", "")
		defer f.end()
		f.opening()
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

// A reader that takes nothing delays nobody, grows nothing, gets the latest of each value when it goes on, and is given up when it does not.
func TestASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t, func(o *options) { o.api.WriteTimeout = time.Minute })
		defer s.close()
		s.create("s")
		slow, dead := s.follow("s", ""), s.follow("s", "")
		defer slow.end()
		defer dead.end()
		slow.opening()
		dead.opening()
		s.step("s", 1)
		synctest.Wait() // Both streams wait with the first event in their hands.
		s.step("s", 2000)
		time.Sleep(59 * time.Second)
		values, pos := []string{}, int64(-1)
		for pos < 2000 || len(values) == 0 || values[len(values)-1] != "2001" {
			switch fr := slow.next(); fr.kind {
			case "session/event":
				pos = fr.seq(t)
			case "session/projection":
				p := fr.projection(t)
				if p.Seq > pos {
					t.Errorf("%+v at %d", p, pos)
				}
				values = append(values, string(p.Value))
			default:
				t.Fatalf("%+v", fr)
			}
		}
		if len(values) > 5 {
			t.Errorf("it was told %d values: %v", len(values), values)
		}
		time.Sleep(10 * time.Second) // A deadline may be an eighth later.
		synctest.Wait()
		if rest, err := io.ReadAll(dead.lines); err == nil || len(rest) > 1<<20 {
			t.Errorf("the one that took nothing is still served: %d bytes, %v", len(rest), err)
		}
		if st := s.api.Stats(); st.StreamsSlow != 1 || st.Streams != 1 || st.StreamsOpened != 2 {
			t.Errorf("%+v", st)
		}
	})
}
