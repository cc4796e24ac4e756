package api_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/countunit"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(contracted{m}) }

// patient is for what must come, and is never waited out by a test that passes.
const patient = time.Minute

// counter counts the events of some types, and fails at "break".
func counter(key string, types ...string) unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: schema, ViewSchema: schema, Events: append(types, "break"), Inline: counting{}}
}

type counting = countunit.Inline

// server is an API over a host, with a client.
type server struct {
	t     testing.TB
	host  *host.Host
	api   *api.API
	url   string
	http  *http.Client
	close func()
}

// options are those of a test.
type options struct {
	store eventlog.Store
	host  host.Options
	api   api.Options
	units []unit.Definition
	// observe is told of commits before the API is.
	observe session.Observer
	// log gets what is logged, beside the test.
	log io.Writer
}

// serve starts a server with the unit "steps", which counts "step"; it ends with the test.
func serve(t testing.TB, change ...func(*options)) *server {
	t.Helper()
	o := options{store: memory.New(), units: []unit.Definition{counter("steps", "step")}}
	for _, c := range change {
		c(&o)
	}
	s := compose(t, o)
	web := httptest.NewServer(described().watch(s.api))
	s.url, s.http = web.URL, web.Client()
	end := s.close
	s.close = func() {
		s.api.Stop()
		web.Close()
		end()
	}
	t.Cleanup(func() { s.close() })
	return s
}

// compose makes an API over a host, without a network. close ends both, once.
func compose(t testing.TB, o options) *server {
	t.Helper()
	o.host.Store = o.store
	o.host.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(testLog{t}, cmp.Or[io.Writer](o.log, io.Discard)), &slog.HandlerOptions{Level: slog.LevelDebug}))
	h, err := host.Open(o.host)
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range o.units {
		if _, err := h.Register("test", def); err != nil {
			t.Fatal(err)
		}
	}
	if o.observe != nil {
		h.Sessions().AddObserver(o.observe)
	}
	o.api.Host, o.api.Logger = h, o.host.Logger
	s := &server{t: t, host: h, api: api.New(o.api)}
	closed := false
	s.close = func() {
		if closed {
			return
		}
		closed = true
		s.api.Close()
		if err := h.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	}
	return s
}

// testLog is a test's log as a writer.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	if _, fuzzing := l.t.(*testing.F); testing.Verbose() && !fuzzing { // A target may not log where the server does.
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// answer is what came of a request.
type answer struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

// do sends a request. headers are "Name: value"; a body is JSON unless they say otherwise.
func (s *server) do(method, path, body string, headers ...string) *answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return &answer{s.t, method + " " + path, res.StatusCode, res.Header, string(text)}
}

func (s *server) get(path string, headers ...string) *answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, "", headers...)
}
func (s *server) post(path, body string, headers ...string) *answer {
	s.t.Helper()
	return s.do(http.MethodPost, path, body, headers...)
}

// later sends a request beside the test, and gives what waits for its answer. A request that fails the test ends it there.
func (s *server) later(send func() *answer) (wait func() *answer) {
	got := make(chan *answer, 1)
	go func() {
		defer close(got)
		got <- send()
	}()
	return func() *answer {
		s.t.Helper()
		a := <-got
		if a == nil {
			s.t.FailNow()
		}
		return a
	}
}

// chunked sends a body that does not say how long it is.
func (s *server) chunked(path, body string) *answer {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return &answer{s.t, "chunked " + path, res.StatusCode, res.Header, string(text)}
}

// create makes a session, and step appends n events to it.
func (s *server) create(id string) {
	s.t.Helper()
	s.post("/v1/sessions", fmt.Sprintf(`{"id":%q}`, id)).want(201)
}
func (s *server) step(id string, n int) {
	s.t.Helper()
	for range n {
		s.post("/v1/sessions/"+id+"/events", `{"type":"step","data":null}`).want(200)
	}
}

// want checks the status.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// object reads the body.
func (a *answer) object() map[string]any {
	a.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return o
}

// same wants this JSON; a string "*" in it stands for anything.
func (a *answer) same(want string) *answer {
	a.t.Helper()
	same(a.t, a.what, a.body, want)
	return a
}

// problem wants a problem with these members besides the fixed ones.
func (a *answer) problem(status int, code string, more ...string) *answer {
	a.t.Helper()
	a.want(status)
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		a.t.Errorf("%s: a problem of type %q", a.what, kind)
	}
	want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"code":%q,"detail":"*"`, http.StatusText(status), status, code)
	for _, m := range more {
		want += "," + m
	}
	return a.same(want + "}")
}

func same(t testing.TB, what, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("the test wants %s: %v", want, err)
	}
	if !alike(w, g) {
		t.Errorf("%s gives\n%s\nand not\n%s", what, got, want)
	}
}

// alike compares values of JSON; "*" is like anything.
func alike(a, b any) bool {
	if a == "*" || b == "*" {
		return true
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, has := y[k]; !has || !alike(x[k], v) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !alike(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// events reads the seqs of all events of a session.
func (s *server) seqs(id string) []int64 {
	s.t.Helper()
	var page struct {
		Events []struct {
			Seq int64 `json:"seq"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(s.get("/v1/sessions/"+id+"/events").want(200).body), &page); err != nil {
		s.t.Fatal(err)
	}
	var seqs []int64
	for _, e := range page.Events {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// follower is the reading end of a stream.
type follower struct {
	t      testing.TB
	lines  *bufio.Reader
	end    func()
	lastID string
}

// frame is what came on a stream. comment is set for one that is only a comment, done at the end of the stream.
type frame struct {
	kind, id, data, comment string
	done                    bool
}

// follow opens a stream of one session.
func (s *server) follow(id, query string, headers ...string) *follower {
	s.t.Helper()
	return s.open(http.MethodGet, "/v1/sessions/"+id+"/stream"+query, "", headers...)
}

// open opens a stream.
func (s *server) open(method, path, body string, headers ...string) *follower {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		s.t.Fatalf("a stream answers %d %v", res.StatusCode, res.Header)
	}
	f := &follower{t: s.t, lines: bufio.NewReader(res.Body), end: func() { cancel(); res.Body.Close() }}
	s.t.Cleanup(f.end)
	return f
}

// any reads the next frame or comment.
func (f *follower) any() (fr frame) {
	f.t.Helper()
	late := time.AfterFunc(patient, f.end)
	defer late.Stop()
	for first := true; ; first = false {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			if first && err == io.EOF {
				return frame{done: true}
			}
			f.t.Fatalf("the stream ended in the middle of %+v %q: %v", fr, line, err)
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			break
		}
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "event":
			fr.kind = value
		case "id":
			fr.id, f.lastID = value, value
		case "data":
			fr.data = value
		case "":
			fr.comment = value
		default:
			f.t.Fatalf("a line of a stream is %q", line)
		}
	}
	return fr
}

// next reads the next frame, past comments, and checks what all have.
func (f *follower) next() frame {
	f.t.Helper()
	for {
		fr := f.any()
		if fr.comment != "" && fr.kind == "" {
			continue
		}
		if !fr.done {
			var all struct{ Type, SessionID string }
			if err := json.Unmarshal([]byte(fr.data), &all); err != nil || all.Type != fr.kind || all.SessionID == "" {
				f.t.Errorf("frame %+v: %v", fr, err)
			}
		}
		return fr
	}
}

// want reads the next frame and wants this kind and this data; the type and the session id are added.
func (f *follower) want(kind, data string) frame {
	f.t.Helper()
	fr := f.next()
	if fr.done || fr.kind != kind {
		f.t.Fatalf("the stream gives %+v, want %s %s", fr, kind, data)
	}
	data = strings.TrimPrefix(data, "{")
	if data != "}" {
		data = "," + data
	}
	same(f.t, kind, fr.data, fmt.Sprintf(`{"type":%q,"sessionId":"*"%s`, kind, data))
	return fr
}

// opening reads up to the baseline, and gives the events in between.
func (f *follower) opening() (events []int64, baseline frame) {
	f.t.Helper()
	f.want("session/subscribed", `{"lastSeq":"*","incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
	for {
		fr := f.next()
		switch fr.kind {
		case "session/event":
			events = append(events, fr.seq(f.t))
		case "session/baseline":
			return events, fr
		default:
			f.t.Fatalf("before the baseline there is %+v", fr)
		}
	}
}

// ended wants the stream to end here.
func (f *follower) ended() {
	f.t.Helper()
	if fr := f.next(); !fr.done {
		f.t.Errorf("the stream goes on with %+v", fr)
	}
}

// seq is the seq in the id of a frame.
func (fr *frame) seq(t testing.TB) int64 {
	t.Helper()
	_, number, _ := strings.Cut(fr.id, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatalf("frame %+v: %v", fr, err)
	}
	return n
}

// projection is a frame of a value.
type projection struct {
	Key   string
	Value json.RawMessage
	Seq   int64
	Rev   int64
}

func (fr *frame) projection(t testing.TB) (p projection) {
	t.Helper()
	if err := json.Unmarshal([]byte(fr.data), &p); err != nil {
		t.Fatal(err)
	}
	return p
}
