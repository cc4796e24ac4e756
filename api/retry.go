package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
)

// retrySession tries faulted keys again.
func (c *call) retrySession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(true, "keys")
	if err != nil {
		return err
	}
	keys, err := o.names("keys")
	if err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	block, err := c.api.host.Retry(c.r.Context(), s, narrow(keys)...)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, block.AppendJSON(nil))
}

// verifySession compares what is served with a fold from zero.
func (c *call) verifySession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	if _, err := c.object(true); err != nil {
		return err
	}
	report, err := c.api.host.VerifyValues(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, appendVerified(nil, &report))
}

func appendVerified(dst []byte, r *checkpoint.Report) []byte {
	dst = strconv.AppendBool(append(dst, `{"ok":`...), len(r.Differences) == 0 && len(r.Unavailable) == 0)
	dst = strconv.AppendInt(append(dst, `,"seq":`...), r.Info.Seq, 10)
	dst = event.AppendString(append(dst, `,"incarnation":`...), r.Info.Incarnation)
	dst = append(dst, `,"keys":[`...)
	for i, key := range r.Keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, key)
	}
	dst = append(dst, `],"differences":[`...)
	for i := range r.Differences {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendDifference(dst, &r.Differences[i])
	}
	dst = append(dst, ']')
	if len(r.Unavailable) > 0 {
		var keys []string
		for key := range r.Unavailable {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		dst = append(dst, `,"unavailable":{`...)
		for i, key := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			u := r.Unavailable[key]
			dst = u.AppendJSON(append(event.AppendString(dst, key), ':'))
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendDifference(dst []byte, d *checkpoint.Difference) []byte {
	dst = event.AppendString(append(dst, `{"key":`...), d.Key)
	dst = strconv.AppendInt(append(dst, `,"seq":`...), d.Seq, 10)
	dst = event.AppendString(append(dst, `,"what":`...), d.What)
	member := func(name string, value json.RawMessage) {
		if value != nil {
			dst = append(append(append(append(dst, `,"`...), name...), `":`...), value...)
		}
	}
	member("served", d.Served)
	member("folded", d.Folded)
	return append(dst, '}')
}
