package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

func TestReadEvents(t *testing.T) {
	s := serve(t, func(o *options) { o.store = logtest.Short(memory.New(), 3) }) // Pages of the store are no pages of the API.
	s.create("s")
	for i := range 10 {
		s.post("/v1/sessions/s/events", fmt.Sprintf(`{"type":"t%d","data":%d}`, i%2, i)).want(200)
	}
	for query, want := range map[string]string{
		"":                       "0 1 2 3 4 5 6 7 8 9",
		"?from=7":                "7 8 9",
		"?from=10":               "",
		"?from=99":               "",
		"?limit=4":               "0 1 2 3",
		"?from=2&limit=4":        "2 3 4 5",
		"?types=t1":              "1 3 5 7 9",
		"?types=t1&limit=2":      "1 3",
		"?types=t1&from=4":       "5 7 9",
		"?types=t1,t0&from=8":    "8 9",
		"?types=t1&types=t0":     "0 1 2 3 4 5 6 7 8 9",
		"?types=nope":            "",
		"?types=":                "",
		"?types=*&limit=1":       "0",
		"?from=0&limit=1000":     "0 1 2 3 4 5 6 7 8 9",
		"?types=t0,nope&limit=3": "0 2 4",
	} {
		a := s.get("/v1/sessions/s/events" + query).want(200)
		var seqs []string
		for _, e := range a.object()["events"].([]any) {
			seqs = append(seqs, fmt.Sprint(e.(map[string]any)["seq"]))
		}
		if got := strings.Join(seqs, " "); got != want || a.object()["seq"] != 10.0 {
			t.Errorf("%s gives %s of %v, want %s", query, got, a.object()["seq"], want)
		}
		if strings.Contains(query, "limit") {
			continue
		}
		lines := s.get("/v1/sessions/s/events"+query, "Accept: text/html, application/x-ndjson;q=0.5").want(200)
		if kind := lines.header.Get("Content-Type"); kind != "application/x-ndjson" {
			t.Errorf("lines come as %s", kind)
		}
		if got := strings.Count(lines.body, "\n"); got != len(seqs) {
			t.Errorf("%s gives %d lines, want %d", query, got, len(seqs))
		}
	}
	s.get("/v1/sessions/s/events?limit=2", "Accept: application/x-ndjson").want(200)
	for _, bad := range []string{"?from=-1", "?limit=0", "?limit=1001", "?from=x", "?from=1&from=2", "?upto=3"} {
		s.get("/v1/sessions/s/events"+bad).problem(400, "body-invalid")
	}
}

// A log of more events than a page has goes out as lines, whole.
func TestALongLogAsLines(t *testing.T) {
	s := serve(t)
	s.create("s")
	for range 3 {
		s.post("/v1/sessions/s/events", `{"events":[`+strings.Repeat(`{"type":"step","data":1},`, 799)+`{"type":"step","data":1}]}`).want(200)
	}
	if got := strings.Count(s.get("/v1/sessions/s/events", "Accept: application/x-ndjson").want(200).body, "\n"); got != 2400 {
		t.Errorf("%d lines", got)
	}
	if got := len(s.seqs("s")); got != 1000 {
		t.Errorf("a page has %d events", got)
	}
}

func TestProjections(t *testing.T) {
	s := serve(t, func(o *options) { o.units = append(o.units, counter("others", "other")) })
	s.create("s")
	s.step("s", 3)
	const path = "/v1/sessions/s/projections"
	for _, live := range []bool{true, false} {
		if !live {
			s.post("/v1/sessions/s/detach", "").want(200)
		}
		s.get(path).want(200).same(`{"epoch":"*","gen":"*","asOfSeq":2,"values":{"steps":3,"others":0},"revs":{"steps":"*","others":"*"}}`)
		s.get(path + "?keys=steps,nope").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":2,"values":{"steps":3},"revs":{"steps":"*"}}`)
		s.get(path + "?keys=").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":2,"values":{},"revs":{}}`)
		s.get(path + "?minSeq=2&keys=steps&wait=1s").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":2,"values":{"steps":3},"revs":"*"}`)
		for at, n := range []int{0, 1, 2, 3} {
			s.get(fmt.Sprintf("%s?keys=steps&at=%d", path, at-1)).want(200).
				same(fmt.Sprintf(`{"epoch":"*","gen":"*","asOfSeq":%d,"historical":true,"values":{"steps":%d},"revs":"*"}`, at-1, n))
		}
		s.get(path+"?at=3").problem(504, "not-reached", `"seq":3`)
		s.get(path+"?at=3&minSeq=2&wait=1m").problem(504, "not-reached", `"seq":3`) // What at names is not waited for.
		s.get(path+"?minSeq=3&wait=0").problem(504, "not-reached", `"seq":3`)
		s.get(path+"?minSeq=3&wait=1ms").problem(504, "not-reached", `"seq":3`)
	}
	s.get("/v1/sessions/s").want(200).same(`{"header":"*","seq":3,"firstLiveSeq":0,"incarnation":"*","live":false,"updatedAt":"*"}`)
	for _, bad := range []string{"?at=-2", "?at=x", "?minSeq=-2", "?wait=-1", "?wait=2m", "?wait=soon", "?key=steps"} {
		s.get(path+bad).problem(400, "body-invalid")
	}
	// What failed is named, and the rest is served.
	s.post("/v1/sessions/s/events", `{"type":"break","data":null}`).want(200)
	s.get(path + "?keys=steps").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":3,"values":{},"revs":{},"unavailable":{"steps":{"code":"faulted","seq":2,"message":"*"}}}`)
}

// minSeq waits for the log, which may be a cold session's, and for nothing else.
func TestWaitingForASeq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serveInBubble(t)
		defer w.close()
		w.create("s")
		w.post("/v1/sessions/s/detach", "").want(200)
		got := make(chan *answer)
		go func() { got <- w.get("/v1/sessions/s/projections?minSeq=1&wait=50s&keys=steps") }()
		synctest.Wait()
		w.step("s", 1)
		synctest.Wait()
		select {
		case a := <-got:
			t.Fatalf("it did not wait: %s", a.body)
		default:
		}
		w.step("s", 1)
		(<-got).want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":"*"}`)
		go func() { got <- w.get("/v1/sessions/s/projections?minSeq=2&at=0&wait=50s&keys=steps") }()
		synctest.Wait()
		select {
		case a := <-got:
			t.Fatalf("it did not wait before it looked back: %s", a.body)
		default:
		}
		w.step("s", 1)
		(<-got).want(200).same(`{"epoch":"*","gen":"*","asOfSeq":0,"historical":true,"values":{"steps":1},"revs":"*"}`)
		begun := time.Now()
		w.get("/v1/sessions/s/projections?minSeq=9&wait=5s").problem(504, "not-reached", `"seq":3`)
		w.get("/v1/sessions/s/projections?at=9&wait=5s").problem(504, "not-reached", `"seq":3`)
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("they waited %v, and only the first was to", waited)
		}
		go func() { got <- w.get("/v1/sessions/s/projections?minSeq=9&wait=50s") }()
		synctest.Wait()
		w.do("DELETE", "/v1/sessions/s", "").want(204)
		(<-got).problem(404, "session-not-found")
		// Nothing is waited for longer than its caller does.
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		w.create("s")
		if err := w.abandoned(ctx, "/v1/sessions/s/projections?minSeq=9&wait=50s"); err == nil {
			t.Error("it was answered")
		}
	})
}

// Messages are the same whether they are kept or read anew for each who asks.
func TestMessagesThatAreNotKept(t *testing.T) {
	var bodies []string
	for _, most := range []int{0, 1} {
		s := serve(t, func(o *options) { o.host.Session.MaxMessageBytes = most })
		s.create("s")
		s.post("/v1/sessions/s/events", `{"events":[`+turn(1)+`,`+turn(2)+`]}`).want(200)
		s.post("/v1/sessions/s/compact", `{"start":1,"end":1,"message":`+message("sum")+`}`).want(200)
		bodies = append(bodies, s.get("/v1/sessions/s/messages").want(200).body)
	}
	if bodies[0] != bodies[1] || !strings.Contains(bodies[0], "sum") {
		t.Errorf("kept they are\n%s\nand else\n%s", bodies[0], bodies[1])
	}
}

func TestSurfaceAndMessages(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.get("/v1/sessions/s/surface").want(200).same(`{"nodes":[],"replaceGeneration":0,"asOfSeq":-1}`)
	s.get("/v1/sessions/s/messages").want(200).same(`{"messages":[],"asOfSeq":-1}`)
	s.post("/v1/sessions/s/events", fmt.Sprintf(`{"events":[%s,%s,{"type":"note","data":1}]}`, say("a"), say("b"))).want(200)
	s.get("/v1/sessions/s/surface").want(200).same(`{"nodes":[0,1],"replaceGeneration":0,"asOfSeq":2}`)
	s.get("/v1/sessions/s/messages").want(200).same(fmt.Sprintf(`{"messages":[%s,%s],"asOfSeq":2}`, message("a"), message("b")))
	s.post("/v1/sessions/s/compact", fmt.Sprintf(`{"start":0,"end":1,"message":%s}`, message("sum"))).want(200).same(`{"seq":4,"events":[{"seq":3,"time":"*"}]}`)
	s.get("/v1/sessions/s/surface").want(200).same(`{"nodes":[3],"replaceGeneration":1,"asOfSeq":3}`)
	s.get("/v1/sessions/s/messages").want(200).same(fmt.Sprintf(`{"messages":[%s],"asOfSeq":3}`, message("sum")))
	s.get("/v1/sessions/s/surface?x=1").problem(400, "body-invalid")
	s.get("/v1/sessions/s/messages?x=1").problem(400, "body-invalid")
}
