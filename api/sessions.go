package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// appendSession appends a session as it goes out, open at its end: fields may follow.
func appendSession(dst []byte, info *eventlog.Info, live bool) []byte {
	dst = info.Header.AppendFields(append(dst, `{"header":`...))
	dst = strconv.AppendInt(append(dst, `,"seq":`...), info.Seq, 10)
	dst = strconv.AppendInt(append(dst, `,"firstLiveSeq":`...), info.FirstLiveSeq, 10)
	dst = event.AppendString(append(dst, `,"incarnation":`...), info.Incarnation)
	dst = strconv.AppendBool(append(dst, `,"live":`...), live)
	return strconv.AppendInt(append(dst, `,"updatedAt":`...), info.UpdatedAt, 10)
}

// session answers with a session as it is now.
func (c *call) session(status int, s *session.Session) error {
	info, err := s.Info(c.r.Context())
	if err != nil {
		return err
	}
	return c.json(status, append(appendSession(nil, &info, s.Live()), '}'))
}

// find gives the session of the path without touching it.
func (c *call) find() (*session.Session, eventlog.Info, error) {
	return c.api.sessions.Find(c.r.Context(), c.r.PathValue("id"))
}

func (c *call) getSession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	s, info, err := c.find()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, append(appendSession(nil, &info, s.Live()), '}'))
}

func (c *call) deleteSession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	id := c.r.PathValue("id")
	// Who leaves in the middle has deleted it all the same.
	if err := c.api.sessions.Delete(context.WithoutCancel(c.r.Context()), id); err != nil {
		return err
	}
	c.api.hub.ring(id)
	c.empty(http.StatusNoContent)
	return nil
}

func (c *call) detachSession() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	if _, err := c.object(true); err != nil {
		return err
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	if err := s.Detach(c.r.Context()); err != nil {
		return err
	}
	return c.session(http.StatusOK, s)
}

// How many sessions a list gives: a screenful by itself, and at most as many as are useful to anybody at once.
const (
	listLimit    = 50
	listMaxLimit = 1000
)

func (c *call) listSessions() error {
	q := c.query("limit", "cursor", "keys")
	limit, keys := int(q.integer("limit", listLimit, 1, listMaxLimit)), q.list("keys")
	page := eventlog.ListPage{Cursor: q.text("cursor")}
	if q.err != nil {
		return q.err
	}
	var logs []eventlog.Info
	for ctx := c.r.Context(); len(logs) < limit; {
		var err error
		page, err = c.api.sessions.List(ctx, eventlog.ListQuery{Limit: limit - len(logs), Cursor: page.Cursor})
		if is[*eventlog.InvalidError](err) {
			return bodyInvalid("", err.Error())
		}
		if err != nil {
			return err
		}
		if logs = append(logs, page.Logs...); page.Cursor == "" {
			break
		}
	}
	values, err := c.listValues(logs, keys)
	if err != nil {
		return err
	}
	out := []byte(`{"sessions":[`)
	for i := range logs {
		if i > 0 {
			out = append(out, ',')
		}
		info := &logs[i]
		out = appendSession(out, info, c.api.sessions.Live(eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}))
		if block := values[eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}]; block != nil {
			out = block.AppendJSON(append(out, `,"projections":`...))
		}
		out = append(out, '}')
	}
	out = append(out, ']')
	if page.Cursor != "" {
		out = event.AppendString(append(out, `,"cursor":`...), page.Cursor)
	}
	return c.json(http.StatusOK, append(out, '}'))
}

// listValues gives the blocks of sessions by their lives, of those that have something to show: an id may be another session by now.
func (c *call) listValues(logs []eventlog.Info, keys []string) (map[eventlog.Life]*registry.Block, error) {
	if keys != nil && len(keys) == 0 || len(logs) == 0 {
		return nil, nil
	}
	ids := make([]string, len(logs))
	for i := range logs {
		ids[i] = logs[i].Header.ID
	}
	items, err := c.api.host.ListValues(c.r.Context(), ids, keys...)
	if err != nil {
		return nil, err
	}
	blocks := map[eventlog.Life]*registry.Block{}
	for i := range items {
		if b := &items[i].Block; len(b.Values) > 0 || len(b.Unavailable) > 0 {
			info := &items[i].Info
			blocks[eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}] = b
		}
	}
	return blocks, nil
}
