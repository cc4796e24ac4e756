package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// problemOf says by which status and code an error goes out. What it does not know is the server's own fault.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if p := toolProblem(err); p != nil {
		return p
	}
	if e, ok := errors.AsType[*session.ForkError](err); ok {
		return forkProblem(e)
	}
	if e, ok := errors.AsType[*event.Error](err); ok {
		return ruleProblem(err, e)
	}
	if e, ok := errors.AsType[*TargetError](err); ok { // Before what it wraps, which is about that file.
		return &Problem{Status: http.StatusConflict, Code: CodeTargetInvalid, Path: "$.path", Detail: e.Error()}
	}
	of := func(status int, code Code) *Problem { return &Problem{Status: status, Code: code, Detail: err.Error()} }
	if e, ok := errors.AsType[*eventlog.SeqConflictError](err); ok {
		p := of(http.StatusConflict, CodeSeqConflict)
		p.Seq = &e.Seq
		return p
	}
	if e, ok := errors.AsType[*registry.SeqRangeError](err); ok {
		p := of(http.StatusGatewayTimeout, CodeNotReached)
		p.Seq = new(e.Head + 1)
		return p
	}
	switch {
	case is[*eventlog.NotFoundError](err), is[*eventlog.IncarnationError](err):
		return of(http.StatusNotFound, CodeSessionNotFound)
	case is[*eventlog.ExistsError](err):
		return of(http.StatusConflict, CodeSessionConflict)
	case is[*eventlog.KeyReusedError](err):
		return of(http.StatusUnprocessableEntity, CodeIdempotencyKeyReused)
	case is[*eventlog.ReadOnlyError](err): // Before what it wraps.
		return of(http.StatusServiceUnavailable, CodeStoreReadOnly)
	case is[*eventlog.DiskFullError](err):
		return of(http.StatusInsufficientStorage, CodeDiskFull)
	case is[*registry.BusyError](err):
		return of(http.StatusServiceUnavailable, CodeOverloaded)
	case errors.Is(err, session.ErrClosed), errors.Is(err, eventlog.ErrClosed), errors.Is(err, registry.ErrClosed), errors.Is(err, checkpoint.ErrClosed):
		return stopping()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// A deadline of ours, or of a caller who does not hear this any more.
		return &Problem{Status: http.StatusServiceUnavailable, Code: CodeOverloaded, Detail: "it took too long: try again"}
	case is[*session.PanicError](err):
	case is[*session.VetoError](err):
		return of(http.StatusForbidden, CodeForbidden)
	}
	return of(http.StatusInternalServerError, CodeInternal)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func forkProblem(e *session.ForkError) *Problem {
	switch e.Code {
	case session.ForkChildExists:
		return &Problem{Status: http.StatusConflict, Code: CodeSessionConflict, Detail: e.Reason}
	case session.ForkSourceNotFound:
		return &Problem{Status: http.StatusNotFound, Code: CodeSessionNotFound, Detail: e.Reason}
	}
	return &Problem{Status: http.StatusConflict, Code: CodeForkUnavailable, Detail: e.Reason}
}

// ruleProblem is a broken rule of a header or an event.
func ruleProblem(err error, e *event.Error) *Problem {
	p := &Problem{Status: http.StatusUnprocessableEntity, Detail: e.Reason, Path: e.Path}
	var index int64
	if at, ok := errors.AsType[*event.IndexError](err); ok {
		index = at.Index
	}
	switch e.Code {
	case event.HeaderInvalid:
		p.Code = CodeHeaderInvalid
		if e.Path == "$.id" {
			p.Code = CodeIDInvalid
		}
		return p
	case event.TooLarge:
		p.Status, p.Code, p.Size, p.Limit = http.StatusRequestEntityTooLarge, CodeTooLarge, int64(e.Size), int64(e.Limit)
	default:
		p.Code, p.Reason = CodeEventInvalid, string(e.Code)
	}
	if index != event.HeaderIndex {
		p.Index = &index
	}
	return p
}

// unknownField names a field and those that there are.
func unknownField(path string, known []string) *Problem {
	if len(known) == 0 {
		return bodyInvalid(path, "there is no such field: an empty object is expected")
	}
	return bodyInvalid(path, fmt.Sprintf("there is no such field: fields are %s, in this spelling", listing(known)))
}

func listing(names []string) string {
	text := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			text += " and "
		default:
			text += ", "
		}
		text += n
	}
	return text
}
