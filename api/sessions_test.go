package api_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

const aSession = `{"header":{"version":0,"id":"s","createdAt":5,"cwd":"/work"},"seq":0,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*"}`

func TestCreateIsIdempotent(t *testing.T) {
	s := serve(t)
	full := `{"id":"s","cwd":"/work","createdAt":5}`
	a := s.post("/v1/sessions", full).want(201).same(aSession)
	if at := a.header.Get("Location"); at != "/v1/sessions/s" {
		t.Errorf("it lies at %q", at)
	}
	for _, again := range []string{full, `{"id":"s"}`, `{"id":"s","cwd":"/work"}`, `{"id":"s","createdAt":5,"events":[]}`} {
		s.post("/v1/sessions", again).want(200).same(aSession)
	}
	for _, other := range []string{`{"id":"s","cwd":"/elsewhere"}`, `{"id":"s","createdAt":6}`, `{"id":"s","events":[{"type":"a","data":1}]}`} {
		s.post("/v1/sessions", other).problem(409, "session-conflict")
	}
	s.get("/v1/sessions/s").want(200).same(aSession)
	// Without an id there is nothing that could be the same.
	one, two := s.post("/v1/sessions", `{}`).want(201).object(), s.post("/v1/sessions", `{}`).want(201).object()
	if one["header"].(map[string]any)["id"] == two["header"].(map[string]any)["id"] {
		t.Error("two sessions have one id")
	}
	// 1970 is a time like any other.
	s.post("/v1/sessions", `{"id":"old","createdAt":0}`).want(201)
	s.post("/v1/sessions", `{"id":"old","createdAt":0}`).want(200)
}

func TestCreateWithEvents(t *testing.T) {
	s := serve(t)
	const hi = `{"type":"user/message","data":{"id":"m","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"<&>"}]},"surfaceOp":"append","time":7}`
	seeded := fmt.Sprintf(`{"id":"s","events":[{"type":"turn/start","data":{ "turn" : 1 }},%s]}`, hi)
	s.post("/v1/sessions", seeded).want(201).same(`{"header":"*","seq":3,"firstLiveSeq":2,"incarnation":"*","live":true,"updatedAt":"*"}`)
	s.get("/v1/sessions/s/events").want(200).same(`{"seq":3,"events":[{"type":"turn/start","seq":0,"time":"*","data":{"turn":1}},
		{"type":"user/message","seq":1,"time":7,"data":{"id":"m","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"<&>"}]},"surfaceOp":"append"},
		{"type":"session/end-seed","seq":2,"time":"*","data":{}}]}`)
	s.step("s", 1)
	s.post("/v1/sessions", seeded).want(200)
	s.post("/v1/sessions", `{"id":"s","events":[{"type":"turn/start","data":{"turn":1}}]}`).want(200)
	for what, events := range map[string]string{
		"another type":    `{"type":"turn/end","data":{"turn":1}}`,
		"other data":      `{"type":"turn/start","data":{"turn":2}}`,
		"another time":    `{"type":"turn/start","data":{"turn":1},"time":1}`,
		"ignorable":       `{"type":"turn/start","data":{"turn":1},"ignorable":true}`,
		"more than it is": `{"type":"turn/start","data":{"turn":1}},` + hi + strings.Repeat(`,{"type":"step","data":null}`, 3),
	} {
		if a := s.post("/v1/sessions", `{"id":"s","events":[`+events+`]}`); a.status != 409 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	// An empty seed is a seed.
	s.post("/v1/sessions", `{"id":"empty","events":[]}`).want(201).same(`{"header":"*","seq":1,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*"}`)
	// A bad one creates nothing.
	s.post("/v1/sessions", `{"id":"bad","events":[{"type":"a","data":1},{"type":"user/message","data":1,"surfaceOp":"append"}]}`).
		problem(422, "event-invalid", `"index":1`, `"reason":"message-invalid"`, `"path":"*"`)
	s.get("/v1/sessions/bad").problem(404, "session-not-found")
}

func TestWhatCreateRefuses(t *testing.T) {
	s := serve(t)
	for body, want := range map[string][]string{
		`{"id":"a/b"}`:           {"422", "id-invalid", `"path":"$.id"`},
		`{"id":"..",  "cwd":1}`:  {"422", "header-invalid", `"path":"$.cwd"`},
		`{"id":".."}`:            {"422", "id-invalid", `"path":"$.id"`},
		`{"id":""}`:              {"422", "id-invalid", `"path":"$.id"`},
		`{"id":5}`:               {"422", "id-invalid", `"path":"$.id"`},
		`{"cwd":"work"}`:         {"422", "header-invalid", `"path":"$.cwd"`},
		`{"cwd":""}`:             {"422", "header-invalid", `"path":"$.cwd"`},
		`{"createdAt":-1}`:       {"422", "header-invalid", `"path":"$.createdAt"`},
		`{"createdAt":1.5}`:      {"422", "header-invalid", `"path":"$.createdAt"`},
		`{"preset":"nope"}`:      {"422", "preset-unknown", `"path":"$.preset"`},
		`{"preset":1}`:           {"422", "preset-unknown", `"path":"$.preset"`},
		`{"origin":"subagent"}`:  {"400", "body-invalid", `"path":"$.origin"`},
		`{"Id":"s"}`:             {"400", "body-invalid", `"path":"$.Id"`},
		`{"id":"s","id":"s"}`:    {"400", "body-invalid", `"path":"*"`},
		`{"events":{}}`:          {"400", "body-invalid", `"path":"$.events"`},
		`{"events":null}`:        {"400", "body-invalid", `"path":"$.events"`},
		`{"events":[1]}`:         {"400", "body-invalid", `"path":"$.events[0]"`},
		`{"events":[{"seq":0}]}`: {"400", "body-invalid", `"path":"$.events[0].seq"`},
		`[]`:                     {"400", "body-invalid", `"path":"$"`},
		`nonsense`:               {"400", "body-invalid", `"path":"$"`},
	} {
		t.Run(body, func(t *testing.T) {
			a := s.post("/v1/sessions", body)
			a.t = t
			if fmt.Sprint(a.status) != want[0] {
				t.Fatalf("%d %s", a.status, a.body)
			}
			a.problem(a.status, want[1], want[2:]...)
		})
	}
	s.get("/v1/sessions").want(200).same(`{"sessions":[]}`)
}

func TestGetDetachDelete(t *testing.T) {
	s := serve(t)
	s.post("/v1/sessions", `{"id":"s","cwd":"/work","createdAt":5}`).want(201)
	cold := strings.Replace(aSession, `"live":true`, `"live":false`, 1)
	s.post("/v1/sessions/s/detach", "").want(200).same(cold)
	s.post("/v1/sessions/s/detach", "{}").want(200).same(cold)
	for range 2 { // Looking does not make it live.
		s.get("/v1/sessions/s").want(200).same(cold)
		s.get("/v1/sessions/s/events").want(200).same(`{"events":[],"seq":0}`)
		s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":-1,"values":{"steps":0},"revs":{"steps":"*"}}`)
	}
	s.get("/v1/sessions/s/surface").want(200)
	s.get("/v1/sessions/s").want(200).same(aSession)
	a := s.do("DELETE", "/v1/sessions/s", "").want(204)
	if a.body != "" {
		t.Errorf("a deletion answers %q", a.body)
	}
	for _, path := range []string{"", "/events", "/projections", "/projections?at=-1", "/projections?minSeq=0", "/surface", "/messages", "/stream"} {
		s.get("/v1/sessions/s"+path).problem(404, "session-not-found")
	}
	for path, body := range map[string]string{"/events": `{"type":"a","data":1}`, "/fork": "", "/recover": "", "/detach": "",
		"/compact": `{"start":0,"end":0,"message":{"id":"m","role":"user","source":{"kind":"user"},"content":[]}}`} {
		s.post("/v1/sessions/s"+path, body).problem(404, "session-not-found")
	}
	s.do("DELETE", "/v1/sessions/s", "").problem(404, "session-not-found")
	s.post("/v1/sessions", `{"id":"s"}`).want(201)
}

func TestList(t *testing.T) {
	s := serve(t)
	for i := range 5 {
		s.create(fmt.Sprint("s", i))
	}
	s.step("s0", 2)
	ids := func(a *answer) (ids []string, cursor string) {
		o := a.want(200).object()
		for _, one := range o["sessions"].([]any) {
			ids = append(ids, one.(map[string]any)["header"].(map[string]any)["id"].(string))
		}
		cursor, _ = o["cursor"].(string)
		return ids, cursor
	}
	all, cursor := ids(s.get("/v1/sessions"))
	if got := strings.Join(all, " "); got != "s0 s4 s3 s2 s1" || cursor != "" {
		t.Errorf("latest first: %s, cursor %q", got, cursor)
	}
	var paged []string
	for {
		page, next := ids(s.get("/v1/sessions?limit=2&cursor=" + url.QueryEscape(cursor)))
		paged = append(paged, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	if got := strings.Join(paged, " "); got != "s0 s4 s3 s2 s1" {
		t.Errorf("by pages: %s", got)
	}
	const bare = `{"header":"*","seq":2,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*"%s}`
	for query, more := range map[string]string{
		"":                  `,"projections":{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":{"steps":"*"}}`,
		"&keys=steps,other": `,"projections":{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":{"steps":"*"}}`,
		"&keys=other":       "",
		"&keys=":            "",
	} {
		s.get("/v1/sessions?limit=1" + query).want(200).same(fmt.Sprintf(`{"sessions":[%s],"cursor":"*"}`, fmt.Sprintf(bare, more)))
	}
	for _, bad := range []string{"?limit=0", "?limit=1001", "?limit=x", "?limit=1&limit=2", "?cursor=x", "?page=1", "?%zz"} {
		s.get("/v1/sessions"+bad).problem(400, "body-invalid")
	}
}

func TestPathsAndMethods(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.create("a.b-c_D")
	s.get("/v1/sessions/a.b-c_D").want(200)
	s.get("/v1/sessions/a%2Eb-c_D").want(200) // The same, spelled otherwise.
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/nope", "/v1/sessions/", "/v1/sessions/s/", "/v1/sessions/s/nope", "/v1//sessions", "/v1/sessions/s/events/0", "/V1/sessions"} {
		s.get(path).problem(404, "not-found")
	}
	// An id is matched whole: nothing in it leads elsewhere.
	for _, id := range []string{"S", "s%2Fevents", "%2e%2e", "%2e", "s%00", "s%20", "..%2Fs"} {
		s.get("/v1/sessions/"+id).problem(404, "session-not-found")
	}
	for path, allow := range map[string]string{
		"/v1/sessions": "GET, HEAD, POST", "/v1/sessions/s": "GET, HEAD, DELETE", "/v1/sessions/s/fork": "POST", "/v1/sessions/s/stream": "GET, HEAD", "/readyz": "GET, HEAD",
	} {
		a := s.do("PUT", path, "{}").problem(405, "method-not-allowed")
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("%s allows %q, want %q", path, got, allow)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions/s/stream", "/healthz"} {
		if a := s.do("HEAD", path, "").want(200); a.body != "" {
			t.Errorf("HEAD %s answers %q", path, a.body)
		}
	}
}

// Bodies have 16 MiB when nobody says otherwise, and not a byte more.
func TestTheLimitOnBodiesByItself(t *testing.T) {
	s := serve(t)
	s.create("s")
	const path, body, most = "/v1/sessions/s/events", `{"type":"step","data":null}`, 16 << 20
	full := body + strings.Repeat(" ", most-len(body))
	s.post(path, full).want(200)
	s.post(path, full+" ").problem(413, "too-large", `"size":16777217`, `"limit":16777216`)
	s.chunked(path, full+" ").problem(413, "too-large", `"size":16777217`, `"limit":16777216`)
	if got := len(s.seqs("s")); got != 1 {
		t.Errorf("%d events are in the log", got)
	}
}

// updatedAt is when the last commit was, whatever the events say and whoever reads since.
func TestUpdatedAtIsTheTimeOfTheLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t)
		defer s.close()
		updated := func() int64 {
			one := s.get("/v1/sessions/s").want(200).object()["updatedAt"]
			if listed := s.get("/v1/sessions").want(200).object()["sessions"].([]any)[0].(map[string]any)["updatedAt"]; listed != one {
				t.Errorf("updatedAt is %v, and %v in the list", one, listed)
			}
			return int64(one.(float64))
		}
		last := time.Now().UnixMilli()
		s.post("/v1/sessions", `{"id":"s","createdAt":5}`).want(201)
		for _, write := range []string{"", "events", "recover", "detach", "projections"} {
			time.Sleep(7 * time.Second)
			switch write {
			case "events":
				last = time.Now().UnixMilli()
				s.post("/v1/sessions/s/events", `{"events":[{"type":"step","data":1,"time":1},{"type":"turn/start","data":{"turn":1},"time":2}]}`).want(200)
			case "recover":
				last = time.Now().UnixMilli()
				s.post("/v1/sessions/s/recover", ``).want(200)
			case "detach":
				s.post("/v1/sessions/s/detach", ``).want(200)
			case "projections":
				s.get("/v1/sessions/s/projections").want(200)
			}
			if got := updated(); got != last {
				t.Errorf("after %q it is %d, want %d", write, got, last)
			}
		}
	})
}

func TestBodies(t *testing.T) {
	s := serve(t, func(o *options) { o.api.MaxBodyBytes = 1000 })
	s.create("s")
	const path, body = "/v1/sessions/s/events", `{"type":"step","data":null}`
	for _, kind := range []string{"application/json; charset=UTF-8", "Application/JSON"} {
		s.post(path, body, "Content-Type: "+kind).want(200)
	}
	for _, kind := range []string{"text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded", "application/problem+json", ""} {
		s.post(path, body, "Content-Type: "+kind).problem(415, "content-type")
	}
	s.post(path, body, "Content-Encoding: gzip").problem(415, "content-type")
	s.post(path, "", "Content-Type: application/json").problem(400, "body-invalid", `"path":"*"`)
	s.post("/v1/sessions/s/recover", "", "Content-Type: text/plain").problem(415, "content-type")
	s.post("/v1/sessions/s/recover", "{}").want(200)
	s.post("/v1/sessions/s/recover", `{"x":1}`).problem(400, "body-invalid", `"path":"$.x"`)
	long := strings.Repeat(" ", 1000) + "{}"
	s.post(path, long).problem(413, "too-large", `"size":1002`, `"limit":1000`)
	s.chunked(path, long).problem(413, "too-large", `"size":1001`, `"limit":1000`)
	s.chunked(path, body).want(200)
	if got := len(s.seqs("s")); got != 3 {
		t.Errorf("%d events are in the log, want 3", got)
	}
}

func TestReady(t *testing.T) {
	s := serve(t)
	s.get("/healthz").want(200).same(`{"ok":true}`)
	a := s.get("/readyz")
	for a.status != 200 { // The wait for plugins ends on a goroutine of its own.
		a = s.get("/readyz")
	}
	a.same(`{"ready":true,"missing":[]}`)
	s.api.Stop()
	s.get("/readyz").want(503).same(`{"ready":false,"missing":[]}`)
	s.get("/healthz").want(200)
	s.get("/v1/sessions").want(200)
	s.create("s")
	s.get("/v1/sessions/s/stream").problem(503, "overloaded")
	s.get("/v1/sessions/s/projections?minSeq=0&wait=1m").problem(503, "overloaded")
}

// swapped is a store in which something happens between a list and the look at its rows.
type swapped struct {
	*memory.Store
	meanwhile func()
}

func (s *swapped) RowsOf(ctx context.Context, ids []string) ([]eventlog.RowSet, error) {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	return s.Store.RowsOf(ctx, ids)
}

// A session that is deleted and made again while a list is put together does not show the values of one life beside the header of the other.
func TestAListDoesNotMixLives(t *testing.T) {
	store := &swapped{Store: memory.New()}
	s := serve(t, func(o *options) { o.store = store })
	s.create("s")
	s.step("s", 2)
	store.meanwhile = func() {
		s.do("DELETE", "/v1/sessions/s", "").want(204)
		s.create("s")
		s.step("s", 1)
	}
	if a := s.get("/v1/sessions").want(200); !strings.Contains(a.body, `"seq":2`) || strings.Contains(a.body, "projections") {
		t.Errorf("while it was made again: %s", a.body)
	}
	if a := s.get("/v1/sessions").want(200); !strings.Contains(a.body, `"seq":1`) || !strings.Contains(a.body, `"values":{"steps":1}`) {
		t.Errorf("afterwards: %s", a.body)
	}
}
