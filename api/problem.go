package api

import (
	"net/http"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// Code is the stable name of what is wrong, as programs see it. Texts are for people and change.
type Code string

// The codes, by the status that they come with.
const (
	// 400
	CodeBodyInvalid Code = "body-invalid"
	// 401
	CodeUnauthenticated Code = "unauthenticated"
	// 403
	CodeForbidden Code = "forbidden"
	// 404
	CodeSessionNotFound Code = "session-not-found"
	CodeToolNotFound    Code = "tool-not-found"
	CodeNotFound        Code = "not-found"
	// 405
	CodeMethodNotAllowed Code = "method-not-allowed"
	// 409
	CodeSessionConflict Code = "session-conflict"
	CodeSeqConflict     Code = "seq-conflict"
	CodeForkUnavailable Code = "fork-unavailable"
	CodeTargetInvalid   Code = "target-invalid"
	// 413, 415
	CodeTooLarge    Code = "too-large"
	CodeContentType Code = "content-type"
	// 422
	CodeEventInvalid         Code = "event-invalid"
	CodeIDInvalid            Code = "id-invalid"
	CodeHeaderInvalid        Code = "header-invalid"
	CodePresetUnknown        Code = "preset-unknown"
	CodeIdempotencyKeyReused Code = "idempotency-key-reused"
	CodeSurfaceRangeInvalid  Code = "surface-range-invalid"
	CodeArgumentsInvalid     Code = "arguments-invalid"
	// 500: nothing that the caller could have done otherwise.
	CodeInternal Code = "internal"
	// 503, 504, 507
	CodePluginUnavailable Code = "plugin-unavailable"
	CodeStoreReadOnly     Code = "store-readonly"
	CodeOverloaded        Code = "overloaded"
	CodeNotReached        Code = "not-reached"
	CodeDiskFull          Code = "disk-full"
)

// Problem is an error as it goes out: application/problem+json of RFC 9457.
type Problem struct {
	Status int
	Code   Code
	// Detail says what is wrong and what to do.
	Detail string
	// Seq is the length of the log, for seq-conflict and not-reached.
	Seq *int64
	// Index says which event of the request, Reason which of its rules, for event-invalid.
	Index  *int64
	Reason string
	// Path is the place in the body, or in the event where there is an index.
	Path string
	// Size and Limit are in bytes, for too-large, and numbers of names in a list that has too many, for body-invalid. Of what does not say its size, and of lists, only so much is known as was read.
	Size, Limit int64

	// allow and challenge are the headers Allow and WWW-Authenticate.
	allow, challenge string
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// AppendJSON appends the problem as one JSON object.
func (p *Problem) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"type":"about:blank","title":`...)
	dst = event.AppendString(dst, http.StatusText(p.Status))
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(p.Status), 10)
	dst = event.AppendString(append(dst, `,"code":`...), string(p.Code))
	dst = event.AppendString(append(dst, `,"detail":`...), p.Detail)
	if p.Seq != nil {
		dst = strconv.AppendInt(append(dst, `,"seq":`...), *p.Seq, 10)
	}
	if p.Index != nil {
		dst = strconv.AppendInt(append(dst, `,"index":`...), *p.Index, 10)
	}
	if p.Reason != "" {
		dst = event.AppendString(append(dst, `,"reason":`...), p.Reason)
	}
	if p.Path != "" {
		dst = event.AppendString(append(dst, `,"path":`...), p.Path)
	}
	if p.Limit > 0 {
		dst = strconv.AppendInt(append(dst, `,"size":`...), p.Size, 10)
		dst = strconv.AppendInt(append(dst, `,"limit":`...), p.Limit, 10)
	}
	return append(dst, '}')
}

// public is the problem for those who may not administer the server: what comes from below may tell of its files and insides, and stands in its log.
func (p *Problem) public() *Problem {
	shown := *p
	switch p.Code {
	case CodeInternal:
		shown.Detail = "the server failed; its log says how"
	case CodeStoreReadOnly:
		shown.Detail = "the store takes no changes since a write failed; reads go on"
	case CodeDiskFull:
		shown.Detail = "there is no room on the disk of the server: try again once there is"
	case CodePluginUnavailable:
		shown.Detail = "the plugin of this tool does not answer: try again later"
	}
	return &shown
}

// bodyInvalid refuses a request that makes no sense, whatever the session.
func bodyInvalid(path, detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: CodeBodyInvalid, Path: path, Detail: detail}
}

// stopping refuses what begins while the server ends.
func stopping() *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Code: CodeOverloaded, Detail: "the server is stopping: try again once it is back"}
}
