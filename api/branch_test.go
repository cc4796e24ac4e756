package api_test

import (
	"fmt"
	"testing"
)

// turn is a whole turn of three events.
func turn(n int) string {
	return fmt.Sprintf(`{"type":"turn/start","data":{"turn":%d}},%s,{"type":"turn/end","data":{"turn":%d,"reason":{"kind":"completed"}}}`, n, say(fmt.Sprint("m", n)), n)
}

func TestFork(t *testing.T) {
	s := serve(t)
	s.post("/v1/sessions", `{"id":"s","cwd":"/work"}`).want(201)
	s.post("/v1/sessions/s/fork", "").problem(409, "fork-unavailable")
	// 0..2 a turn, 3 a title, 4..6 a turn, 7 an open one.
	s.post("/v1/sessions/s/events", `{"events":[`+turn(1)+`,{"type":"session/title","data":{"title":"t"}},`+turn(2)+`,{"type":"turn/start","data":{"turn":3}}]}`).want(200)
	child := func(id, at string, seed, seq int) {
		t.Helper()
		a := s.post("/v1/sessions/s/fork", fmt.Sprintf(`{"id":%q%s}`, id, at)).want(201).same(fmt.Sprintf(
			`{"header":{"version":0,"id":%q,"createdAt":"*","cwd":"/work","parentSession":"s","seedLength":%d},"seq":%d,"firstLiveSeq":%d,"incarnation":"*","live":true,"updatedAt":"*"}`,
			id, seed, seq, seed))
		if at := a.header.Get("Location"); at != "/v1/sessions/"+id {
			t.Errorf("it lies at %q", at)
		}
	}
	child("first", `,"atSeq":1`, 4, 5)
	child("second", `,"atSeq":4`, 7, 8)
	child("last", ``, 7, 8)
	s.post("/v1/sessions/s/fork", `{"atSeq":7}`).problem(409, "fork-unavailable")
	s.post("/v1/sessions/s/fork", `{"id":"first"}`).problem(409, "session-conflict")
	s.post("/v1/sessions/s/fork", `{"id":"a/b"}`).problem(422, "id-invalid", `"path":"$.id"`)
	s.post("/v1/sessions/s/fork", `{"id":""}`).problem(422, "id-invalid", `"path":"$.id"`)
	s.post("/v1/sessions/s/fork", `{"id":7}`).problem(422, "id-invalid", `"path":"$.id"`)
	for _, none := range []string{`"1"`, "-1", "-7", "1.5", "9007199254740992", "null"} {
		s.post("/v1/sessions/s/fork", `{"id":"none","atSeq":`+none+`}`).problem(400, "body-invalid", `"path":"$.atSeq"`)
		s.get("/v1/sessions/none").problem(404, "session-not-found")
	}
	s.post("/v1/sessions/s/fork", `{"boundary":1}`).problem(400, "body-invalid", `"path":"$.boundary"`)
	s.post("/v1/sessions/s/fork?atSeq=1", "").problem(400, "body-invalid")
	s.post("/v1/sessions/s/fork", "").want(201)
}

func TestCompactRefusals(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.post("/v1/sessions/s/events", `{"events":[`+turn(1)+`]}`).want(200)
	m := message("sum")
	for body, want := range map[string][]string{
		`{"start":0,"end":1,"message":` + m + `}`:              {"422", "surface-range-invalid"},
		`{"start":-1,"end":1,"message":` + m + `}`:             {"422", "surface-range-invalid"},
		`{"start":1,"end":1,"message":{"id":"x"}}`:             {"422", "event-invalid", `"index":0`, `"reason":"message-invalid"`, `"path":"*"`},
		`{"start":1,"end":1,"message":{"x":-0}}`:               {"422", "event-invalid", `"index":0`, `"reason":"data-not-lossless"`, `"path":"$.message.x"`},
		`{"end":1,"message":` + m + `}`:                        {"400", "body-invalid", `"path":"$.start"`},
		`{"start":1,"message":` + m + `}`:                      {"400", "body-invalid", `"path":"$.end"`},
		`{"start":1,"end":1}`:                                  {"400", "body-invalid", `"path":"$.message"`},
		`{"start":1.5,"end":1,"message":` + m + `}`:            {"400", "body-invalid", `"path":"$.start"`},
		`{"start":1,"end":1,"sources":[],"message":` + m + `}`: {"400", "body-invalid", `"path":"$.sources"`},
	} {
		a := s.post("/v1/sessions/s/compact", body)
		if fmt.Sprint(a.status) != want[0] {
			t.Errorf("%s: %d %s", body, a.status, a.body)
			continue
		}
		a.problem(a.status, want[1], want[2:]...)
	}
	s.post("/v1/sessions/s/compact?projections=steps", `{"start":1,"end":1,"message":`+m+`}`).want(200).
		same(`{"seq":4,"events":[{"seq":3,"time":"*"}],"projections":{"epoch":"*","gen":"*","asOfSeq":3,"values":{"steps":0},"revs":"*"}}`)
}

func TestRecover(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.post("/v1/sessions/s/recover", "").want(200).same(`{"seq":0,"events":[]}`)
	s.post("/v1/sessions/s/events", `{"events":[`+turn(1)+`,{"type":"turn/start","data":{"turn":2}},{"type":"step/start","data":{"turn":2,"step":1}}]}`).want(200)
	s.post("/v1/sessions/s/recover?projections=steps", "{}").want(200).
		same(`{"seq":7,"events":[{"seq":5,"time":"*"},{"seq":6,"time":"*"}],"projections":{"epoch":"*","gen":"*","asOfSeq":6,"values":{"steps":0},"revs":"*"}}`)
	s.post("/v1/sessions/s/recover", "").want(200).same(`{"seq":7,"events":[]}`)
	s.get("/v1/sessions/s/events?types=turn/end&from=4").want(200).
		same(`{"events":[{"type":"turn/end","seq":6,"time":"*","data":{"turn":2,"reason":{"kind":"interrupted"}}}],"seq":7}`)
}
