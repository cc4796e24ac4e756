package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
)

func (c *call) readProjections() error {
	q := c.query("keys", "at", "minSeq", "wait")
	keys := q.list("keys")
	at := q.integer("at", 0, -1, event.MaxInteger)
	minSeq := q.integer("minSeq", -1, -1, event.MaxInteger)
	wait := q.duration("wait", defaultWait, maxWait)
	if q.err != nil {
		return q.err
	}
	block, err := c.values(minSeq, wait, func() (registry.Block, error) {
		if q.has("at") {
			return c.api.host.ValuesAt(c.r.Context(), c.r.PathValue("id"), at, narrow(keys)...)
		}
		return c.api.host.Values(c.r.Context(), c.r.PathValue("id"), narrow(keys)...)
	}, q.has("at"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, block.AppendJSON(nil))
}

// values reads values once the log has the event minSeq. Those of the present contain it then.
func (c *call) values(minSeq int64, wait time.Duration, read func() (registry.Block, error), past bool) (registry.Block, error) {
	ctx := c.r.Context()
	if minSeq < 0 {
		return read()
	}
	f := c.api.hub.follow(c.r.PathValue("id"), wants{}, newBell())
	defer f.leave()
	late, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		_, info, err := c.find()
		if err != nil {
			return registry.Block{}, err
		}
		if info.Seq > minSeq {
			block, err := read()
			// An event that was committed a moment ago may be about to be published; whoever publishes it rings.
			if err != nil || past || block.AsOfSeq >= minSeq {
				return block, err
			}
		}
		select {
		case <-f.bell:
		case <-c.api.stopped:
			return registry.Block{}, stopping()
		case <-late.Done():
			if ctx.Err() != nil {
				return registry.Block{}, ctx.Err()
			}
			return registry.Block{}, &Problem{Status: http.StatusGatewayTimeout, Code: CodeNotReached, Seq: &info.Seq,
				Detail: fmt.Sprintf("the log has %d events, and so no seq %d within %v: wait longer, or ask for less", info.Seq, minSeq, wait)}
		}
	}
}
