package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// presets gives a server presets: "goals" has the plugin goal of this process, "lost" one that there is not, and both have no other.
func presets(t *testing.T) func(*options) {
	return func(o *options) {
		o.host.Plugins = &host.PluginOptions{Dir: t.TempDir(), SocketDir: t.TempDir(), Config: &config.File{Presets: map[string]config.Preset{
			"goals": {"goal": nil}, "lost": {"ghost": json.RawMessage(`{"a":1}`)},
		}}}
	}
}

func TestASessionIsMadeWithAPreset(t *testing.T) {
	s := serve(t, presets(t))
	s.add(goals("goal"))
	const made = `{"header":{"version":0,"id":"s","createdAt":"*","agentPreset":"goals"},"seq":0,"firstLiveSeq":0,"incarnation":"*","live":true,"updatedAt":"*"}`
	s.post("/v1/sessions", `{"id":"s","preset":"goals"}`).want(201).same(made)
	s.post("/v1/sessions", `{"id":"s","preset":"goals"}`).want(200).same(made)
	s.post("/v1/sessions", `{"id":"s"}`).want(200).same(made)
	s.post("/v1/sessions", `{"id":"s","preset":"lost"}`).problem(409, "session-conflict")
	s.post("/v1/sessions", `{"id":"plain"}`).want(201)
	s.post("/v1/sessions", `{"id":"plain","preset":"goals"}`).problem(409, "session-conflict")
	// What there is not, whatever else is given. A session that is there is no other for that.
	for _, body := range []string{`{"preset":"none"}`, `{"id":"new","preset":"none"}`, `{"id":"new","preset":""}`, `{"id":"new","preset":"Goals"}`} {
		s.post("/v1/sessions", body).problem(422, "preset-unknown", `"path":"$.preset"`)
	}
	s.post("/v1/sessions", `{"preset":"none"}`, "Idempotency-Key: k").problem(422, "preset-unknown", `"path":"$.preset"`)
	s.post("/v1/sessions", `{"id":"s","preset":"none"}`).problem(409, "session-conflict")
	s.get("/v1/sessions/new").problem(404, "session-not-found")
	// An empty set is a set.
	s.post("/v1/sessions", `{"id":"lost","preset":"lost"}`).want(201)
	s.get("/v1/sessions/lost/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":-1,"values":{},"revs":{}}`)
}

// A session has the values and the tools of its set, and so has a child of it.
func TestASessionSeesItsSet(t *testing.T) {
	s := serve(t, presets(t))
	s.add(goals("goal"))
	s.add(goals("a-other", func(r *host.Resident) {
		r.Events, r.Units[0].Key, r.Tools[0].Reads = nil, "others", nil
	}))
	s.post("/v1/sessions", `{"id":"s","preset":"goals"}`).want(201)
	s.post("/v1/sessions/s/events", `{"events":[{"type":"turn/start","data":{"turn":1}},{"type":"step","data":1},{"type":"turn/end","data":{"turn":1}}]}`).want(200)
	s.post("/v1/sessions/s/tools/set_goal", `{"arguments":{"goal":1}}`).want(200).same(
		`{"content":[{"type":"text","text":"goals so far: 0"}],"value":7,"isError":false,"events":[{"seq":3,"time":"*"}]}`)
	const block = `{"epoch":"*","gen":"*","asOfSeq":3,"values":{"goals":1},"revs":{"goals":"*"}}`
	s.get("/v1/sessions/s/projections").want(200).same(block)
	s.post("/v1/sessions/s/detach", "").want(200)
	s.get("/v1/sessions/s/projections").want(200).same(block)
	child := s.post("/v1/sessions/s/fork", `{"id":"child"}`).want(201).object()
	if child["header"].(map[string]any)["agentPreset"] != "goals" {
		t.Errorf("the child is %v", child)
	}
	s.post("/v1/sessions", `{"id":"lost","preset":"lost"}`).want(201)
	s.post("/v1/sessions/lost/tools/set_goal", `{"arguments":{"goal":1}}`).problem(404, "tool-not-found")
}

// A log that comes in with a preset that there is not is taken, and served by the default set.
func TestAnImportedPresetMayBeUnknown(t *testing.T) {
	s := serve(t, presets(t))
	log := `{"type":"session","version":0,"id":"s","createdAt":1,"agentPreset":"gone"}` + "\n" + `{"type":"step","seq":0,"time":1,"data":1}` + "\n"
	s.do(http.MethodPost, "/v1/import", log, "Content-Type: application/x-ndjson").want(201)
	s.get("/v1/sessions/s/projections").want(200).same(`{"epoch":"*","gen":"*","asOfSeq":"*","values":{"steps":1},"revs":{"steps":"*"}}`)
	// Made again by its maker, who does not know that the preset is gone.
	s.post("/v1/sessions", `{"id":"s","preset":"gone","createdAt":1}`).want(200)
}

func TestTheCatalogueOfAPreset(t *testing.T) {
	s := serve(t, presets(t))
	s.get("/v1/plugins?preset=goals").want(200).same(`{"plugins":[
		{"name":"goal","state":"missing","reason":"*","restarts":0,"presets":["goals"],"presetOnly":true}]}`)
	s.add(goals("goal"))
	s.add(goals("a-other", func(r *host.Resident) {
		r.Events, r.Units[0].Key, r.Tools[0].Reads = nil, "others", nil
	}))
	const tool = `"description":"sets a goal","argumentSchema":{"type":"object","required":["goal"]},"resultSchema":{"type":"integer"}`
	s.get("/v1/tools").want(200).same(`{"tools":[{"name":"set_goal","plugin":"goal","reads":["goals"],` + tool + `}]}`)
	s.get("/v1/tools?preset=goals").want(200).same(`{"tools":[{"name":"set_goal","plugin":"goal","reads":["goals"],` + tool + `}]}`)
	s.get("/v1/tools?preset=lost").want(200).same(`{"tools":[]}`)
	s.get("/v1/projections?preset=goals").want(200).same(`{"projections":[{"key":"goals","plugin":"goal","stateVersion":1,"events":["goal/set","break"],"viewSchema":{"type":"integer"}}]}`)
	s.get("/v1/plugins?preset=goals").want(200).same(`{"plugins":[
		{"name":"goal","state":"ready","since":"*","restarts":0,"ownedEvents":[{"type":"goal/set","schema":{"type":"object"}}],
		 "units":[{"key":"goals","stateVersion":1,"events":["goal/set","break"]}],"tools":[{"name":"set_goal"}],"presets":["goals"]}]}`)
	s.get("/v1/plugins?preset=lost").want(200).same(`{"plugins":[{"name":"ghost","state":"missing","reason":"*","restarts":0,"presets":["lost"],"presetOnly":true}]}`)
	// The default set lacks nothing: what it lists is what it listed before there were presets.
	s.get("/v1/plugins").want(200).same(`{"plugins":[
		{"name":"a-other","state":"ready","since":"*","restarts":0,"units":[{"key":"others","stateVersion":1,"events":["goal/set","break"]}],"tools":[{"name":"set_goal","shadowedBy":"goal"}]},
		{"name":"goal","state":"ready","since":"*","restarts":0,"ownedEvents":[{"type":"goal/set","schema":{"type":"object"}}],
		 "units":[{"key":"goals","stateVersion":1,"events":["goal/set","break"]}],"tools":[{"name":"set_goal"}],"presets":["goals"]}]}`)
	ready := s.get("/readyz")
	for ready.status != 200 { // the first starts, of which there are none, have ended soon
		ready = s.get("/readyz")
	}
	ready.same(`{"ready":true,"missing":[{"plugin":"ghost","state":"missing","presets":["lost"],"reason":"*"}]}`)
	for _, path := range []string{"/v1/tools", "/v1/projections", "/v1/plugins"} {
		s.get(path+"?preset=none").problem(422, "preset-unknown")
	}
}

// A stream has the values of its session's set, and hears of a key that comes to that set although another set has it already.
func TestAStreamHasTheValuesOfItsSet(t *testing.T) {
	s := serve(t, presets(t))
	s.add(goals("a-other", func(r *host.Resident) { r.Events, r.Tools = nil, nil }))
	s.post("/v1/sessions", `{"id":"s","preset":"goals"}`).want(201)
	s.post("/v1/sessions", `{"id":"cold","preset":"goals","events":[{"type":"goal/set","data":{"goal":1}}]}`).want(201)
	s.post("/v1/sessions/cold/detach", "").want(200)
	f, cold := s.follow("s", "?after=-1"), s.follow("cold", "")
	f.want("session/subscribed", `{"lastSeq":-1,"incarnation":"*","epoch":"*","heartbeatMs":"*"}`)
	f.want("session/baseline", `{"epoch":"*","gen":"*","asOfSeq":-1,"values":{},"revs":{}}`)
	cold.opening()
	s.post("/v1/sessions/s/events", `{"events":[{"type":"step","data":1},{"type":"goal/set","data":{"goal":1}}]}`).want(200)
	f.want("session/event", `{"event":{"type":"step","seq":0,"time":"*","data":1}}`)
	f.want("session/event", `{"event":{"type":"goal/set","seq":1,"time":"*","data":{"goal":1}}}`)
	s.add(goals("goal"))
	f.want("session/projection", `{"key":"goals","value":1,"seq":1,"rev":"*"}`)
	cold.want("session/projection", `{"key":"goals","value":1,"seq":"*","rev":"*"}`)
	s.post("/v1/sessions/s/events", `{"type":"goal/set","data":{"goal":2}}`).want(200)
	f.want("session/event", `{"event":{"type":"goal/set","seq":2,"time":"*","data":{"goal":2}}}`)
	f.want("session/projection", `{"key":"goals","value":2,"seq":2,"rev":"*"}`)
}
