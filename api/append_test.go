package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

func message(id string) string {
	return fmt.Sprintf(`{"id":%q,"role":"user","source":{"kind":"user"},"content":[{"type":"text","text":%q}]}`, id, id)
}

// say is an event that puts a message on the surface.
func say(id string) string {
	return fmt.Sprintf(`{"type":"user/message","data":%s,"surfaceOp":"append"}`, message(id))
}

func TestAppend(t *testing.T) {
	s := serve(t)
	s.create("s")
	const path = "/v1/sessions/s/events"
	s.post(path, `{"type":"step","data":{"n":1.0,"t":"<\u2028>","big":1e-400},"time":-5,"ignorable":true}`).want(200).same(`{"seq":1,"events":[{"seq":0,"time":-5}]}`)
	s.post(path, `{"events":[{"type":"step","data":null},{"type":"other","data":[]}]}`).want(200).same(`{"seq":3,"events":[{"seq":1,"time":"*"},{"seq":2,"time":"*"}]}`)
	s.post(path, `{"expectedSeq":3,"events":[{"type":"step","data":null}]}`).want(200).same(`{"seq":4,"events":[{"seq":3,"time":"*"}]}`)
	s.post(path, `{"expectedSeq":3,"events":[{"type":"step","data":null}]}`).problem(409, "seq-conflict", `"seq":4`)
	s.post(path, `{"expectedSeq":9,"events":[{"type":"step","data":null}]}`).problem(409, "seq-conflict", `"seq":4`)
	if text := s.get(path + "?limit=1").want(200).body; !strings.Contains(text, `{"type":"step","seq":0,"time":-5,"data":{"n":1.0,"t":"<\u2028>","big":1e-400},"ignorable":true}`) {
		t.Errorf("the event did not stay as it was: %s", text)
	}
	values := `{"seq":5,"events":[{"seq":4,"time":"*"}],"projections":{"epoch":"*","gen":"*","asOfSeq":4,"values":{%s},"revs":{%s}}}`
	s.post(path+"?projections=steps,none", `{"type":"step","data":null}`).want(200).same(fmt.Sprintf(values, `"steps":4`, `"steps":"*"`))
	values = strings.NewReplacer(`"seq":5`, `"seq":6`, `"seq":4`, `"seq":5`, `"asOfSeq":4`, `"asOfSeq":5`).Replace(values)
	s.post(path+"?projections=none", `{"type":"step","data":null}`).want(200).same(fmt.Sprintf(values, "", ""))
	s.post(path+"?projections=*", `{"type":"x","data":null}`).want(200).same(
		`{"seq":7,"events":"*","projections":{"epoch":"*","gen":"*","asOfSeq":6,"values":{"steps":5},"revs":"*"}}`)
}

// A refused append leaves no trace: the next event gets the same seq.
func TestWhatAppendRefuses(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.post("/v1/sessions/s/events", say("m")).want(200)
	deep := strings.Repeat("[", event.MaxDepth+1) + strings.Repeat("]", event.MaxDepth+1)
	wide := strings.Repeat("[", event.MaxDepth) + strings.Repeat("]", event.MaxDepth)
	large := strings.Repeat("x", event.DefaultMaxBytes)
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		more   []string
	}{
		"no JSON":                     {`{"type":"a","data":}`, 400, "body-invalid", []string{`"path":"$.data"`}},
		"more than one":               {`{"type":"a","data":1}{}`, 400, "body-invalid", []string{`"path":"$"`}},
		"a key twice":                 {`{"type":"a","data":{"x":{"k":1,"k":2}}}`, 400, "body-invalid", []string{`"path":"$.data.x.k"`}},
		"no UTF-8":                    {"{\"type\":\"a\",\"data\":[\"\xff\"]}", 400, "body-invalid", []string{`"path":"$.data[0]"`}},
		"a seq":                       {`{"type":"a","data":1,"seq":1}`, 400, "body-invalid", []string{`"path":"$.seq"`}},
		"an unknown field":            {`{"type":"a","data":1,"odd key":1}`, 400, "body-invalid", []string{`"path":"$[\"odd key\"]"`}},
		"another case":                {`{"Type":"a","data":1}`, 400, "body-invalid", []string{`"path":"$.Type"`}},
		"expectedSeq of one":          {`{"type":"a","data":1,"expectedSeq":1}`, 400, "body-invalid", []string{`"path":"$.expectedSeq"`}},
		"a list and one":              {`{"events":[],"type":"a"}`, 400, "body-invalid", []string{`"path":"$.type"`}},
		"an unknown field in a list":  {`{"events":[{"type":"a","data":1},{"type":"a","data":1,"x":1}]}`, 400, "body-invalid", []string{`"path":"$.events[1].x"`}},
		"an expectedSeq that is text": {`{"events":[{"type":"a","data":1}],"expectedSeq":"1"}`, 400, "body-invalid", []string{`"path":"$.expectedSeq"`}},
		"an expectedSeq below 0":      {`{"events":[{"type":"a","data":1}],"expectedSeq":-1}`, 400, "body-invalid", []string{`"path":"$.expectedSeq"`}},
		"an expectedSeq of -0":        {`{"events":[{"type":"a","data":1}],"expectedSeq":-0}`, 400, "body-invalid", []string{`"path":"$.expectedSeq"`}},
		"no events":                   {`{"events":[]}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.events"`}},
		"no type":                     {`{"data":1}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.type"`}},
		"a type that is none":         {`{"type":1,"data":1}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.type"`}},
		"no data":                     {`{"events":[{"type":"a","data":1},{"type":"a"}]}`, 422, "event-invalid", []string{`"index":1`, `"reason":"envelope-invalid"`, `"path":"$.data"`}},
		"a time with a fraction":      {`{"type":"a","data":1,"time":1.5}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.time"`}},
		"ignorable false":             {`{"type":"a","data":1,"ignorable":false}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.ignorable"`}},
		"-0":                          {`{"events":[{"type":"a","data":1},{"type":"a","data":{"x":[-0.0]}}]}`, 422, "event-invalid", []string{`"index":1`, `"reason":"data-not-lossless"`, `"path":"$.data.x[0]"`}},
		"a number beyond a double":    {`{"type":"a","data":1e400}`, 422, "event-invalid", []string{`"index":0`, `"reason":"data-not-lossless"`, `"path":"$.data"`}},
		"too deep":                    {`{"type":"a","data":` + deep + `}`, 422, "event-invalid", []string{`"index":0`, `"reason":"data-not-lossless"`, `"path":"*"`}},
		"too deep in a list":          {`{"events":[{"type":"a","data":` + deep + `}]}`, 422, "event-invalid", []string{`"index":0`, `"reason":"data-not-lossless"`, `"path":"*"`}},
		"the end of a seed":           {`{"type":"session/end-seed","data":{}}`, 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.type"`}},
		"a bad message":               {`{"events":[` + say("x") + `,{"type":"user/message","data":{},"surfaceOp":"append"}]}`, 422, "event-invalid", []string{`"index":1`, `"reason":"message-invalid"`, `"path":"*"`}},
		"a message without its op":    {`{"type":"user/message","data":` + message("x") + `}`, 422, "event-invalid", []string{`"index":0`, `"reason":"surface-op-missing"`, `"path":"*"`}},
		"an op that is none":          {`{"type":"user/message","data":` + message("x") + `,"surfaceOp":"prepend"}`, 422, "event-invalid", []string{`"index":0`, `"reason":"surface-op-invalid"`, `"path":"*"`}},
		"a range that is not there":   {`{"type":"user/message","data":` + message("x") + `,"surfaceOp":{"op":"replace","start":7,"end":7},"sourceEventSeqs":[0]}`, 422, "event-invalid", []string{`"index":0`, `"reason":"surface-range-invalid"`, `"path":"*"`}},
		"sources that are none":       {`{"type":"user/message","data":` + message("x") + `,"surfaceOp":"append","sourceEventSeqs":["0"]}`, 422, "event-invalid", []string{`"index":0`, `"reason":"sources-invalid"`, `"path":"*"`}},
		"a retired encoding":          {`{"type":"request/header-delta","data":{}}`, 422, "event-invalid", []string{`"index":0`, `"reason":"encoding-retired"`}},
		"too large":                   {`{"events":[{"type":"a","data":1},{"type":"a","data":"` + large + `"}]}`, 413, "too-large", []string{`"index":1`, `"size":"*"`, fmt.Sprintf(`"limit":%d`, event.DefaultMaxBytes)}},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.post("/v1/sessions/s/events", c.body)
			a.t = t
			a.problem(c.status, c.code, c.more...)
		})
	}
	for _, bad := range []string{"?keys=a", "?projections=a&x=1"} {
		s.post("/v1/sessions/s/events"+bad, `{"type":"a","data":1}`).problem(400, "body-invalid")
	}
	s.post("/v1/sessions/nobody/events", `{"type":"a","data":1}`).problem(404, "session-not-found")
	s.post("/v1/sessions/s/events", `{"events":[{"type":"a","data":`+wide+`}]}`).want(200).same(`{"seq":2,"events":[{"seq":1,"time":"*"}]}`)
}

func TestIdempotentAppend(t *testing.T) {
	store := memory.New()
	s := serve(t, func(o *options) { o.store = store })
	s.create("s")
	s.create("other")
	const path, key = "/v1/sessions/s/events", "Idempotency-Key: k-1"
	first := s.post(path, `{"events":[{"type":"step","data":1},{"type":"step","data":2}],"expectedSeq":0}`, key).want(200)
	s.step("s", 1)
	// The first answer, whatever the log looks like by now.
	again := s.post(path, `{"events":[{"type":"step","data":1},{"type":"step","data":2}],"expectedSeq":0}`, key).want(200)
	if again.body != first.body {
		t.Errorf("the retry gives %s, the first gave %s", again.body, first.body)
	}
	s.post(path, `{"events":[{"type":"step","data":1}],"expectedSeq":0}`, key).problem(422, "idempotency-key-reused")
	s.post(path+"?projections=steps", `{"events":[{"type":"step","data":1},{"type":"step","data":2}],"expectedSeq":0}`, key).problem(422, "idempotency-key-reused")
	// A key belongs to its session, and a refused request leaves it free.
	s.post("/v1/sessions/other/events", `{"type":"step","data":1}`, key).want(200).same(`{"seq":1,"events":"*"}`)
	s.post(path, `{"type":"user/message","data":1}`, "Idempotency-Key: k-2").want(422)
	s.post(path, `{"type":"step","data":1}`, "Idempotency-Key: k-2").want(200).same(`{"seq":4,"events":"*"}`)
	// It survives the host, and not the session.
	s.close()
	s = serve(t, func(o *options) { o.store = store })
	if again := s.post(path, `{"events":[{"type":"step","data":1},{"type":"step","data":2}],"expectedSeq":0}`, key).want(200); again.body != first.body {
		t.Errorf("after a new start the retry gives %s, the first gave %s", again.body, first.body)
	}
	s.do("DELETE", "/v1/sessions/s", "").want(204)
	s.create("s")
	s.post(path, `{"type":"step","data":9}`, key).want(200).same(`{"seq":1,"events":"*"}`)
	for _, bad := range []string{"", strings.Repeat("k", 256), "a b", "käse"} {
		s.post(path, `{"type":"step","data":1}`, "Idempotency-Key: "+bad).problem(400, "body-invalid")
	}
	s.post(path, `{"type":"step","data":1}`, "Idempotency-Key: "+strings.Repeat("~", 255)).want(200)
}

// Two requests with one key at once: one appends, the other waits and gets the same answer.
func TestTwinsInFlight(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := serve(t, func(o *options) { o.store = store })
	s.create("s")
	gate := store.Hold(logtest.Append)
	var twins sync.WaitGroup
	answers := make([]*answer, 8)
	for i := range answers {
		twins.Go(func() {
			answers[i] = s.post("/v1/sessions/s/events?projections=steps", `{"type":"step","data":1}`, "Idempotency-Key: twin")
		})
	}
	<-gate.Arrived()
	gate.Release()
	twins.Wait()
	for _, a := range answers {
		if a.status != http.StatusOK || a.body != answers[0].body {
			t.Errorf("%d %s, want %s", a.status, a.body, answers[0].body)
		}
	}
	if got := len(s.seqs("s")); got != 1 {
		t.Errorf("%d events were appended", got)
	}
}

func TestConcurrentAppends(t *testing.T) {
	s := serve(t)
	s.create("s")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.step("s", 25) })
	}
	all.Wait()
	for i, seq := range s.seqs("s") {
		if seq != int64(i) {
			t.Fatalf("event %d has seq %d", i, seq)
		}
	}
	s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":99,"values":{"steps":100},"revs":"*"}`)
}

// Given a caller who leaves once the events are in the log, nobody is told that the values, which nobody waits for, were not there.
func TestWhoLeavesIsNoTrouble(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var log bytes.Buffer
	o := options{store: memory.New(), units: []unit.Definition{counter("steps", "step")}, log: &log}
	o.observe = func(context.Context, *session.Session, []event.Event) { leave() }
	s := compose(t, o)
	send := func(ctx context.Context, path, body string) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		s.api.ServeHTTP(httptest.NewRecorder(), r)
	}
	send(t.Context(), "/v1/sessions", `{"id":"s"}`)
	send(ctx, "/v1/sessions/s/events?projections=steps", `{"type":"step","data":1}`)
	if _, info, err := s.host.Sessions().Find(t.Context(), "s"); err != nil || info.Seq != 1 {
		t.Errorf("%+v: %v", info, err)
	}
	s.close()
	if text := log.String(); ctx.Err() == nil || strings.Contains(text, "level=WARN") || strings.Contains(text, "level=ERROR") {
		t.Errorf("it is logged: %s", text)
	}
}
