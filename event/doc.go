// Package event owns what one entry of a session log is: the envelope and its rules, the lossless-JSON rule that keeps
// its bytes, the log's header, and the shapes of the few types that mean something to the core.
//
// It never re-encodes a caller's JSON: data goes out byte for byte as it came in, white space outside strings aside.
// It knows neither surfaces nor logs; whether an event fits into one is decided above.
//
// # Lossless JSON
//
// JSON is taken only if every reader would read the same: it is valid, its strings are UTF-8 (an escaped lone surrogate is
// kept, since streams of tokens split characters), no key stands twice in an object once its escapes are read, no number is
// -0 in any spelling or beyond the range of a double, and nothing nests deeper than MaxDepth containers. A number too small
// for a double, such as 1e-400, is kept. Each refusal is an *Error with code data-not-lossless and the path of the place:
// $.todos[2]["odd key"]. The time is linear in the text, whatever the text is.
//
// # Shapes
//
// Data of most types is anything. Three types carry a message and one the header of a request, and an append checks them. Further members and
// blocks are free; "…" is a string that is not empty.
//
//	user/message       {"id": "…", "role": "user", "source": {"kind": "…"}, "content": [blocks]}
//	assistant/message  {"message": {"id": "…", "role": "assistant", "source": {"kind": "model", "provider": "…", "model": "…"}, "content": [blocks]}}
//	tool/result        {"message": {"id": "…", "role": "user", "source": {"kind": "tool", "callId": "c"},
//	                    "content": [{"type": "tool-result", "toolCallId": "c", "content": [blocks]}]}}
//	request/header     {"header": {"config": {"provider": "…", "model": "…"}}}
//
// The first three are what can be on the surface: each needs an Op, [Append] or [Replace]. A block of text is {"type": "text", "text": "…"}.
//
// # Whole values
//
// An event that carries state carries the whole new state, never a difference. That is what makes the latest value final.
//
// All values here are immutable once made and hold no locks; every function may be called concurrently.
package event
