package conform

import (
	"strings"

	"github.com/foldhost/foldhost/event"
)

// sample is a session of the core types, each in its shape, with an interrupted turn at the end: what every plugin may meet.
const sample = `{"type":"turn/start","seq":0,"time":1767261600000,"data":{"turn":1}}
{"type":"request/header","seq":1,"time":1767261600001,"data":{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}}
{"type":"user/message","seq":2,"time":1767261600002,"data":{"id":"u1","role":"user","content":[{"type":"text","text":"What time is it?"}],"source":{"kind":"user"}},"surfaceOp":"append"}
{"type":"step/start","seq":3,"time":1767261600003,"data":{"turn":1,"step":1}}
{"type":"assistant/chunk","seq":4,"time":1767261600004,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"I will look. \ud83d"}}}
{"type":"assistant/chunk","seq":5,"time":1767261600005,"data":{"turn":1,"step":1,"chunk":{"type":"usage","usage":{"inputTokens":12,"outputTokens":7}}}}
{"type":"assistant/message","seq":6,"time":1767261600006,"data":{"turn":1,"step":1,"message":{"id":"a1","role":"assistant","content":[{"type":"text","text":"I will look."},{"type":"tool-call","id":"c1","name":"clock","arguments":"{}"}],"source":{"kind":"model","provider":"p","model":"m"}},"usage":{"inputTokens":12,"outputTokens":9}},"surfaceOp":"append","sourceEventSeqs":[4,5]}
{"type":"tool/call","seq":7,"time":1767261600007,"data":{"turn":1,"step":1,"callId":"c1","name":"clock","arguments":"{}"}}
{"type":"tool/result","seq":8,"time":1767261600008,"data":{"turn":1,"step":1,"message":{"id":"t1","role":"user","content":[{"type":"tool-result","toolCallId":"c1","content":[{"type":"text","text":"noon"}],"isError":false}],"source":{"kind":"tool","callId":"c1"}}},"surfaceOp":"append","sourceEventSeqs":[7]}
{"type":"step/end","seq":9,"time":1767261600009,"data":{"turn":1,"step":1}}
{"type":"turn/end","seq":10,"time":1767261600010,"data":{"turn":1,"reason":{"kind":"completed"}}}
{"type":"user/message","seq":11,"time":1767261600009,"data":{"id":"u2","role":"user","content":[{"type":"text","text":"It was noon."}],"source":{"kind":"plugin"}},"surfaceOp":{"op":"replace","start":2,"end":8},"sourceEventSeqs":[2,6,8]}
{"type":"some/thing","seq":12,"time":1767261600012,"data":null,"ignorable":true}
{"type":"request/context","seq":13,"time":1767261600013,"data":{"provider":"p","model":"m"}}
{"type":"turn/start","seq":14,"time":1767261600014,"data":{"turn":2}}
{"type":"step/start","seq":15,"time":1767261600015,"data":{"turn":2,"step":1}}
`

// Sample is a short session for those who have none at hand: it holds every core type that a log can begin with.
func Sample() []event.Event {
	var events []event.Event
	for line := range strings.Lines(sample) {
		d, err := event.DecodeDraft([]byte(line), 0)
		if err != nil {
			panic("conform: the sample is not a log: " + err.Error()) // a test decodes it
		}
		events = append(events, d.Event)
	}
	return events
}
