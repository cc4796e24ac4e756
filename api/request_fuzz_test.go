package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
)

// left is a caller who leaves as soon as a stream has said something.
type left struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l *left) Flush() { l.leave() }

// Whatever is asked for, the answer is one of the description, nothing is the server's own fault, and what is refused changes nothing.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, key, body string }{
		{"GET", "/v1/sessions?limit=2&cursor=x&keys=steps,", "", ""},
		{"POST", "/v1/sessions", "k", `{"id":"t","cwd":"/w","createdAt":1,"events":[{"type":"step","data":null}]}`},
		{"POST", "/v1/sessions/s/events?projections=steps", "k2", `{"events":[{"type":"user/message","data":{"message":{"role":"user","content":[{"type":"text","text":"x"}]}},"surfaceOp":"append"}],"expectedSeq":3}`},
		{"POST", "/v1/sessions/s/events", "", `{"type":"step","data":1e400,"time":-1,"sourceEventSeqs":[0],"surfaceOp":{"op":"replace","start":0,"end":1},"ignorable":true}`},
		{"GET", "/v1/sessions/s/events?from=0&limit=3&types=step,break", "", ""},
		{"GET", "/v1/sessions/s/history?beforeSeq=2&maxMessages=1&keys=", "", ""},
		{"GET", "/v1/sessions/s/projections?at=-1&minSeq=1&wait=0&keys=*", "", ""},
		{"POST", "/v1/sessions/s/fork", "f", `{"atSeq":1,"id":"child"}`},
		{"POST", "/v1/sessions/s/compact", "", `{"start":1,"end":2,"message":{"role":"user","content":[]}}`},
		{"POST", "/v1/sessions/s/recover?projections", "", `{}`},
		{"POST", "/v1/sessions/s/retry", "", `{"keys":["steps"]}`},
		{"POST", "/v1/sessions/s/verify", "", ``},
		{"POST", "/v1/sessions/s/detach", "", ``},
		{"GET", "/v1/sessions/s/surface", "", ""},
		{"GET", "/v1/sessions/s/messages", "", ""},
		{"GET", "/v1/sessions/s/export?pack=false", "", ""},
		{"GET", "/v1/sessions/s/stream?after=x:1&events=none&keys=steps", "", ""},
		{"GET", "/v1/stream?session=s&session=none&after=-1", "", ""},
		{"POST", "/v1/stream", "", `{"sessions":[{"id":"s","after":0},{"id":"x","after":"a:1"}],"events":[],"keys":["steps"],"after":"y:3"}`},
		{"POST", "/v1/sessions/s/tools/set_goal", "t", `{"arguments":{"goal":{"a":[1,2.50,"\ud83d\ude00"]}}}`},
		{"GET", "/v1/plugins?preset=x", "", ""},
		{"POST", "/v1/plugins/goal/restart", "", "{}"},
		{"DELETE", "/v1/sessions/t", "", ""},
		{"HEAD", "/v1/tools", "", ""},
		{"PUT", "/v1/sessions/%2e%2e/events", "", ""},
		{"POST", "/v1/store/backup", "", `{"path":"relative"}`},
	} {
		f.Add(seed.method, seed.target, seed.key, seed.body)
	}
	s := compose(f, options{})
	defer s.close()
	s.add(goals("goal"))
	contract := newContract()
	served := contract.watch(s.api)
	ask := func(method, target, key, body string) *httptest.ResponseRecorder {
		at, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(at.Path, "/") {
			return nil
		}
		ctx, leave := context.WithCancel(context.Background())
		defer leave()
		r := httptest.NewRequestWithContext(ctx, "GET", "/", strings.NewReader(body))
		r.Method, r.URL, r.RequestURI = method, at, target
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		} else {
			r.ContentLength, r.Body = 0, http.NoBody
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(&left{w, leave}, r)
		return w
	}
	all := func() string {
		text := ""
		for cursor := ""; ; {
			page, err := s.host.Sessions().List(context.Background(), eventlog.ListQuery{Cursor: cursor})
			if err != nil {
				f.Fatal(err)
			}
			for _, l := range page.Logs {
				text += l.Header.ID + l.Incarnation + string(rune('0'+l.Seq)) + " "
			}
			if cursor = page.Cursor; cursor == "" {
				return text
			}
		}
	}
	f.Fuzz(func(t *testing.T, method, target, key, body string) {
		if strings.Contains(target, "minSeq") || method == "" || strings.ContainsAny(method, " \r\n\t") { // A wait is no fault.
			return
		}
		ask("POST", "/v1/sessions", "", `{"id":"s","events":[{"type":"step","data":1},{"type":"break","data":1}]}`)
		before := all()
		w := ask(method, target, key, body)
		if w == nil {
			return
		}
		if found := contract.breaches; len(found) > 0 {
			contract.breaches = nil
			t.Fatalf("%q %q %q: %s", method, target, body, found)
		}
		if w.Code >= 500 && w.Code != http.StatusGatewayTimeout {
			t.Fatalf("%q %q %q is answered by %d %s", method, target, body, w.Code, w.Body)
		}
		if w.Code < 400 {
			return
		}
		if after := all(); after != before {
			t.Fatalf("%q %q %q is answered by %d, and there are %s, there were %s", method, target, body, w.Code, after, before)
		}
		var problem struct{ Code, Detail string }
		if method != http.MethodHead && (json.Unmarshal(w.Body.Bytes(), &problem) != nil || problem.Code == "" || problem.Detail == "") {
			t.Fatalf("%q %q %q is answered by %d %q", method, target, body, w.Code, w.Body)
		}
	})
}
