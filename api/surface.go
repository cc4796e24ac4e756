package api

import (
	"encoding/json"
	"net/http"
	"strconv"
)

func (c *call) readSurface() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	state, err := s.Surface().State(c.r.Context())
	if err != nil {
		return err
	}
	out := append(make([]byte, 0, 64+8*len(state.Nodes)), `{"nodes":[`...)
	for i, seq := range state.Nodes {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, seq, 10)
	}
	out = strconv.AppendInt(append(out, `],"replaceGeneration":`...), state.ReplaceGeneration, 10)
	out = strconv.AppendInt(append(out, `,"asOfSeq":`...), state.AsOfSeq, 10)
	return c.json(http.StatusOK, append(out, '}'))
}

func (c *call) readMessages() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	// The answer begins with the first of them, so that what fails before is a problem.
	separator := `{"messages":[`
	next := func() {
		if !c.begun {
			c.begin(http.StatusOK, "application/json")
		}
		c.write([]byte(separator))
		separator = ","
	}
	asOf, err := s.EachMessage(c.r.Context(), func(m json.RawMessage) error {
		next()
		return c.write(m)
	})
	if err != nil {
		return err
	}
	if !c.begun {
		next()
	}
	return c.write(append(strconv.AppendInt([]byte(`],"asOfSeq":`), asOf, 10), "}\n"...))
}
