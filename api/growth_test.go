package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// What is refused costs about what was sent: lists are read up to the first element that is wrong, or one too many, whatever stands behind it.
func TestRefusedBodiesDoNotGrow(t *testing.T) {
	s := compose(t, options{})
	defer s.close()
	ask := func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, r)
		return w
	}
	if w := ask("/v1/sessions", `{"id":"s"}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	const size = 4 << 20
	fill := func(before, each, after string) string {
		return before + strings.Repeat(each+",", (size-len(before)-len(after))/(len(each)+1)-1) + each + after
	}
	for _, c := range []struct{ path, body, place string }{
		{"/v1/sessions/s/events", fill(`{"events":[`, `0`, `]}`), `"path":"$.events[0]"`},
		{"/v1/sessions/s/events", fill(`{"events":[`, `{}`, `]}`), `"path":"$.type"`},
		{"/v1/sessions/s/events", fill(`{"events":[`, `{"type":"a","data":0}`, `]}`), `"path":"$.events","size":100001,"limit":100000`},
		{"/v1/sessions", fill(`{"events":[`, `0`, `]}`), `"path":"$.events[0]"`},
		{"/v1/sessions", fill(`{"events":[`, `{"type":"a","data":0}`, `]}`), `"path":"$.events","size":100001,"limit":100000`},
		{"/v1/stream", fill(`{"sessions":[`, `{}`, `]}`), `"path":"$.sessions","size":21,"limit":20`},
		{"/v1/stream", fill(`{"sessions":[`, `0`, `]}`), `"path":"$.sessions[0]"`},
		{"/v1/stream", fill(`{"sessions":[{"id":"s"}],"keys":[`, `0`, `]}`), `"path":"$.keys[0]"`},
		{"/v1/stream", fill(`{"sessions":[{"id":"s"}],"keys":[`, `"a"`, `]}`), `"path":"$.keys","size":1001,"limit":1000`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := ask(c.path, c.body)
		runtime.ReadMemStats(&after)
		name := fmt.Sprintf("%s %.40s", c.path, c.body)
		if w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), c.place) {
			t.Errorf("%s: %d %.300s", name, w.Code, w.Body)
		}
		grown := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB", name, grown>>10)
		// The body itself is read into a buffer that doubles as it comes; 100,000 events that were right have been read when one too many stands behind them.
		if most := uint64(6 * size); grown > most && !strings.Contains(c.place, "100001") || grown > 24*size {
			t.Errorf("%s: %d MiB were allocated for %d", name, grown>>20, size>>20)
		}
	}
}
