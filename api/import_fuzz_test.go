package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/unit"
)

// Whatever comes as a log is taken whole or leaves nothing behind, and what was taken goes out and in again as the same.
func FuzzImport(f *testing.F) {
	f.Add(interchange("s", note(0, "step"), chunksRow, note(4, "step")))
	f.Add(interchange("s", note(0, "step"), note(2, "step")))
	f.Add(interchange("s", note(0, "step")) + `{"torn`)
	f.Add(interchange("s", `{"type":"user/message","seq":0,"time":1,"data":`+message("m")+`,"surfaceOp":"append"}`))
	f.Add("\x28\xb5\x2f\xfd\x00\x58")
	f.Fuzz(func(t *testing.T, log string) {
		s := compose(t, options{store: memory.New(), units: []unit.Definition{counter("steps", "step")}})
		defer s.close()
		ask := func(method, path, body string) (int, string) {
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/x-ndjson")
			w := httptest.NewRecorder()
			s.api.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		status, text := ask("POST", "/v1/import?id=one", log)
		switch status {
		case 201:
		case 400, 413, 422:
			if status, _ := ask("GET", "/v1/sessions/one", ""); status != 404 {
				t.Fatalf("refused by %s, and something is there", text)
			}
			return
		default:
			t.Fatalf("%d %s", status, text)
		}
		_, out := ask("GET", "/v1/sessions/one/export", "")
		if status, text := ask("POST", "/v1/import?id=two&strict", out); status != 201 {
			t.Fatalf("what goes out does not come in: %d %s\n%s", status, text, out)
		}
		_, again := ask("GET", "/v1/sessions/two/export", "")
		if _, events, _ := strings.Cut(out, "\n"); !strings.HasSuffix(again, "\n"+events) {
			t.Fatalf("it went out as\n%s\nand then as\n%s", out, again)
		}
	})
}
