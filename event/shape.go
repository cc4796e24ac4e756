package event

import (
	"encoding/json"
)

// CheckShape checks what data must look like: messages and request headers, then the retired encodings. Other types pass.
// The error is an *Error with code message-invalid, request-header-invalid or encoding-retired. Data must be lossless JSON.
func CheckShape(e *Event) error {
	var fault *Error
	switch e.Type {
	case UserMessage:
		fault = checkMessage(e.Data, "$.data", e.Type)
	case AssistantMessage, ToolResult:
		fault = checkMessage(Lookup(e.Data, "message"), "$.data.message", e.Type)
	case RequestHeader:
		if fault = checkRequestHeader(e.Data); fault == nil && textIs(Lookup(e.Data, "reason"), "fallback") {
			fault = &Error{Code: EncodingRetired, Rule: "request-header-fallback", Path: "$.data.reason",
				Reason: `request/header with reason "fallback" is a retired encoding; write the whole header with reason "change"`}
		}
	case "request/header-delta":
		fault = &Error{Code: EncodingRetired, Rule: "request-header-delta",
			Reason: "request/header-delta is a retired encoding; write a request/header with the whole header"}
	}
	if fault != nil {
		return fault
	}
	return nil
}

// MessageOf returns the message that a surface event shows to a model: the data of user/message, the message of
// assistant/message (nil when its content is empty) and of tool/result; nil for any other type. It is a piece of e.Data.
func MessageOf(e *Event) json.RawMessage {
	switch e.Type {
	case UserMessage:
		return e.Data
	case ToolResult:
		return Lookup(e.Data, "message")
	case AssistantMessage:
		message := Lookup(e.Data, "message")
		empty := true
		Elements(Lookup(message, "content"), func(json.RawMessage) bool {
			empty = false
			return false
		})
		if !empty {
			return message
		}
	}
	return nil
}

// checkMessage checks an identified message of an event of type typ: id, role, source and content. Blocks and sources that
// plugins define are not looked into.
func checkMessage(message json.RawMessage, path, typ string) *Error {
	fail := func(rule, where, reason string) *Error {
		return &Error{Code: MessageInvalid, Rule: rule, Path: path + where, Reason: reason}
	}
	var id, role, source, content []byte
	if !eachMember(message, func(key, value []byte) bool {
		switch {
		case keyIs(key, "id"):
			id = value
		case keyIs(key, "role"):
			role = value
		case keyIs(key, "source"):
			source = value
		case keyIs(key, "content"):
			content = value
		}
		return true
	}) {
		return fail("not-a-message", "", "a message is an object with id, role, content and source")
	}
	want := "user"
	if typ == AssistantMessage {
		want = "assistant"
	}
	switch {
	case !isText(id):
		return fail("id-invalid", ".id", "the message needs an id, a string that is not empty")
	case !textIs(role, want):
		return fail("role-invalid", ".role", `the role of the message in `+typ+` must be "`+want+`"`)
	case !isArray(content):
		return fail("content-invalid", ".content", "content must be an array of blocks")
	case !isText(Lookup(source, "kind")):
		return fail("source-invalid", ".source.kind", "the message needs a source with a kind, a string that is not empty")
	}
	switch typ {
	case AssistantMessage:
		switch {
		case !textIs(Lookup(source, "kind"), "model"):
			return fail("source-invalid", ".source.kind", `the source of an assistant message must have kind "model"`)
		case !isText(Lookup(source, "provider")):
			return fail("source-invalid", ".source.provider", "the source of an assistant message needs a provider, a string that is not empty")
		case !isText(Lookup(source, "model")):
			return fail("source-invalid", ".source.model", "the source of an assistant message needs a model, a string that is not empty")
		}
	case ToolResult:
		callID := Lookup(source, "callId")
		switch {
		case !textIs(Lookup(source, "kind"), "tool"):
			return fail("source-invalid", ".source.kind", `the source of a tool result must have kind "tool"`)
		case !isString(callID):
			return fail("source-invalid", ".source.callId", "the source of a tool result needs a callId, a string")
		}
		var block []byte
		blocks := 0
		Elements(content, func(elem json.RawMessage) bool {
			block = elem
			blocks++
			return blocks < 2
		})
		switch {
		case blocks != 1:
			return fail("content-invalid", ".content", "a tool result has exactly one block")
		case !textIs(Lookup(block, "type"), "tool-result"):
			return fail("block-invalid", ".content[0].type", `the block of a tool result must have type "tool-result"`)
		case !isArray(Lookup(block, "content")):
			return fail("block-invalid", ".content[0].content", "the content of a tool-result block must be an array")
		case !sameText(Lookup(block, "toolCallId"), callID):
			return fail("call-id-mismatch", ".content[0].toolCallId", "toolCallId must be the same string as source.callId")
		}
	}
	return nil
}

func checkRequestHeader(data json.RawMessage) *Error {
	fail := func(rule, where, reason string) *Error {
		return &Error{Code: RequestHeaderInvalid, Rule: rule, Path: "$.data.header" + where, Reason: reason}
	}
	header := Lookup(data, "header")
	config := Lookup(header, "config")
	switch {
	case !isText(Lookup(config, "provider")):
		return fail("provider-missing", ".config.provider", "a request header needs config.provider, a string that is not empty")
	case !isText(Lookup(config, "model")):
		return fail("model-missing", ".config.model", "a request header needs config.model, a string that is not empty")
	}
	if effort := Lookup(config, "reasoningEffort"); effort != nil && !isText(effort) {
		return fail("reasoning-effort-invalid", ".config.reasoningEffort", "reasoningEffort must be a string that is not empty; leave it out otherwise")
	}
	defaults := Lookup(header, "adapterDefaults")
	if defaults == nil {
		return nil
	}
	var fault *Error
	if !eachMember(defaults, func(key, value []byte) bool {
		const rule, where = "adapter-defaults-invalid", ".adapterDefaults"
		var name string
		switch {
		case keyIs(key, "reasoningEffort"):
			name = "reasoningEffort"
		case keyIs(key, "maxTokens"):
			name = "maxTokens"
		default:
			fault = fail(rule, where+PathKey(string(appendDecoded(nil, key))), "adapterDefaults may only name reasoningEffort and maxTokens")
			return false
		}
		switch {
		case string(value) != "true":
			fault = fail(rule, where+"."+name, "a value in adapterDefaults can only be true")
		case Lookup(config, name) == nil:
			fault = fail(rule, where+"."+name, "adapterDefaults names a field that config does not have")
		}
		return fault == nil
	}) {
		return fail("adapter-defaults-invalid", ".adapterDefaults", "adapterDefaults must be an object; leave it out otherwise")
	}
	return fault
}

func isArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// isText says whether raw is a string that is not empty.
func isText(raw []byte) bool { return len(raw) > 2 && raw[0] == '"' }

// sameText says whether both are strings that stand for the same text.
func sameText(a, b []byte) bool {
	if !isString(a) || !isString(b) {
		return false
	}
	if string(a) == string(b) {
		return true
	}
	x, _ := String(a)
	y, _ := String(b)
	return x == y
}
