package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// call is one request. It belongs to the goroutine of its handler.
type call struct {
	api  *API
	w    http.ResponseWriter
	r    *http.Request
	conn *http.ResponseController
	// begun says that a status went out, so that no problem can follow.
	begun bool
	// whole says that the body was read to its end.
	whole bool
	// status is the one that went out, 0 for none.
	status int
	// held is what the caller may do.
	held scopes
}

// handler makes a function into a handler for those who have a scope: what it returns goes out as a problem. route is the path of its pattern, empty for none.
func (a *API) handler(route string, need scope, f func(*call) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{api: a, w: w, r: r, conn: http.NewResponseController(w)}
		began := time.Now()
		defer func() { c.ended(route, time.Since(began)) }()
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				c.log().Error("contained a panic of a request", "method", r.Method, "path", r.URL.Path, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				c.fail(&Problem{Status: http.StatusInternalServerError, Code: CodeInternal, Detail: "the server failed; its log says how"})
			}
		}()
		c.bound(a.o.BodyTimeout)
		err := c.admit(need)
		if err == nil {
			err = c.bodiless()
		}
		if err == nil {
			err = f(c)
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.bound(restTime)
	})
}

// log names the session of the request, if it is about one.
func (c *call) log() *slog.Logger {
	if id := c.r.PathValue("id"); id != "" {
		return c.api.o.Logger.With("session", id)
	}
	return c.api.o.Logger
}

// fail answers with an error. An answer that has begun is cut off, so that nobody takes its beginning for the whole.
func (c *call) fail(err error) {
	p := problemOf(err)
	if p.Code == CodeInternal && c.r.Context().Err() == nil {
		c.log().Error("a request failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	}
	if c.begun {
		if c.r.Context().Err() == nil {
			c.log().Warn("an answer was cut off", "path", c.r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	c.bound(restTime)
	if p.allow != "" {
		c.w.Header().Set("Allow", p.allow)
	}
	if p.challenge != "" {
		c.w.Header().Set("WWW-Authenticate", p.challenge)
	}
	if p.Status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	if !c.held.has(scopeAdmin) {
		p = p.public()
	}
	c.send(p.Status, "application/problem+json", p.AppendJSON(nil))
}

// restTime is how long what is left of a body, which nobody wants, may take to come: it is read so that the answer is, and has mostly come already.
const restTime = 5 * time.Second

// bound gives a body that is still to come so much time. The server waits for it before it answers, also when nobody reads it.
func (c *call) bound(d time.Duration) {
	if c.r.ContentLength != 0 && !c.whole {
		c.conn.SetReadDeadline(time.Now().Add(d)) // A connection that has none is in memory.
	}
}

// bodiless refuses the body of a GET: nobody reads it, and a stream would wait for it.
func (c *call) bodiless() error {
	if c.r.ContentLength != 0 && (c.r.Method == http.MethodGet || c.r.Method == http.MethodHead) {
		return bodyInvalid("", "a GET has no body: say in the address what is wanted")
	}
	return nil
}

// json answers with a whole body.
func (c *call) json(status int, body []byte) error {
	c.send(status, "application/json", body)
	return nil
}

// send answers. What goes wrong on the way to somebody who has left is of no interest to anybody.
func (c *call) send(status int, kind string, body []byte) {
	c.begin(status, kind)
	c.write(append(body, '\n'))
}

// begin sends the status.
func (c *call) begin(status int, kind string) {
	h := c.w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	c.begun, c.status = true, status
	c.w.WriteHeader(status)
}

// empty sends a status that has no body.
func (c *call) empty(status int) {
	c.begun, c.status = true, status
	c.w.WriteHeader(status)
}

// pieceBytes is how much is written at once: 64 KiB. Each piece has its own time, so that who takes little gets what is large as well, if slowly.
const pieceBytes = 64 << 10

// write sends a part of a body. Who takes nothing of it for WriteTimeout is given up, and so is who takes less than a piece in that.
func (c *call) write(part []byte) error {
	return inPieces(part, func(piece []byte) error {
		c.conn.SetWriteDeadline(time.Now().Add(c.api.o.WriteTimeout)) // A writer that has none is in memory, and takes all.
		_, err := c.w.Write(piece)
		return err
	})
}

// inPieces writes bytes a piece at a time, and nothing is one as well.
func inPieces(bytes []byte, write func(piece []byte) error) error {
	for len(bytes) > pieceBytes {
		if err := write(bytes[:pieceBytes]); err != nil {
			return err
		}
		bytes = bytes[pieceBytes:]
	}
	return write(bytes)
}
