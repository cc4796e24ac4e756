package api_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// What fails below is told to those who administer the server, and to the others without its files and insides.
func TestProblemsKeepFilesAndInsidesBack(t *testing.T) {
	secret := errors.New("write /var/lib/foldhost/foldhost.db: table event_rows: input/output error")
	for code, c := range map[string]struct {
		err    error
		status int
	}{
		"internal":       {secret, 500},
		"store-readonly": {&eventlog.ReadOnlyError{Cause: secret}, 503},
		"disk-full":      {&eventlog.DiskFullError{Cause: secret}, 507},
	} {
		store := logtest.Slow(memory.New())
		s := guarded(t, func(o *options) { o.store = store })
		s.post("/v1/sessions", `{"id":"s"}`, "Authorization: Bearer append").want(201)
		store.Fail(logtest.Append, c.err)
		a := s.post("/v1/sessions/s/events", `{"type":"step","data":1}`, "Authorization: Bearer append").problem(c.status, code)
		for _, part := range []string{"/var/lib", "event_rows", "input/output"} {
			if strings.Contains(a.body, part) {
				t.Errorf("%s: it tells %s", code, a.body)
			}
		}
	}
	// Without tokens everybody administers it, as the commands do that open a directory themselves.
	store := logtest.Slow(memory.New())
	s := serve(t, func(o *options) { o.store = store })
	s.create("s")
	store.Fail(logtest.Append, secret)
	if a := s.post("/v1/sessions/s/events", `{"type":"step","data":1}`).problem(500, "internal"); !strings.Contains(a.body, "event_rows") {
		t.Errorf("who administers it hears %s", a.body)
	}
}
