package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/session"
)

// history is a page.
type history struct {
	Events []struct {
		Type string
		Seq  int64
	}
	HasMore     *bool
	Projections *struct{ AsOfSeq int64 }
}

// span reads a page and says which seqs it has, which must be in a row: "3-7", "-" for none, with "+" for more before them.
func (s *server) span(id, query string) (text string, page history) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.get("/v1/sessions/"+id+"/history"+query).want(200).body), &page); err != nil {
		s.t.Fatal(err)
	}
	if page.HasMore == nil || page.Events == nil {
		s.t.Fatal("events or hasMore is missing")
	}
	if n := len(page.Events); n > 0 {
		text = fmt.Sprint(page.Events[0].Seq)
		if page.Events[n-1].Seq != page.Events[0].Seq+int64(n)-1 {
			s.t.Errorf("not in a row: %+v", page.Events)
		}
		text += "-" + fmt.Sprint(page.Events[n-1].Seq)
	} else {
		text = "-"
	}
	if *page.HasMore {
		text += "+"
	}
	return text, page
}

// answerOf is an assistant's message that stands on chunks from first to the one before it.
func answerOf(id string, first, n int) string {
	var events []string
	var sources []string
	for i := range n {
		events = append(events, `{"type":"assistant/chunk","data":{"turn":1,"step":1,"chunk":{"type":"text","index":0,"text":"x"}}}`)
		sources = append(sources, fmt.Sprint(first+i))
	}
	text := fmt.Sprintf(`{"type":"assistant/message","data":{"turn":1,"step":1,"message":{"id":%q,"role":"assistant","content":[{"type":"text","text":"x"}],"source":{"kind":"model","provider":"p","model":"m"}}},"surfaceOp":"append","sourceEventSeqs":[%s]}`,
		id, strings.Join(sources, ","))
	return strings.Join(append(events, text), ",")
}

func (s *server) appendAll(id string, events ...string) {
	s.t.Helper()
	s.post("/v1/sessions/"+id+"/events", `{"events":[`+strings.Join(events, ",")+`]}`).want(200)
}

const replaceAll = `{"type":"user/message","data":%s,"surfaceOp":{"op":"replace","start":%d,"end":%d},"sourceEventSeqs":%s}`

func TestHistory(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.get("/v1/sessions/s/history").want(200).same(`{"events":[],"hasMore":false,"projections":{"epoch":"*","gen":"*","asOfSeq":-1,"values":{"steps":0},"revs":"*"}}`)
	// 0 user, 1..3 answer, 4 step, 5 user, 6..8 answer, 9 step, 10 replacement of the first two.
	s.appendAll("s", say("u1"), answerOf("a1", 1, 2), `{"type":"step","data":null}`, say("u2"), answerOf("a2", 6, 2), `{"type":"step","data":null}`,
		fmt.Sprintf(replaceAll, message("sum"), 0, 3, "[0,3]"))
	for query, want := range map[string]string{
		"":                               "0-10",
		"?maxMessages=4":                 "0-10",
		"?maxMessages=3":                 "1-10+",
		"?maxMessages=2":                 "5-10+", // The replacement is none of them, and stands in the page with what is before it.
		"?maxMessages=1":                 "6-10+",
		"?beforeSeq=10&maxMessages=1":    "6-9+",
		"?beforeSeq=6&maxMessages=1":     "5-5+",
		"?beforeSeq=5&maxMessages=1":     "1-4+",
		"?beforeSeq=4&maxMessages=1":     "1-3+",
		"?beforeSeq=3&maxMessages=1":     "0-2",
		"?beforeSeq=1&maxMessages=1":     "0-0",
		"?beforeSeq=0":                   "-",
		"?beforeSeq=11":                  "0-10",
		"?beforeSeq=99&maxMessages=1000": "0-10",
	} {
		text, page := s.span("s", query)
		if text != want {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
		if tail := !strings.Contains(query, "beforeSeq"); tail != (page.Projections != nil) || tail && page.Projections.AsOfSeq != 10 {
			t.Errorf("%s: projections %+v", query, page.Projections)
		}
	}
	s.get("/v1/sessions/s/history?keys=steps&maxMessages=1").want(200).same(`{"events":"*","hasMore":true,"projections":{"epoch":"*","gen":"*","asOfSeq":10,"values":{"steps":2},"revs":{"steps":"*"}}}`)
	s.get("/v1/sessions/s/history?keys=").want(200).same(`{"events":"*","hasMore":false,"projections":{"epoch":"*","gen":"*","asOfSeq":10,"values":{},"revs":{}}}`)
	s.get("/v1/sessions/s/history?keys=steps&beforeSeq=1").want(200).same(`{"events":"*","hasMore":false}`)
	for _, bad := range []string{"maxMessages=0", "maxMessages=1001", "maxMessages=x", "beforeSeq=-1", "beforeSeq=1.5", "before=1", "beforeSeq=1&beforeSeq=2"} {
		s.get("/v1/sessions/s/history?"+bad).problem(400, "body-invalid")
	}
	s.get("/v1/sessions/nobody/history").problem(404, "session-not-found")
	// A cold session stays cold.
	s.post("/v1/sessions/s/detach", "").want(200)
	if text, page := s.span("s", "?maxMessages=1"); text != "6-10+" || page.Projections.AsOfSeq != 10 {
		t.Errorf("cold: %s, %+v", text, page.Projections)
	}
	if s.get("/v1/sessions/s").object()["live"] != false {
		t.Error("it was opened")
	}
	s.create("chunks")
	s.appendAll("chunks", say("u"), `{"type":"step","data":null}`, answerOf("a", 2, 128))
	if text, _ := s.span("chunks", "?maxMessages=1"); text != "2-130+" {
		t.Errorf("a message of 128 chunks: %s", text)
	}
}

// A page ends by its size as well, and has one message all the same; where there are none it has as many events as fit.
func TestHistoryIsBounded(t *testing.T) {
	s := serve(t)
	large := func(n int) string { return fmt.Sprintf(`{"type":"step","data":"%s"}`, strings.Repeat("x", n)) }
	const mib = 1 << 20
	s.create("s")
	// 0 and 2 users with 1.5 MiB behind each, 4 a user with 3 MiB, 6 one with 2 × 3 MiB.
	for _, ev := range []string{say("a"), large(3 * mib / 2), say("b"), large(3 * mib / 2), say("c"), large(3 * mib), say("d"), large(3 * mib), large(3 * mib)} {
		s.appendAll("s", ev)
	}
	for query, want := range map[string]string{
		"":             "6-8+",
		"?beforeSeq=8": "6-7+",
		"?beforeSeq=6": "4-5+",
		"?beforeSeq=4": "0-3",
		"?beforeSeq=5": "0-4",
	} {
		if text, _ := s.span("s", query); text != want {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
	}
	s.create("none")
	for range 5 {
		s.appendAll("none", large(3*mib/2))
	}
	s.appendAll("none", large(4*mib-100))
	for query, want := range map[string]string{"": "5-5+", "?beforeSeq=5": "3-4+", "?beforeSeq=3": "1-2+", "?beforeSeq=1": "0-0"} {
		if text, _ := s.span("none", query); text != want {
			t.Errorf("without messages, %s: %s, want %s", query, text, want)
		}
	}
	// A large beginning without messages is left to the next page.
	s.create("rest")
	for _, ev := range []string{large(3 * mib), large(3 * mib), say("a")} {
		s.appendAll("rest", ev)
	}
	if text, _ := s.span("rest", ""); text != "2-2+" {
		t.Errorf("a large beginning: %s", text)
	}
}

// Whoever walks back page by page gets each event once, and each page begins as the rule says.
func TestHistoryWalk(t *testing.T) {
	s := serve(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprint("walk", n)
		type logged struct{ start int64 } // −1 where it is no message
		var log []logged
		var events []string
		for range rapid.IntRange(0, 40).Draw(t, "length") {
			seq := int64(len(log))
			var sources []int64
			if seq > 0 && rapid.Bool().Draw(t, "sources") {
				sources = rapid.SliceOfNDistinct(rapid.Int64Range(max(0, seq-6), seq-1), 1, 3, func(n int64) int64 { return n }).Draw(t, "stands on")
			}
			l := logged{-1}
			text := `{"type":"step","data":null}`
			if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
				l.start = slices.Min(append([]int64{seq}, sources...))
				text = say(fmt.Sprint("m", seq))
				if sources != nil {
					list, _ := json.Marshal(sources)
					text = text[:len(text)-1] + `,"sourceEventSeqs":` + string(list) + `}`
				}
			}
			log, events = append(log, l), append(events, text)
		}
		s.create(id)
		if len(events) > 0 {
			s.appendAll(id, events...)
		}
		most := rapid.IntRange(1, 5).Draw(t, "most")
		end := int64(len(log))
		query := fmt.Sprintf("?maxMessages=%d", most)
		for first := true; end > 0 || first; first = false {
			want, left := int64(0), most
			for seq := end - 1; seq >= 0 && left > 0; seq-- {
				if log[seq].start >= 0 {
					if left--; left == 0 {
						want = log[seq].start
					}
				}
			}
			text, page := s.span(id, query)
			expected := "-"
			if end > 0 {
				expected = fmt.Sprintf("%d-%d", want, end-1)
			}
			if want > 0 {
				expected += "+"
			}
			if text != expected {
				t.Fatalf("%s before %d of %+v: %s, want %s", query, end, log, text, expected)
			}
			if len(page.Events) == 0 {
				break
			}
			end = page.Events[0].Seq
			query = fmt.Sprintf("?maxMessages=%d&beforeSeq=%d", most, end)
		}
	})
}

// While others append, the tail page ends exactly where its values do.
func TestHistoryEndsAtItsValues(t *testing.T) {
	s := serve(t)
	s.create("s")
	sess, err := s.host.Sessions().Open(context.Background(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := sess.Append(context.Background(), event.UserMessage, json.RawMessage(message("m")), session.Intent{Op: event.Append()}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		_, page := s.span("s", "?maxMessages=3")
		last := int64(-1)
		if n := len(page.Events); n > 0 {
			last = page.Events[n-1].Seq
		}
		if page.Projections.AsOfSeq != last {
			t.Errorf("the values are as of %d, and the page ends at %d", page.Projections.AsOfSeq, last)
		}
	}
	close(stop)
	writer.Wait()
}
