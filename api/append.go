package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/session"
)

func (c *call) appendEvents() error {
	q := c.query("projections")
	keys := q.list("projections")
	if q.err != nil {
		return q.err
	}
	o, err := c.open(false)
	if err != nil {
		return err
	}
	batch, err := o.batch()
	if err != nil {
		return err
	}
	if batch.Once, err = c.once(o.raw); err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	commit, events, err := s.AppendBatch(c.r.Context(), batch)
	if err != nil {
		return inData(err)
	}
	return c.appended(s, commit.Seq, events, q.has("projections"), keys)
}

// batch reads one event or a list of them.
func (o *object) batch() (b session.Batch, err error) {
	if !o.has("events") {
		b.Items = make([]session.Item, 1)
		return b, readItem(&b.Items[0], o.raw, 0, "$")
	}
	if err := o.only("events", "expectedSeq"); err != nil {
		return b, err
	}
	if b.Items, err = o.items(); err != nil {
		return b, err
	}
	if len(b.Items) == 0 {
		return b, &Problem{Status: http.StatusUnprocessableEntity, Code: CodeEventInvalid, Index: new(int64(0)), Reason: string(event.EnvelopeInvalid), Path: "$.events",
			Detail: "events is empty: an append needs at least one"}
	}
	b.ExpectedSeq, err = o.seq("expectedSeq")
	return b, err
}

// inData makes the path of a fault that was found in the data of an event one of the event.
func inData(err error) error {
	if e, ok := errors.AsType[*event.Error](err); ok && e.Code == event.DataNotLossless && !strings.HasPrefix(e.Path, "$.data") {
		p := problemOf(err)
		p.Path = "$.data" + strings.TrimPrefix(e.Path, "$")
		return p
	}
	return err
}

// appended answers with where events went, and with values that contain them when they are asked for.
func (c *call) appended(s *session.Session, seq int64, events []event.Event, wanted bool, keys []string) error {
	out := strconv.AppendInt([]byte(`{"seq":`), seq, 10)
	out = append(out, `,"events":[`...)
	for i := range events {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"seq":`...), events[i].Seq, 10)
		out = strconv.AppendInt(append(out, `,"time":`...), events[i].Time, 10)
		out = append(out, '}')
	}
	out = append(out, ']')
	if wanted {
		block, err := c.api.host.Snapshot(c.r.Context(), s, narrow(keys)...)
		if err != nil {
			// The events are in the log, and whoever hears of an error appends them again.
			if c.r.Context().Err() == nil { // Else nobody is there to miss them.
				c.log().Warn("values could not be given with an append", "error", err)
			}
			return c.json(http.StatusOK, append(out, '}'))
		}
		out = block.AppendJSON(append(out, `,"projections":`...))
	}
	return c.json(http.StatusOK, append(out, '}'))
}

// narrow makes keys for the host of those that were asked for: there none are all, and no unit has an empty key.
func narrow(keys []string) []string {
	if keys != nil && len(keys) == 0 {
		return []string{""}
	}
	return keys
}
