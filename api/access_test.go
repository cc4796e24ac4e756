package api_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// guarded is a server with a token for each scope, named after it, and one with none but two.
func guarded(t testing.TB, change ...func(*options)) *server {
	t.Helper()
	tokens, err := api.ReadTokens(tokenFile(t, "read read\nappend append\nadmin admin\nboth read,append\n"))
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, append(change, func(o *options) { o.api.Tokens = tokens })...)
}

// scopesOf says what each call asks. A call that is not here fails the test.
var scopesOf = map[string][]string{
	"open": {"GET /healthz", "GET /readyz"},
	"read": {
		"GET /v1/sessions", "GET /v1/sessions/{id}", "GET /v1/sessions/{id}/events", "GET /v1/sessions/{id}/history", "GET /v1/sessions/{id}/projections", "GET /v1/sessions/{id}/surface",
		"GET /v1/sessions/{id}/messages", "GET /v1/sessions/{id}/export", "GET /v1/sessions/{id}/stream", "GET /v1/stream", "POST /v1/stream", "GET /v1/tools", "GET /v1/projections",
	},
	"append": {
		"POST /v1/sessions", "POST /v1/import", "POST /v1/sessions/{id}/events", "POST /v1/sessions/{id}/fork", "POST /v1/sessions/{id}/compact", "POST /v1/sessions/{id}/recover",
		"POST /v1/sessions/{id}/tools/{name}",
	},
	"known": {"GET /v1/openapi.json"},
	"admin": {
		"DELETE /v1/sessions/{id}", "POST /v1/sessions/{id}/detach", "POST /v1/sessions/{id}/retry", "POST /v1/sessions/{id}/verify", "GET /v1/plugins", "POST /v1/plugins/{name}/restart",
		"GET /v1/store", "POST /v1/store/check", "POST /v1/store/backup", "GET /metrics", "GET /debug/pprof", "GET /debug/pprof/{profile}",
	},
}

func TestEveryCallHasItsScope(t *testing.T) {
	want := map[string]string{}
	for scope, patterns := range scopesOf {
		for _, p := range patterns {
			want[p] = scope
		}
	}
	if diff := cmp.Diff(want, api.Routes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := guarded(t)
	for _, pattern := range slices.Sorted(maps.Keys(want)) {
		scope := want[pattern]
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{id}", "nobody", "{name}", "nothing", "{profile}", "goroutine").Replace(path)
		for _, authorization := range []string{"", "Bearer", "Bearer nothing", "Bearer rea", "Bearer read2", "Basic read", "read", "Bearer read admin"} {
			a := s.do(method, path, "", "Authorization: "+authorization)
			if scope == "open" {
				if a.status == 401 || a.status == 403 {
					t.Errorf("%s: %d", pattern, a.status)
				}
				continue
			}
			a.problem(401, "unauthenticated")
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s with %q: WWW-Authenticate is %q", pattern, authorization, a.header.Get("WWW-Authenticate"))
			}
		}
		for _, token := range []string{"read", "append", "admin", "both"} {
			a := s.do(method, path, "", "Authorization: Bearer "+token)
			may := scope == "open" || scope == "known" || token == scope || token == "both" && scope != "admin"
			if may && (a.status == 401 || a.status == 403) {
				t.Errorf("%s with %s: %d %s", pattern, token, a.status, a.body)
			}
			if !may {
				a.problem(403, "forbidden")
			}
		}
	}
	// A scheme is a word in whatever letters; a token is not.
	s.get("/v1/sessions", "Authorization: bearer read").want(200)
	s.get("/v1/sessions", "Authorization: Bearer READ").want(401)
	// What there is not is told to those who are known.
	for _, path := range []string{"/", "/v1", "/v1/nothing", "/debug", "/debug/pprof/", "/debug/pprof/heap/x", "/v1/sessions/../plugins"} {
		s.get(path).problem(401, "unauthenticated")
		s.get(path, "Authorization: Bearer read").problem(404, "not-found")
	}
	s.do("PUT", "/v1/sessions", "").problem(401, "unauthenticated")
	s.do("PUT", "/v1/sessions", "", "Authorization: Bearer read").problem(405, "method-not-allowed")
}

// What is refused changes nothing.
func TestWithoutATokenNothingChanges(t *testing.T) {
	s := guarded(t)
	s.post("/v1/sessions", `{"id":"s"}`).want(401)
	s.post("/v1/sessions", `{"id":"s"}`, "Authorization: Bearer read").want(403)
	s.get("/v1/sessions/s", "Authorization: Bearer read").problem(404, "session-not-found")
	s.post("/v1/sessions", `{"id":"s"}`, "Authorization: Bearer append").want(201)
	s.do("DELETE", "/v1/sessions/s", "", "Authorization: Bearer both").want(403)
	s.get("/v1/sessions/s", "Authorization: Bearer both").want(200)
}

// hosted sends a request for a host that is not where it goes.
func (s *server) hosted(host string) *answer {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+"/v1/sessions", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = host
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	return &answer{s.t, "for " + host, res.StatusCode, res.Header, ""}
}

// A server goes by its address and its names, whatever a stranger's name leads to.
func TestHosts(t *testing.T) {
	s := serve(t, func(o *options) {
		o.api.AllowedOrigins, o.api.Names = []string{"https://App.example.com:8443"}, []string{"here.example"}
	})
	for host, status := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:7420": 200, "127.8.8.8": 200, "localhost": 200, "LOCALHOST.:80": 200, "[::1]": 200, "[::1]:80": 200, "[::ffff:127.0.0.1]:80": 200,
		"here.example": 200, "here.example:80": 200, "app.example.com": 200,
		"evil.example": 403, "evil.example:7420": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403, "sub.here.example": 403, "192.0.2.1": 403, "0.0.0.0": 403, "[::]:80": 403,
		"[2001:db8::1]": 403,
	} {
		s.hosted(host).want(status)
	}
	// Where others reach it any address will do, which no name was looked up for.
	direct := compose(t, options{store: memory.New()})
	defer direct.close()
	for host, status := range map[string]int{"192.0.2.1:7420": 200, "[2001:db8::1]": 200, "127.0.0.1": 200, "localhost": 200, "": 200, "evil.example": 403} {
		for local, want := range map[net.Addr]int{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 9)}: status, &net.UnixAddr{Name: "s"}: 200} {
			w, r := &recorder{header: http.Header{}}, mustRequest(t, "/v1/sessions")
			r.Host = host
			direct.api.ServeHTTP(w, r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local)))
			if w.status != want {
				t.Errorf("for %q at %v: %d %s", host, local, w.status, w.text.String())
			}
		}
	}
}

// What a browser gets for a page of a stranger's without saying its origin, such as an image, is refused before anything is done; what somebody typed, the server's own pages and programs are served.
func TestSites(t *testing.T) {
	s := serve(t, func(o *options) { o.api.AllowedOrigins = []string{"https://app.example.com"} })
	s.create("s")
	for site, status := range map[string]int{"none": 200, "same-origin": 200, "cross-site": 403, "same-site": 403} {
		for _, path := range []string{"/v1/sessions", "/v1/sessions/s/projections", "/healthz"} {
			a := s.get(path, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image").want(status)
			if status == 403 {
				a.problem(403, "forbidden")
			}
		}
		s.get("/v1/sessions", "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: cors", "Origin: https://app.example.com").want(200)
		s.get("/v1/sessions", "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: cors", "Origin: https://evil.example").want(403)
	}
}

// Pages call the server from its own origin and from those that are allowed.
func TestOrigins(t *testing.T) {
	s := guarded(t, func(o *options) { o.api.AllowedOrigins = []string{"https://app.example.com"} })
	for origin, c := range map[string]struct {
		status  int
		allowed bool
	}{
		s.url:                     {200, false},
		"https://app.example.com": {200, true}, "HTTPS://App.example.com": {200, true},
		"null": {403, false}, "https://evil.example": {403, false}, "http://app.example.com": {403, false}, "https://app.example.com:8443": {403, false},
		"https://app.example.com.evil.example": {403, false}, "http://127.0.0.1:1": {403, false}, "http://localhost:3000": {403, false}, "file://": {403, false},
	} {
		a := s.get("/v1/sessions", "Authorization: Bearer read", "Origin: "+origin).want(c.status)
		if allowed := a.header.Get("Access-Control-Allow-Origin"); (allowed != "") != c.allowed || c.allowed && (allowed != origin || a.header.Get("Vary") != "Origin") {
			t.Errorf("%s: %v", origin, a.header)
		}
		// Without a token an allowed page can read that it needs one, and what asks beforehand has none.
		if a := s.get("/v1/sessions", "Origin: "+origin); c.allowed && (a.status != 401 || a.header.Get("Access-Control-Allow-Origin") == "") {
			t.Errorf("%s: %d %v", origin, a.status, a.header)
		}
		for _, path := range []string{"/v1/sessions", "/v1/sessions/s/stream"} {
			a := s.do("OPTIONS", path, "", "Origin: "+origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,idempotency-key")
			if !c.allowed {
				if a.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: %v", origin, a.header)
				}
				continue
			}
			a.want(204)
			for header, parts := range map[string]string{"Access-Control-Allow-Headers": "Authorization Idempotency-Key Last-Event-ID Content-Type", "Access-Control-Allow-Methods": "GET POST DELETE"} {
				for part := range strings.FieldsSeq(parts) {
					if !slices.Contains(strings.Split(a.header.Get(header), ", "), part) {
						t.Errorf("%s: %s is %q", origin, header, a.header.Get(header))
					}
				}
			}
			if got := a.header.Get("Access-Control-Allow-Credentials"); got != "" {
				t.Errorf("%s: credentials are %q", origin, got)
			}
		}
	}
	// A write of a foreign page does nothing, also where there are no tokens.
	free := serve(t)
	free.post("/v1/sessions", `{"id":"s"}`, "Origin: https://evil.example").problem(403, "forbidden")
	free.get("/v1/sessions/s").want(404)
	free.do("OPTIONS", "/v1/sessions", "").problem(405, "method-not-allowed")
}

func TestOtherAddressesNeedTokens(t *testing.T) {
	tokens, err := api.ReadTokens(tokenFile(t, "s3cret read\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "127.0.0.1:0", "localhost:0"} {
		if err := api.CheckAddress(t.Context(), address, tokens); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"7420", "", "nobody.invalid:0"} {
		if err := api.CheckAddress(t.Context(), address, tokens); err == nil {
			t.Errorf("%q passes", address)
		}
	}
	l, err := api.Listen(t.Context(), "0.0.0.0:0", tokens)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if want := fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port); api.Loopback(l.Addr()) || api.HostPort(l.Addr()) != want {
		t.Errorf("%v is reached at %s", l.Addr(), api.HostPort(l.Addr()))
	}
}
