package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

const lines = "Content-Type: application/x-ndjson"

// interchange is a log with a header of this id and these events.
func interchange(id string, events ...string) string {
	return fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":7,"cwd":"/w","odd":[1.0]}`, id) + "\n" + strings.Join(events, "\n") + strings.Repeat("\n", min(len(events), 1))
}

func note(seq int, typ string) string {
	return fmt.Sprintf(`{"type":%q,"seq":%d,"time":%d,"data":{"n":1.0,"t":"<"}}`, typ, seq, 100+seq)
}

func notes(n int) (all []string) {
	for seq := range n {
		all = append(all, note(seq, "step"))
	}
	return all
}

const chunksRow = `{"type":"text-chunks","seq0":1,"time0":101,"data":{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}}`

func (s *server) imports(query, log string, headers ...string) *answer {
	s.t.Helper()
	return s.post("/v1/import"+query, log, append([]string{lines}, headers...)...)
}

// none wants that nothing of a session is there.
func (s *server) none(id string) {
	s.t.Helper()
	s.get("/v1/sessions/"+id).problem(404, "session-not-found")
	if n := len(s.get("/v1/sessions").want(200).object()["sessions"].([]any)); n != 0 {
		s.t.Errorf("%d sessions are left", n)
	}
}

func packed(t *testing.T, text string) string {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return string(e.EncodeAll([]byte(text), nil))
}

// What was imported goes out again as it came in, packed or not, and its values are folded.
func TestImportAndExport(t *testing.T) {
	s := serve(t)
	log := interchange("s", note(0, "step"), chunksRow, note(4, "step"))
	session := `{"header":{"version":0,"id":%q,"createdAt":7,"cwd":"/w"},"seq":5,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*","warnings":[]}`
	a := s.imports("", log).want(201).same(fmt.Sprintf(session, "s"))
	if at := a.header.Get("Location"); at != "/v1/sessions/s" {
		t.Errorf("it lies at %q", at)
	}
	s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":4,"values":{"steps":2},"revs":"*"}`)
	out := s.get("/v1/sessions/s/export").want(200)
	if kind := out.header.Get("Content-Type"); kind != "application/x-ndjson" || out.body != log {
		t.Errorf("it goes out as %q:\n%s\nand came in as\n%s", kind, out.body, log)
	}
	plain := s.get("/v1/sessions/s/export?pack=false").want(200).body
	if strings.Count(plain, "\n") != 6 || !strings.Contains(plain, `{"type":"assistant/chunk","seq":3,"time":103,`) {
		t.Errorf("without rows it is\n%s", plain)
	}
	s.imports("?id=plain&strict", plain).want(201).same(fmt.Sprintf(session, "plain"))
	s.imports("?id=zstd&strict=false", packed(t, log), "Content-Encoding: zstd").want(201).same(fmt.Sprintf(session, "zstd"))
	if again := s.get("/v1/sessions/zstd/export").want(200).body; again != strings.Replace(log, `"id":"s"`, `"id":"zstd"`, 1) {
		t.Errorf("under another id it is\n%s", again)
	}
	s.imports("", interchange("empty")).want(201)
	if again := s.get("/v1/sessions/empty/export").want(200).body; again != interchange("empty") {
		t.Errorf("an empty log is %q", again)
	}
	s.step("s", 1)
	s.get("/v1/sessions/s/export?pack=maybe").problem(400, "body-invalid")
	s.get("/v1/sessions/s/export?from=1").problem(400, "body-invalid")
	s.get("/v1/sessions/nobody/export").problem(404, "session-not-found")
}

// A torn tail is dropped with a warning; strict forgives only the last line.
func TestTornImports(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct {
		log    string
		seq    int
		strict string // the code; empty: taken as well
	}{
		"a last line without newline": {interchange("s", notes(3)...) + `{"type":"step","se`, 3, ""},
		"a line that is none":         {interchange("s", notes(3)...) + "\x00\x00\x00\n", 3, "event-invalid"},
		"a line that is not UTF-8":    {interchange("s", notes(3)...) + "{\"type\":\"\xff\"}\n", 3, "event-invalid"},
		"a gap":                       {interchange("s", append(notes(3), note(5, "step"))...), 3, "event-invalid"},
		"an event twice":              {interchange("s", append(notes(3), note(2, "step"))...), 3, "event-invalid"},
		"zstd that is cut off":        {packed(t, interchange("s", notes(3)...))[:40], 0, "body-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.imports("?strict", c.log)
			if a.t = t; c.strict != "" {
				if a.status < 400 || a.object()["code"] != c.strict {
					t.Errorf("strict: %d %s", a.status, a.body)
				}
				a = s.imports("", c.log)
				a.t = t
			}
			if name == "zstd that is cut off" { // before the first line, so that there is no log
				a.problem(400, "body-invalid")
				return
			}
			o := a.want(201).object()
			if o["seq"] != float64(c.seq) || len(o["warnings"].([]any)) != 1 {
				t.Errorf("%s", a.body)
			}
			s.do("DELETE", "/v1/sessions/s", "").want(204)
		})
	}
	s.none("s")
}

func TestWhatImportRefuses(t *testing.T) {
	s := serve(t)
	ended := `{"type":"turn/end","seq":%d,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`
	for name, c := range map[string]struct {
		log    string
		status int
		code   string
		more   []string
	}{
		"nothing":                    {"\n", 422, "header-invalid", []string{`"path":"*"`}},
		"no header":                  {note(0, "step") + "\n", 422, "header-invalid", []string{`"path":"$.type"`}},
		"a header that is torn":      {interchange("s")[:20], 422, "header-invalid", []string{`"path":"*"`}},
		"a header that is not UTF-8": {"{\"type\":\"session\",\"cwd\":\"\xff\"}\n", 422, "header-invalid", []string{`"path":"$.cwd"`}},
		"a header without createdAt": {`{"type":"session","version":0,"id":"s"}` + "\n", 422, "header-invalid", []string{`"path":"$.createdAt"`}},
		"an id that is none":         {interchange("a/b", notes(1)...), 422, "id-invalid", []string{`"path":"$.id"`}},
		"a header without an end":    {`{"type":"session","cwd":"/` + strings.Repeat("x", 4*event.DefaultMaxBytes) + `"}` + "\n", 413, "too-large", []string{`"size":"*"`, `"limit":"*"`}},
		"gzip":                       {"\x1f\x8b\x08\x00" + strings.Repeat("x", 50) + "\n", 422, "header-invalid", nil},
		"a gap in the middle":        {interchange("s", note(0, "a"), note(2, "a"), fmt.Sprintf(ended, 3)), 422, "event-invalid", []string{`"index":1`, `"reason":"seq-not-contiguous"`, `"path":"$.seq"`}},
		"a double in the middle":     {interchange("s", note(0, "a"), note(0, "a"), fmt.Sprintf(ended, 1)), 422, "event-invalid", []string{`"index":1`, `"reason":"seq-not-contiguous"`, `"path":"$.seq"`}},
		"a line that is none":        {interchange("s", note(0, "a"), `{"type":`, fmt.Sprintf(ended, 1)), 422, "event-invalid", []string{`"index":1`, `"reason":"*"`, `"path":"*"`}},
		"an unknown field":           {interchange("s", `{"type":"a","seq":0,"time":1,"data":1,"x":1}`, fmt.Sprintf(ended, 0)), 422, "event-invalid", []string{`"index":0`, `"reason":"envelope-invalid"`, `"path":"$.x"`}},
		"a key that stands twice":    {interchange("s", note(0, "a"), `{"type":"a","seq":1,"time":1,"data":{"x":1,"x":1}}`), 422, "event-invalid", []string{`"index":1`, `"reason":"data-not-lossless"`, `"path":"*"`}},
		"a broken row":               {interchange("s", note(0, "a"), strings.Replace(chunksRow, `"c"`, `"c","d"`, 1), fmt.Sprintf(ended, 4)), 422, "event-invalid", []string{`"index":1`, `"reason":"*"`, `"path":"*"`}},
		"a message that is none":     {interchange("s", note(0, "a"), `{"type":"user/message","seq":1,"time":1,"data":{},"surfaceOp":"append"}`), 422, "event-invalid", []string{`"index":1`, `"reason":"message-invalid"`, `"path":"*"`}},
		"a range that is not there": {interchange("s", note(0, "a"), `{"type":"user/message","seq":1,"time":1,"data":`+message("m")+`,"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}`),
			422, "event-invalid", []string{`"index":1`, `"reason":"surface-range-invalid"`, `"path":"*"`}},
		"an enormous event":   {interchange("s", note(0, "a"), `{"type":"a","seq":1,"time":1,"data":"`+strings.Repeat("x", event.DefaultMaxBytes)+`"}`), 413, "too-large", []string{`"index":1`, `"size":"*"`, `"limit":"*"`}},
		"an enormous line":    {interchange("s", note(0, "a"), strings.Repeat("x", 4*event.DefaultMaxBytes+1)), 413, "too-large", []string{`"index":1`, `"size":"*"`, `"limit":"*"`}},
		"zstd of a bomb":      {packed(t, interchange("s", notes(5)...)+strings.Repeat("\n", 2<<20)), 413, "too-large", []string{`"index":5`, `"size":"*"`, `"limit":"*"`}},
		"zstd that is broken": {packed(t, interchange("s", notes(5)...))[:30] + strings.Repeat("\xff", 60), 400, "body-invalid", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.imports("", c.log)
			a.t = t
			if more := c.more; len(more) == 1 && more[0] == `"path":"*"` && a.object()["path"] == nil {
				a.problem(c.status, c.code)
				return
			}
			if c.code == "event-invalid" && a.object()["path"] == nil {
				c.more = c.more[:2]
			}
			a.problem(c.status, c.code, c.more...)
		})
	}
	good := interchange("s", notes(1)...)
	s.imports("?strict=yes", good).problem(400, "body-invalid")
	s.imports("?id=a&id=b", good).problem(400, "body-invalid")
	s.imports("?keys=a", good).problem(400, "body-invalid")
	s.imports("?id=", good).problem(422, "id-invalid", `"path":"$.id"`)
	s.imports("?id=..", good).problem(422, "id-invalid", `"path":"$.id"`)
	s.post("/v1/import", good).problem(415, "content-type")
	s.imports("", good, "Content-Encoding: gzip").problem(415, "content-type")
	s.imports("", good, "Idempotency-Key: a b").problem(400, "body-invalid")
	s.none("s")
	// One that exists stays as it was.
	s.create("s")
	s.step("s", 2)
	s.imports("", interchange("s", notes(5)...)).problem(409, "session-conflict")
	s.get("/v1/sessions/s").want(200).same(`{"header":{"version":0,"id":"s","createdAt":"*"},"seq":2,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*"}`)
}

// The same import with the same key gives the first answer, warnings and all; another log with it is refused.
func TestIdempotentImport(t *testing.T) {
	store := memory.New()
	s := serve(t, func(o *options) { o.store = store })
	const key = "Idempotency-Key: k"
	log := interchange("s", notes(3)...) + `{"torn`
	first := s.imports("", log, key).want(201)
	s.step("s", 1)
	for range 2 {
		if again := s.imports("", log, key).want(201); again.body != first.body {
			t.Errorf("again it gives %s, the first gave %s", again.body, first.body)
		}
		s.imports("", interchange("s", notes(3)...), key).problem(422, "idempotency-key-reused")
		s.imports("?strict", log, key).problem(422, "idempotency-key-reused")
		s.imports("", log, "Idempotency-Key: other").problem(409, "session-conflict")
		s.imports("", log).problem(409, "session-conflict")
		s.imports("", interchange("s", note(1, "a"), `{"type":"turn/end","seq":1,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`), key).want(422)
		s.close()
		s = serve(t, func(o *options) { o.store = store })
	}
}

// discarding is a store that takes any log, keeps nothing of it, and says at the end that the disk is full.
type discarding struct {
	eventlog.Store
	took func(n int)
}

func (d discarding) Create(_ context.Context, c eventlog.Creation) (eventlog.Info, error) {
	for ev, err := range c.Events {
		if err != nil {
			return eventlog.Info{}, err
		}
		d.took(len(ev.Data))
	}
	return eventlog.Info{}, &eventlog.DiskFullError{Cause: errors.New("no room")}
}

// A log of 256 MiB passes through the server in the sizes of its buffers, and never lies in it.
func TestImportHoldsNoLog(t *testing.T) {
	const (
		size  = 64 << 10
		count = 4096
		bound = 8 << 20 // of the network on both sides, and what the reader of lines has
	)
	data := strings.Repeat("x", size)
	var given, taken, most atomic.Int64
	s := serve(t, func(o *options) {
		o.store = discarding{o.store, func(n int) {
			behind := given.Load() - taken.Add(int64(n))
			most.Store(max(most.Load(), behind))
			if taken.Load()%(64<<20) < size {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				if m.HeapAlloc > 64<<20 {
					t.Errorf("%d bytes are in use after %d of the log", m.HeapAlloc, taken.Load())
				}
			}
		}}
	})
	in, out := io.Pipe()
	go func() {
		fmt.Fprint(out, interchange("s"))
		for seq := range count {
			fmt.Fprintf(out, `{"type":"step","seq":%d,"time":1,"data":"%s"}`+"\n", seq, data)
			given.Add(size)
		}
		out.Close()
	}()
	r, err := http.NewRequest(http.MethodPost, s.url+"/v1/import", in)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	res, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusInsufficientStorage {
		t.Errorf("status %d", res.StatusCode)
	}
	if taken.Load() < size*count || most.Load() > bound {
		t.Errorf("%d bytes were taken, at most %d lay in between", taken.Load(), most.Load())
	}
}

// Who hangs up in the middle of a log has imported nothing, however well it looks up to there, in zstd as well.
func TestImportThatBreaksOff(t *testing.T) {
	log := interchange("s", notes(200)...)
	frame := packed(t, note(200, "step")+"\n")
	for name, text := range map[string]string{
		"in a line": log[:len(log)-9], "between two lines": log, "in a frame": packed(t, log) + frame[:len(frame)-9], "between two frames": packed(t, log),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", len(text)+100, text)
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != 400 {
				t.Errorf("it was answered with %d", res.StatusCode)
			}
			s.none("s")
		})
	}
}

// A body has to keep moving, and may take as long as it likes while it does.
func TestImportThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInBubble(t, func(o *options) { o.api.BodyTimeout = time.Minute })
		defer s.close()
		send := func(log string, pause time.Duration, parts int) *http.Response {
			in, out := io.Pipe()
			answered := make(chan struct{})
			var sender sync.WaitGroup
			sender.Go(func() {
				step := len(log) / parts
				for i := range parts {
					if _, err := out.Write([]byte(log[i*step : (i+1)*step])); err != nil {
						return
					}
					select {
					case <-time.After(pause):
					case <-answered:
						return
					}
				}
				out.Write([]byte(log[parts*step:]))
				out.Close()
			})
			r, err := http.NewRequest(http.MethodPost, s.url+"/v1/import", in)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-ndjson")
			res, err := s.http.Do(r)
			close(answered)
			in.Close()
			sender.Wait()
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		res := send(interchange("slow", notes(50)...), 50*time.Second, 20)
		if res.Body.Close(); res.StatusCode != 201 {
			t.Errorf("a slow one is answered with %d", res.StatusCode)
		}
		res = send(interchange("stuck", notes(50)...), time.Hour, 2)
		if res.Body.Close(); res.StatusCode != 400 {
			t.Errorf("one that stops is answered with %d", res.StatusCode)
		}
		s.get("/v1/sessions/stuck").problem(404, "session-not-found")
		s.get("/v1/sessions/slow").want(200)
	})
}

// An export that fails in the middle is cut off, so that nobody takes what came for the log.
func TestExportThatFails(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := serve(t, func(o *options) { o.store = store })
	s.imports("", interchange("s", notes(3000)...)).want(201)
	store.Fail(logtest.Read, errors.New("the disk is gone"))
	s.get("/v1/sessions/s/export").problem(500, "internal")
	s.get("/v1/sessions/s/export").want(200)
	gate := store.Hold(logtest.Read)
	begun := make(chan error, 1)
	var part bytes.Buffer
	go func() {
		res, err := s.http.Get(s.url + "/v1/sessions/s/export")
		if err == nil {
			_, err = io.Copy(&part, res.Body)
			res.Body.Close()
		}
		begun <- err
	}()
	<-gate.Arrived()
	store.Fail(logtest.Read, nil) // A page is a thousand events, and two of them are more than is kept back.
	store.Fail(logtest.Read, nil)
	store.Fail(logtest.Read, errors.New("the disk is gone"))
	gate.Release()
	if err := <-begun; err == nil {
		t.Errorf("%d bytes came, and a good end", part.Len())
	}
	if part.Len() == 0 {
		t.Error("nothing came before the failure: the test does not show what it is for")
	}
}
