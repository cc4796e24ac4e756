package client

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Code is the stable name of what a server finds wrong. A server may have more than those that are listed here.
type Code string

// The codes, by the status that they come with.
const (
	CodeBodyInvalid          Code = "body-invalid"           // 400
	CodeUnauthenticated      Code = "unauthenticated"        // 401
	CodeForbidden            Code = "forbidden"              // 403
	CodeSessionNotFound      Code = "session-not-found"      // 404
	CodeToolNotFound         Code = "tool-not-found"         // 404
	CodeNotFound             Code = "not-found"              // 404: the server has no such call, or is another program
	CodeMethodNotAllowed     Code = "method-not-allowed"     // 405
	CodeSessionConflict      Code = "session-conflict"       // 409: the id is taken
	CodeSeqConflict          Code = "seq-conflict"           // 409: the log is not as long as was expected
	CodeForkUnavailable      Code = "fork-unavailable"       // 409
	CodeTargetInvalid        Code = "target-invalid"         // 409: a backup cannot be written there
	CodeTooLarge             Code = "too-large"              // 413
	CodeContentType          Code = "content-type"           // 415
	CodeEventInvalid         Code = "event-invalid"          // 422: Index, Reason and Path say which and why
	CodeIDInvalid            Code = "id-invalid"             // 422
	CodeHeaderInvalid        Code = "header-invalid"         // 422
	CodePresetUnknown        Code = "preset-unknown"         // 422
	CodeIdempotencyKeyReused Code = "idempotency-key-reused" // 422: another request had the key
	CodeSurfaceRangeInvalid  Code = "surface-range-invalid"  // 422
	CodeArgumentsInvalid     Code = "arguments-invalid"      // 422: no log takes them; what a tool refuses is a result
	CodeInternal             Code = "internal"               // 500
	CodePluginUnavailable    Code = "plugin-unavailable"     // 503: the plugin of a tool does not answer
	CodeStoreReadOnly        Code = "store-readonly"         // 503: until the server is started again
	CodeOverloaded           Code = "overloaded"             // 503: passes
	CodeNotReached           Code = "not-reached"            // 504: the log has no such seq
	CodeDiskFull             Code = "disk-full"              // 507
)

// Error is what a server answers instead of what was asked for. Nothing was changed by the request, unless Code is overloaded, internal or empty: then it is not known.
type Error struct {
	// Doing is the call, such as `append to session "s"`. Who empties it has the server's words alone.
	Doing  string
	Status int
	// Code is empty when the answer is not one of this API, as that of a proxy.
	Code Code
	// Detail says to people what is wrong and what to do.
	Detail string
	// Seq is the length of the log, for seq-conflict and not-reached.
	Seq *int64
	// Index says which event of the request, Reason which of the rules of events, for event-invalid.
	Index  *int64
	Reason string
	// Path is the place in the body of the request, or in the event where there is an index.
	Path string
	// Size and Limit are in bytes, for too-large.
	Size, Limit int64

	// after is how long the server asks to wait.
	after time.Duration
}

func (e *Error) Error() string {
	text := e.Detail
	if e.Doing != "" {
		text = e.Doing + ": " + text
	}
	var at []string
	if e.Index != nil {
		at = append(at, fmt.Sprintf("event %d", *e.Index))
	}
	if e.Path != "" {
		at = append(at, e.Path)
	}
	if len(at) > 0 {
		text += " (" + strings.Join(at, ", ") + ")"
	}
	return text
}

// NetworkError: the answer did not come, or not to its end. Whether the request was done is not known, unless the call only reads.
type NetworkError struct {
	Doing string
	Err   error
}

func (e *NetworkError) Error() string { return e.Doing + ": " + e.Err.Error() }
func (e *NetworkError) Unwrap() error { return e.Err }

// AnswerError: the answer makes no sense, so that it comes from another program or another version.
type AnswerError struct {
	Doing string
	Err   error
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s: the answer is not understood; is there a foldhost at the URL? %v", e.Doing, e.Err)
}
func (e *AnswerError) Unwrap() error { return e.Err }

// NameError: nothing has that name, so nothing was sent.
type NameError struct{ Doing, Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("%s: %q is no name: one has at least one character that is no dot", e.Doing, e.Name)
}

// problem is an Error as it comes.
type problem struct {
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
	Seq    *int64 `json:"seq"`
	Index  *int64 `json:"index"`
	Reason string `json:"reason"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Limit  int64  `json:"limit"`
}

func (p *problem) error(doing string) *Error {
	return &Error{Doing: doing, Status: p.Status, Code: p.Code, Detail: p.Detail, Seq: p.Seq, Index: p.Index, Reason: p.Reason, Path: p.Path, Size: p.Size, Limit: p.Limit}
}

// maxProblem bounds what is read of an answer that is no success: a problem has some hundred bytes.
const maxProblem = 64 << 10

// errorOf reads an answer that is no success.
func errorOf(doing string, res *http.Response) *Error {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	var p problem
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != "application/problem+json" || err != nil || json.Unmarshal(text, &p) != nil {
		p = problem{Detail: fmt.Sprintf("the answer is %s, and not one of foldhost", res.Status)}
		if to := res.Header.Get("Location"); to != "" && res.StatusCode/100 == 3 {
			p.Detail += fmt.Sprintf("; it leads to %q, which is not followed: take the URL of the server itself", to)
		}
		if strings.HasPrefix(string(text), "Client sent an HTTP request to an HTTPS server") { // What net/http says there.
			p.Detail += "; the server speaks HTTPS: begin the URL with https://"
		}
	}
	p.Status = res.StatusCode
	e := p.error(doing)
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		e.after = min(time.Duration(s)*time.Second, maxWait)
	}
	return e
}
