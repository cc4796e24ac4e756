package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// fakeStore is what a test says.
type fakeStore struct {
	stats  func() (api.StoreStats, error)
	check  func(ctx context.Context, pages bool, progress func(done, total int64)) (api.StoreReport, error)
	backup func(ctx context.Context, path string, progress func(done, total int64)) (int64, error)
}

func (f fakeStore) Stats(context.Context) (api.StoreStats, error) { return f.stats() }
func (f fakeStore) Check(ctx context.Context, pages bool, progress func(done, total int64)) (api.StoreReport, error) {
	return f.check(ctx, pages, progress)
}
func (f fakeStore) Backup(ctx context.Context, path string, progress func(done, total int64)) (int64, error) {
	return f.backup(ctx, path, progress)
}

func over(f fakeStore) func(*options) { return func(o *options) { o.api.Store = f } }

func TestStoreStats(t *testing.T) {
	s := serve(t, over(fakeStore{stats: func() (api.StoreStats, error) {
		return api.StoreStats{StoreID: "id", Boot: 1, Path: `/a"b`, Logs: 2, Events: 3, Deleted: 4, Position: 5, Bytes: 6, Free: 7, WAL: 8, Changes: 9, Groups: 10, Syncs: 11, Durability: "full"}, nil
	}}))
	s.get("/v1/store").want(200).same(
		`{"storeId":"id","boot":1,"path":"/a\"b","logs":2,"events":3,"deleted":4,"position":5,"bytes":6,"free":7,"wal":8,"changes":9,"groups":10,"syncs":11,"durability":"full"}`)
	s.get("/v1/store?x=1").problem(400, "body-invalid")
	s.post("/v1/store", "{}").problem(405, "method-not-allowed")
	s = serve(t, over(fakeStore{stats: func() (api.StoreStats, error) { return api.StoreStats{}, eventlog.ErrClosed }}))
	s.get("/v1/store").problem(503, "overloaded")
	s = serve(t)
	s.get("/v1/store").problem(404, "not-found")
	s.post("/v1/store/check", "").problem(404, "not-found")
	s.post("/v1/store/backup", `{"path":"/x"}`).problem(404, "not-found")
}

// A check says how far it is, not too often, and gives its report at the end.
func TestStoreCheck(t *testing.T) {
	asked := false
	s := serve(t, over(fakeStore{check: func(_ context.Context, pages bool, progress func(done, total int64)) (api.StoreReport, error) {
		asked = pages
		for i := range int64(10_000) {
			progress(i+1, 10_000)
		}
		return api.StoreReport{Logs: 1, Events: 2, Rows: 3, More: 4, Problems: []api.StoreProblem{{"missing-event", "s", 7, `it "went"`}, {"damaged-pages", "", -1, "x"}}}, nil
	}}))
	a := s.post("/v1/store/check", `{"pages":true}`).want(200)
	text := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	if a.header.Get("Content-Type") != "application/x-ndjson" || !asked || len(text) != 52 {
		t.Fatalf("%v, %d lines: %s", a.header, len(text), a.body)
	}
	same(t, "the first line", text[0], `{"done":1,"total":20000}`)
	same(t, "the last of them", text[50], `{"done":10000,"total":20000}`)
	same(t, "the report", text[51], `{"report":{"logs":1,"events":2,"rows":3,"problems":[{"code":"missing-event","session":"s","seq":7,"detail":"it \"went\""},{"code":"damaged-pages","detail":"x"}],"more":4}}`)
	s.post("/v1/store/check", "").want(200)
	if asked {
		t.Error("pages were checked without being asked for")
	}
	s.post("/v1/store/check", `{"pages":1}`).problem(400, "body-invalid", `"path":"$.pages"`)
	s.post("/v1/store/check", `{"page":true}`).problem(400, "body-invalid", `"path":"$.page"`)
	s.post("/v1/store/check?pages", "").problem(400, "body-invalid")
	s = serve(t, over(fakeStore{check: func(context.Context, bool, func(done, total int64)) (api.StoreReport, error) {
		return api.StoreReport{}, nil
	}}))
	s.post("/v1/store/check", "{}").want(200).same(`{"report":{"logs":0,"events":0,"rows":0,"problems":[],"more":0}}`)
}

// What only a session sees stands in the report too: a log that breaks a rule of surfaces is one that no store knows.
func TestStoreCheckLooksAtSessions(t *testing.T) {
	logs := memory.New()
	s := serve(t, over(fakeStore{check: func(context.Context, bool, func(done, total int64)) (api.StoreReport, error) {
		return api.StoreReport{Logs: 1}, nil
	}}), func(o *options) { o.store = logs })
	s.create("good")
	_, err := logs.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "bad"}, Events: func(yield func(event.Event, error) bool) {
		yield(event.Event{Type: "turn/start", Data: json.RawMessage(`{"turn":1}`), Op: event.Append()}, nil)
		yield(event.Event{Type: event.UserMessage, Seq: 1, Data: json.RawMessage(`{}`), Op: event.Replace(0, 0), Sources: []int64{0}}, nil)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{}`, `{"values":true}`} {
		a := s.post("/v1/store/check", body).want(200)
		if !strings.Contains(a.body, `"problems":[{"code":"wrong-surface","session":"bad","seq":1,`) || strings.Contains(a.body, "good") {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	s.post("/v1/store/check", `{"values":1}`).problem(400, "body-invalid", `"path":"$.values"`)
}

// An error before the first line is an answer as any other, one after it the last line.
func TestStoreBackup(t *testing.T) {
	taken := &api.TargetError{Path: "/x", Err: os.ErrExist}
	var fail error
	progress := 0
	s := serve(t, over(fakeStore{backup: func(_ context.Context, path string, tell func(done, total int64)) (int64, error) {
		for range progress {
			tell(1, 2)
		}
		return 4096, fail
	}}))
	s.post("/v1/store/backup", `{"path":"/a \"b"}`).want(200).same(`{"backup":{"path":"/a \"b","bytes":4096}}`)
	for _, body := range []string{`{}`, `{"path":""}`, `{"path":"a/b"}`, `{"path":7}`} {
		s.post("/v1/store/backup", body).problem(400, "body-invalid", `"path":"$.path"`)
	}
	s.post("/v1/store/backup", `{"path":"/a","x":1}`).problem(400, "body-invalid", `"path":"$.x"`)
	for _, c := range []struct {
		err    error
		status int
		code   string
		more   string
	}{
		{taken, 409, "target-invalid", `,"path":"$.path"`},
		{&eventlog.ReadOnlyError{Cause: io.ErrShortWrite}, 503, "store-readonly", ""},
		{errors.New("odd"), 500, "internal", ""},
	} {
		fail, progress = c.err, 0
		if c.more != "" {
			s.post("/v1/store/backup", `{"path":"/a"}`).problem(c.status, c.code, c.more[1:])
		} else {
			s.post("/v1/store/backup", `{"path":"/a"}`).problem(c.status, c.code)
		}
		progress = 3
		first, last, _ := strings.Cut(s.post("/v1/store/backup", `{"path":"/a"}`).want(200).body, "\n")
		same(t, "progress", first, `{"done":1,"total":2}`)
		same(t, "the end", last, `{"problem":{"type":"*","title":"*","status":`+strconv.Itoa(c.status)+`,"code":"`+c.code+`","detail":"*"`+c.more+`}}`)
	}
}

// The work ends when nobody listens any more.
func TestStoreWorkIsGivenUp(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan error, 1)
	s := serve(t, over(fakeStore{backup: func(ctx context.Context, _ string, tell func(done, total int64)) (int64, error) {
		tell(0, 1)
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return 0, ctx.Err()
	}}))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/store/backup", strings.NewReader(`{"path":"/a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-begun
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
