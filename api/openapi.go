package api

import (
	_ "embed"
	"net/http"
)

// description is the OpenAPI document of the calls. The tests of this package hold every exchange of theirs against it, both ways.
//
//go:embed openapi.json
var description []byte

// describe answers with the description of the calls.
func (c *call) describe() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	return c.json(http.StatusOK, description)
}
