package api_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
)

// counted finds what was counted of one kind of request; 0 for nothing.
func (s *server) counted(route, method string, code int) uint64 {
	for _, r := range s.api.Stats().Requests {
		if r.Route == route && r.Method == method && r.Code == code {
			return r.Seconds.Count
		}
	}
	return 0
}

// A request counts once, under its route and never under its path, when it has ended.
func TestRequestsAreCountedByRoute(t *testing.T) {
	s := serve(t)
	s.post("/v1/sessions", `{"id":"a"}`).want(201)
	s.post("/v1/sessions", `{"id":"b"}`).want(201)
	s.get("/v1/sessions/a").want(200)
	s.get("/v1/sessions/b").want(200)
	s.get("/v1/sessions/c").want(404)
	s.do("HEAD", "/v1/sessions/a", "").want(200)
	s.get("/nothing").want(404)
	s.do("BREW", "/nothing", "").want(404)
	s.do("PUT", "/v1/sessions", "").want(405)
	s.do("DELETE", "/v1/sessions/b", "").want(204)
	s.close() // What is answered may not have been counted before.
	for kind, want := range map[[3]any]uint64{
		{"/v1/sessions", "POST", 201}: 2, {"/v1/sessions/{id}", "GET", 200}: 2, {"/v1/sessions/{id}", "GET", 404}: 1, {"/v1/sessions/{id}", "HEAD", 200}: 1,
		{"", "GET", 404}: 1, {"", "other", 404}: 1, {"", "PUT", 405}: 1,
		{"/v1/sessions/{id}", "DELETE", 204}: 1,
	} {
		if got := s.counted(kind[0].(string), kind[1].(string), kind[2].(int)); got != want {
			t.Errorf("%v: %d, want %d", kind, got, want)
		}
	}
	if n := len(s.api.Stats().Requests); n != 8 {
		t.Errorf("there are %d kinds: %+v", n, s.api.Stats().Requests)
	}
}

func TestStreamsAreCountedWhileTheyAreOpen(t *testing.T) {
	s := serve(t)
	s.post("/v1/sessions", `{"id":"a"}`).want(201)
	f := s.follow("a", "")
	f.opening()
	if st := s.api.Stats(); st.Streams != 1 || st.StreamsOpened != 1 {
		t.Errorf("with one open: %+v", st)
	}
	s.close()
	f.ended()
	if st := s.api.Stats(); st.Streams != 0 || st.StreamsOpened != 1 || s.counted("/v1/sessions/{id}/stream", "GET", 200) != 1 {
		t.Errorf("at the end: %+v", st)
	}
}

// Metrics are whatever the program says they are, with what every answer has.
func TestMetricsAreThoseOfTheProgram(t *testing.T) {
	serve(t).get("/metrics").problem(404, "not-found")
	s := serve(t, func(o *options) {
		o.api.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, "up 1\n")
		})
	})
	a := s.get("/metrics").want(200)
	if a.body != "up 1\n" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q, %v", a.body, a.header)
	}
	s.get("/metrics?x=1").problem(400, "body-invalid")
	s.do("HEAD", "/metrics", "").want(200)
	s.do("POST", "/metrics", "").problem(405, "method-not-allowed")
	s.close()
	if s.counted("/metrics", "GET", 200) != 1 {
		t.Errorf("%+v", s.api.Stats())
	}
}

func TestProfiles(t *testing.T) {
	s := serve(t)
	list := s.get("/debug/pprof").want(200).body
	for _, name := range []string{"profile", "trace", "heap", "goroutine"} {
		if !strings.Contains(list, name+"\t") {
			t.Errorf("%s is not in the list: %s", name, list)
		}
	}
	for _, path := range []string{"/debug/pprof/heap?gc=1", "/debug/pprof/profile?seconds=1", "/debug/pprof/allocs"} {
		if a := s.get(path).want(200); !strings.HasPrefix(a.body, "\x1f\x8b") { // gzip, which a profile is in
			t.Errorf("%s: %.20q", path, a.body)
		}
	}
	if a := s.get("/debug/pprof/trace?seconds=1").want(200); !strings.HasPrefix(a.body, "go 1.") {
		t.Errorf("trace: %.20q", a.body)
	}
	if a := s.get("/debug/pprof/goroutine?debug=2").want(200); !strings.Contains(a.body, "goroutine ") {
		t.Errorf("goroutine: %.200q", a.body)
	}
	s.get("/debug/pprof/nothing").problem(404, "not-found")
	s.get("/debug/pprof/heap?debug=3").problem(400, "body-invalid")
	s.get("/debug/pprof/profile?seconds=0").problem(400, "body-invalid")
	s.get("/debug/pprof/profile?seconds=301").problem(400, "body-invalid")
	s.get("/debug/pprof?x=1").problem(400, "body-invalid")
	s.do("HEAD", "/debug/pprof/profile?seconds=300", "").want(200)
	s.do("POST", "/debug/pprof/heap", "").problem(405, "method-not-allowed")

	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	s.get("/debug/pprof/profile").problem(503, "overloaded")
	pprof.StopCPUProfile()
}

// A profile over a long time does not hold up the end of the server.
func TestAProfileEndsWithTheServer(t *testing.T) {
	s := serve(t)
	said := s.later(func() *answer { return s.get("/debug/pprof/trace?seconds=30") })
	for !trace.IsEnabled() {
		runtime.Gosched()
	}
	s.api.Stop()
	said().want(200)
	s.get("/debug/pprof/profile").problem(503, "overloaded")
}

// Nothing of ours stands on the mux that other packages of a program may serve.
func TestTheDefaultMuxStaysEmpty(t *testing.T) {
	for _, path := range []string{"/debug/pprof/", "/metrics"} {
		r, err := http.NewRequest("GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, pattern := http.DefaultServeMux.Handler(r); pattern != "" {
			t.Errorf("%s is served by %s", path, pattern)
		}
	}
}
