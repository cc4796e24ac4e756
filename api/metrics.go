package api

import (
	"net/http"
)

// metrics answers with what Options.Metrics gives.
func (c *call) metrics() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	h := c.api.o.Metrics
	if h == nil {
		return &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: "this server has no metrics: it is part of another program, which may have its own place for them"}
	}
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	h.ServeHTTP(passed{c}, c.r)
	return nil
}

// passed is the answer of a call as a handler of somebody else's writes it, with the deadlines of ours.
type passed struct{ *call }

func (p passed) Header() http.Header { return p.w.Header() }

func (p passed) WriteHeader(status int) {
	if !p.begun {
		p.begun, p.status = true, status
		p.w.WriteHeader(status)
	}
}

func (p passed) Write(part []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if err := p.write(part); err != nil {
		return 0, err
	}
	return len(part), nil
}
