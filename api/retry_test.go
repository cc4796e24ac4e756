package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// moody counts, and fails while it is told to.
type moody struct {
	counting
	failing *atomic.Bool
}

func (m moody) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if m.failing.Load() {
		return nil, false, errors.New("not now")
	}
	return m.counting.Apply(s, ev)
}

func moodyUnit(key string, failing *atomic.Bool) unit.Definition {
	def := counter(key, "step")
	def.Inline = moody{counting{}, failing}
	return def
}

func TestRetry(t *testing.T) {
	var one, two atomic.Bool
	s := serve(t, func(o *options) { o.units = append(o.units, moodyUnit("one", &one), moodyUnit("two", &two)) })
	s.create("s")
	one.Store(true)
	two.Store(true)
	s.step("s", 2)
	const down = `{"code":"*","seq":"*","message":"*"}`
	s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2},"revs":"*","unavailable":{"one":` + down + `,"two":` + down + `}}`)
	one.Store(false)
	two.Store(false)
	s.post("/v1/sessions/s/retry", `{"keys":[]}`).want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{},"revs":{}}`)
	s.post("/v1/sessions/s/retry", `{"keys":["one","none"]}`).want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{"one":2},"revs":"*"}`)
	s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2,"one":2},"revs":"*","unavailable":{"two":` + down + `}}`)
	s.post("/v1/sessions/s/retry", "").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":1,"values":{"steps":2,"one":2,"two":2},"revs":"*"}`)
	s.post("/v1/sessions/s/retry", `{"keys":["one",1]}`).problem(400, "body-invalid", `"path":"$.keys[1]"`)
	s.post("/v1/sessions/s/retry", `{"keys":"one"}`).problem(400, "body-invalid", `"path":"$.keys"`)
	s.post("/v1/sessions/s/retry", `{"key":["one"]}`).problem(400, "body-invalid", `"path":"$.key"`)
	s.post("/v1/sessions/s/retry?keys=one", "").problem(400, "body-invalid")
	s.post("/v1/sessions/nobody/retry", "").problem(404, "session-not-found")
}

// forgetful gives a number that the log does not account for.
type forgetful struct {
	counting
	extra *atomic.Int64
}

func (f forgetful) View(s unit.State) (json.RawMessage, error) {
	return fmt.Appendf(nil, "%d", int64(s.(int))+f.extra.Load()), nil
}

func TestVerify(t *testing.T) {
	var extra atomic.Int64
	var failing atomic.Bool
	s := serve(t, func(o *options) {
		odd := counter("odd", "step")
		odd.Inline = forgetful{counting{}, &extra}
		o.units = append(o.units, odd, moodyUnit("moody", &failing))
	})
	s.create("s")
	s.post("/v1/sessions/s/verify", "").want(200).same(`{"ok":true,"seq":0,"incarnation":"*","keys":["moody","odd","steps"],"differences":[]}`)
	s.step("s", 2)
	s.get("/v1/sessions/s/projections").want(200)
	s.post("/v1/sessions/s/verify", "{}").want(200).same(`{"ok":true,"seq":2,"incarnation":"*","keys":["moody","odd","steps"],"differences":[]}`)
	extra.Store(5)
	s.post("/v1/sessions/s/verify", "").want(200).same(
		`{"ok":false,"seq":2,"incarnation":"*","keys":["moody","odd","steps"],"differences":[{"key":"odd","seq":1,"what":"value","served":2,"folded":7}]}`)
	extra.Store(0)
	failing.Store(true)
	s.step("s", 1)
	s.post("/v1/sessions/s/verify", "").want(200).same(
		`{"ok":false,"seq":3,"incarnation":"*","keys":["odd","steps"],"differences":[],"unavailable":{"moody":{"code":"*","seq":"*","message":"*"}}}`)
	s.post("/v1/sessions/s/verify", `{"keys":[]}`).problem(400, "body-invalid", `"path":"$.keys"`)
	s.post("/v1/sessions/nobody/verify", "").problem(404, "session-not-found")
}
