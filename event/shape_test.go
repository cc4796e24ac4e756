package event_test

import (
	"encoding/json"
	"testing"

	"github.com/foldhost/foldhost/event"
)

const (
	userMessage      = `{"id":"m","role":"user","content":[],"source":{"kind":"user"}}`
	assistantMessage = `{"turn":1,"step":1,"message":{"id":"m","role":"assistant","content":[{"type":"text","text":"x"}],"source":{"kind":"model","provider":"p","model":"q"}}}`
	toolResult       = `{"turn":1,"step":1,"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]}],"source":{"kind":"tool","callId":"c"}}}`
	requestHeader    = `{"header":{"config":{"provider":"p","model":"m"}},"reason":"initial"}`
)

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		typ, data string
		code      event.Code // "" is accepted
		path      string
	}{
		{"any/type", `null`, "", ""},
		{"user/messages", `{}`, "", ""},
		{"tool/call", `{}`, "", ""},

		{event.UserMessage, userMessage, "", ""},
		{event.UserMessage, `{"id":"m","role":"user","content":[1,{"type":"own"}],"source":{"kind":"plugin","x":1},"extra":null}`, "", ""},
		{event.UserMessage, `{"i\u0064":"\u006d","role":"us\u0065r","content":[],"source":{"kind":"\u0000"}}`, "", ""},
		{event.UserMessage, `null`, event.MessageInvalid, "$.data"},
		{event.UserMessage, `[]`, event.MessageInvalid, "$.data"},
		{event.UserMessage, `{"role":"user","content":[],"source":{"kind":"user"}}`, event.MessageInvalid, "$.data.id"},
		{event.UserMessage, `{"id":"","role":"user","content":[],"source":{"kind":"user"}}`, event.MessageInvalid, "$.data.id"},
		{event.UserMessage, `{"id":1,"role":"user","content":[],"source":{"kind":"user"}}`, event.MessageInvalid, "$.data.id"},
		{event.UserMessage, `{"id":"m","role":"assistant","content":[],"source":{"kind":"user"}}`, event.MessageInvalid, "$.data.role"},
		{event.UserMessage, `{"id":"m","content":[],"source":{"kind":"user"}}`, event.MessageInvalid, "$.data.role"},
		{event.UserMessage, `{"id":"m","role":"user","content":"x","source":{"kind":"user"}}`, event.MessageInvalid, "$.data.content"},
		{event.UserMessage, `{"id":"m","role":"user","source":{"kind":"user"}}`, event.MessageInvalid, "$.data.content"},
		{event.UserMessage, `{"id":"m","role":"user","content":[]}`, event.MessageInvalid, "$.data.source.kind"},
		{event.UserMessage, `{"id":"m","role":"user","content":[],"source":"user"}`, event.MessageInvalid, "$.data.source.kind"},
		{event.UserMessage, `{"id":"m","role":"user","content":[],"source":{"kind":""}}`, event.MessageInvalid, "$.data.source.kind"},

		{event.AssistantMessage, assistantMessage, "", ""},
		{event.AssistantMessage, `{"turn":1}`, event.MessageInvalid, "$.data.message"},
		{event.AssistantMessage, `5`, event.MessageInvalid, "$.data.message"},
		{event.AssistantMessage, `{"message":{"id":"m","role":"user","content":[],"source":{"kind":"model","provider":"p","model":"q"}}}`, event.MessageInvalid, "$.data.message.role"},
		{event.AssistantMessage, `{"message":{"id":"m","role":"assistant","content":[],"source":{"kind":"user","provider":"p","model":"q"}}}`, event.MessageInvalid, "$.data.message.source.kind"},
		{event.AssistantMessage, `{"message":{"id":"m","role":"assistant","content":[],"source":{"kind":"model","model":"q"}}}`, event.MessageInvalid, "$.data.message.source.provider"},
		{event.AssistantMessage, `{"message":{"id":"m","role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":""}}}`, event.MessageInvalid, "$.data.message.source.model"},

		{event.ToolResult, toolResult, "", ""},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"\u0063","content":[1]}],"source":{"kind":"tool","callId":"c"}}}`, "", ""},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]}],"source":{"kind":"user","callId":"c"}}}`, event.MessageInvalid, "$.data.message.source.kind"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]}],"source":{"kind":"tool"}}}`, event.MessageInvalid, "$.data.message.source.callId"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]},{}],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"text","toolCallId":"c","content":[]}],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content[0].type"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":"x"}],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content[0].content"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","toolCallId":"d","content":[]}],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content[0].toolCallId"},
		{event.ToolResult, `{"message":{"id":"m","role":"user","content":[{"type":"tool-result","content":[]}],"source":{"kind":"tool","callId":"c"}}}`, event.MessageInvalid, "$.data.message.content[0].toolCallId"},

		{event.RequestHeader, requestHeader, "", ""},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m","reasoningEffort":"high","maxTokens":1},"adapterDefaults":{"reasoningEffort":true,"maxTokens":true}}}`, "", ""},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"},"adapterDefaults":{}}}`, "", ""},
		{event.RequestHeader, `null`, event.RequestHeaderInvalid, "$.data.header.config.provider"},
		{event.RequestHeader, `{"header":{"config":{"provider":"","model":"m"}}}`, event.RequestHeaderInvalid, "$.data.header.config.provider"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":""}}}`, event.RequestHeaderInvalid, "$.data.header.config.model"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":7}}}`, event.RequestHeaderInvalid, "$.data.header.config.model"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m","reasoningEffort":""}}}`, event.RequestHeaderInvalid, "$.data.header.config.reasoningEffort"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m","reasoningEffort":null}}}`, event.RequestHeaderInvalid, "$.data.header.config.reasoningEffort"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"},"adapterDefaults":null}}`, event.RequestHeaderInvalid, "$.data.header.adapterDefaults"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"},"adapterDefaults":[]}}`, event.RequestHeaderInvalid, "$.data.header.adapterDefaults"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m","x":1},"adapterDefaults":{"x":true}}}`, event.RequestHeaderInvalid, "$.data.header.adapterDefaults.x"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"},"adapterDefaults":{"maxTokens":true}}}`, event.RequestHeaderInvalid, "$.data.header.adapterDefaults.maxTokens"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m","maxTokens":1},"adapterDefaults":{"maxTokens":1}}}`, event.RequestHeaderInvalid, "$.data.header.adapterDefaults.maxTokens"},

		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"}},"reason":"fallback"}`, event.EncodingRetired, "$.data.reason"},
		{event.RequestHeader, `{"header":{"config":{"provider":"p","model":"m"}},"reason":"f\u0061llback"}`, event.EncodingRetired, "$.data.reason"},
		{event.RequestHeader, `{"reason":"fallback"}`, event.RequestHeaderInvalid, "$.data.header.config.provider"}, // the shape comes first
		{"request/header-delta", `{}`, event.EncodingRetired, ""},
	} {
		err := event.CheckShape(&event.Event{Type: c.typ, Data: json.RawMessage(c.data)})
		if c.code == "" {
			if err != nil {
				t.Errorf("%s %s: %v", c.typ, c.data, err)
			}
			continue
		}
		if e := refusal(t, err); e.Code != c.code || e.Path != c.path || e.Rule == "" {
			t.Errorf("%s %s: got %s at %s, want %s at %s, and a rule", c.typ, c.data, e.Code, e.Path, c.code, c.path)
		}
	}
}

func TestTheMessageOfAnEvent(t *testing.T) {
	for _, c := range []struct{ typ, data, want string }{
		{event.UserMessage, userMessage, userMessage},
		{event.AssistantMessage, `{"message":{"content":[ ]}}`, ""},
		{event.AssistantMessage, `{"message":{"content":[1]},"turn":1}`, `{"content":[1]}`},
		{event.ToolResult, `{"turn":1,"message":{"content":[]}}`, `{"content":[]}`},
		{"todo/write", `{"message":{"content":[1]}}`, ""},
	} {
		if got := event.MessageOf(&event.Event{Type: c.typ, Data: json.RawMessage(c.data)}); string(got) != c.want {
			t.Errorf("%s %s: got %s, want %s", c.typ, c.data, got, c.want)
		}
	}
}
