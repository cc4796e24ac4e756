package api_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// idempotent are requests that write, over a session "s" with a turn that has ended, its events 0 to 2, and an open one.
var idempotent = map[string]struct {
	path, body string
	// refused is the answer without a key to what comes second; empty where it would go well again.
	refused string
}{
	"create":                {"/v1/sessions", `{"id":"new","cwd":"/w"}`, ""},
	"create without an id":  {"/v1/sessions", `{"cwd":"/w"}`, ""},
	"create with events":    {"/v1/sessions", `{"id":"new","events":[{"type":"step","data":1}]}`, ""},
	"find what is there":    {"/v1/sessions", `{"id":"s"}`, ""},
	"append":                {"/v1/sessions/s/events", `{"events":[{"type":"step","data":1}],"expectedSeq":4}`, "seq-conflict"},
	"fork":                  {"/v1/sessions/s/fork", `{"atSeq":1,"id":"new"}`, "session-conflict"},
	"fork without anything": {"/v1/sessions/s/fork", ``, ""},
	"compact":               {"/v1/sessions/s/compact", `{"start":1,"end":1,"message":` + message("sum") + `}`, "surface-range-invalid"},
	"recover":               {"/v1/sessions/s/recover", `{}`, ""},
	"tool":                  {"/v1/sessions/s/tools/set_goal", `{"arguments":{"goal":1}}`, ""},
	"tool that refuses":     {"/v1/sessions/s/tools/set_goal", `{"arguments":{"goal":"refuse"}}`, ""},
	"tool, wrong arguments": {"/v1/sessions/s/tools/set_goal", ``, ""},
}

// prepared starts a server over a store with the session of idempotent, unless it is there.
func prepared(t *testing.T, store eventlog.Store) *server {
	t.Helper()
	s := serve(t, func(o *options) { o.store = store })
	s.add(goals("goal"))
	if s.get("/v1/sessions/s").status == http.StatusNotFound {
		s.create("s")
		s.post("/v1/sessions/s/events", `{"events":[`+turn(1)+`,{"type":"turn/start","data":{"turn":2}}]}`).want(200)
	}
	return s
}

// all are the sessions, each with its length.
func (s *server) all() string {
	s.t.Helper()
	list := s.get("/v1/sessions").want(200).object()["sessions"].([]any)
	var all []string
	for _, one := range list {
		session := one.(map[string]any)
		all = append(all, fmt.Sprint(session["header"].(map[string]any)["id"], ":", session["seq"]))
	}
	return strings.Join(all, " ")
}

// The same request with the same key gives the first answer and changes nothing, whatever has happened since, after a new start too.
func TestRepeatedRequests(t *testing.T) {
	for name, r := range idempotent {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			s := prepared(t, store)
			const key = "Idempotency-Key: k"
			first := s.post(r.path, r.body, key)
			if first.status/100 != 2 {
				t.Fatalf("%d %s", first.status, first.body)
			}
			if r.refused != "" {
				a := s.post(r.path, r.body)
				if a.status < 400 || a.object()["code"] != r.refused {
					t.Fatalf("without the key it gives %d %s, want %s", a.status, a.body, r.refused)
				}
			}
			changed := "s"
			if at := first.header.Get("Location"); at != "" {
				changed = strings.TrimPrefix(at, "/v1/sessions/")
			}
			s.step(changed, 1)
			all := s.all()
			for _, when := range []string{"at once", "after a new start"} {
				again := s.post(r.path, r.body, key)
				if again.status != first.status || again.body != first.body || again.header.Get("Location") != first.header.Get("Location") {
					t.Errorf("%s it gives %d %s, the first gave %d %s", when, again.status, again.body, first.status, first.body)
				}
				s.post(r.path, " "+cmp.Or(r.body, "{}"), key).problem(422, "idempotency-key-reused")
				if now := s.all(); now != all {
					t.Errorf("%s there are %s, there were %s", when, now, all)
				}
				s.close()
				s = prepared(t, store)
			}
		})
	}
}

// Twins in flight: one writes, and all get its answer.
func TestTwinsOfEveryKind(t *testing.T) {
	for name, r := range idempotent {
		t.Run(name, func(t *testing.T) {
			store := logtest.Slow(memory.New())
			s := prepared(t, store)
			op := logtest.Append
			if strings.HasPrefix(name, "create") {
				op = logtest.Create
			}
			gate := store.Hold(op)
			var twins sync.WaitGroup
			answers := make([]*answer, 4)
			for i := range answers {
				twins.Go(func() { answers[i] = s.post(r.path, r.body, "Idempotency-Key: k") })
			}
			<-gate.Arrived()
			gate.Release()
			twins.Wait()
			for _, a := range answers {
				if a.status/100 != 2 || a.status != answers[0].status || a.body != answers[0].body {
					t.Errorf("%d %s, want %d %s", a.status, a.body, answers[0].status, answers[0].body)
				}
			}
			all := s.all()
			s.post(r.path, r.body, "Idempotency-Key: k").want(answers[0].status)
			if now := s.all(); now != all {
				t.Errorf("there are %s, there were %s", now, all)
			}
		})
	}
}

// A creation that finds the session as it asks for it takes its key like one that makes it: the answer is the first one from then on, and no other request has the key.
func TestACreationThatFindsItsSessionTakesItsKey(t *testing.T) {
	store := memory.New()
	s := prepared(t, store)
	s.post("/v1/sessions", `{"id":"c","cwd":"/w"}`).want(201)
	const key = "Idempotency-Key: k"
	before := s.get("/v1/sessions/c").body
	first := s.post("/v1/sessions", `{"id":"c","cwd":"/w"}`, key).want(200)
	if now := s.get("/v1/sessions/c").body; now != before {
		t.Errorf("the session was %s and is %s", before, now)
	}
	s.step("c", 1)
	for _, when := range []string{"at once", "after a new start"} {
		if again := s.post("/v1/sessions", `{"id":"c","cwd":"/w"}`, key).want(200); again.body != first.body {
			t.Errorf("%s it gives %s, the first gave %s", when, again.body, first.body)
		}
		s.post("/v1/sessions", `{"id":"c","cwd":"/x"}`, key).problem(422, "idempotency-key-reused")
		s.post("/v1/sessions", `{"id":"c"}`, key).problem(422, "idempotency-key-reused")
		s.post("/v1/sessions/c/events", `{"type":"step","data":1}`, key).problem(422, "idempotency-key-reused")
		s.close()
		s = prepared(t, store)
	}
	if got := len(s.seqs("c")); got != 1 {
		t.Errorf("the session has %d events", got)
	}
}

// A key is no cover for what belongs to somebody else.
func TestKeysOfOthers(t *testing.T) {
	s := prepared(t, memory.New())
	const key = "Idempotency-Key: k"
	// A child that exists and has the same key by another request.
	s.post("/v1/sessions", `{"id":"taken"}`, key).want(201)
	s.post("/v1/sessions/s/fork", `{"id":"taken","atSeq":0}`, key).problem(409, "session-conflict")
	// And one without.
	s.create("plain")
	s.post("/v1/sessions/s/fork", `{"id":"plain","atSeq":0}`, "Idempotency-Key: k2").problem(409, "session-conflict")
	// The source itself is no child, of whatever key.
	s.post("/v1/sessions/s/fork", `{"id":"s","atSeq":0}`, "Idempotency-Key: k5").problem(409, "session-conflict")
	s.post("/v1/sessions/s/fork", `{"id":"s","atSeq":0}`).problem(409, "session-conflict")
	s.post("/v1/sessions/nobody/fork", `{"id":"nobody"}`, "Idempotency-Key: k5").problem(404, "session-not-found")
	// A fork that was refused has the key: the same request may try again, and no other.
	s.post("/v1/sessions/s/fork", `{"atSeq":3}`, "Idempotency-Key: k3").problem(409, "fork-unavailable")
	s.post("/v1/sessions/s/fork", `{"atSeq":2}`, "Idempotency-Key: k3").problem(422, "idempotency-key-reused")
	s.post("/v1/sessions/s/events", `{"type":"turn/end","data":{"turn":2,"reason":{"kind":"completed"}}}`).want(200)
	s.post("/v1/sessions/s/fork", `{"atSeq":3}`, "Idempotency-Key: k3").want(201)
	s.post("/v1/sessions/nobody/fork", `{}`, key).problem(404, "session-not-found")
	// A creation that finds an equal session is answered as ever.
	s.post("/v1/sessions", `{"id":"plain"}`, "Idempotency-Key: k4").want(200)
	// With the session its key is gone.
	s.do("DELETE", "/v1/sessions/taken", "").want(204)
	s.post("/v1/sessions", `{"id":"taken","cwd":"/w"}`, key).want(201)
	for path := range map[string]string{"/v1/sessions": "", "/v1/sessions/s/fork": "", "/v1/sessions/s/compact": "", "/v1/sessions/s/recover": ""} {
		body := `{}`
		if strings.HasSuffix(path, "compact") {
			body = `{"start":1,"end":1,"message":{}}`
		}
		s.post(path, body, "Idempotency-Key: a b").problem(400, "body-invalid")
	}
}
