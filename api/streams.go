package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"sort"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
)

// maxStreamSessions is how many sessions one stream follows: more than fit on a screen, and few enough that one stream holds little, a page of each, which are 5 MiB for all of them where events are
// not larger, and reads little at each wake-up.
const maxStreamSessions = 20

// row is how the events of many sessions are put in one row: by their commit positions.
type row struct {
	storeID string
	// at is the position up to which everything was sent.
	at int64
	// whole is the least position that says of every session where it is. Below it some sessions would have begun elsewhere, so what is sent there has no id.
	whole int64
}

func (r *row) mark(at int64) mark {
	if at < r.whole {
		return mark{}
	}
	return mark{r.storeID, at}
}

// wish is what a stream of many sessions is asked for.
type wish struct {
	sessions    []wished
	types, keys []string
	// from is where all begin, a commit position; resumed says that it came as Last-Event-ID, and so from this very stream.
	from    position
	resumed bool
}

type wished struct {
	id string
	// from is a position in its own log.
	from position
}

// streamSessions follows the sessions of the address.
func (c *call) streamSessions() error {
	q := c.query("session", "after", "events", "keys")
	w := wish{types: eventTypes(q.list("events")), keys: q.list("keys")}
	for i, id := range q.values["session"] {
		if i == maxStreamSessions {
			q.keep(tooMany("the parameter session", "", maxStreamSessions, "follow the others by another stream"))
			break
		}
		w.sessions = append(w.sessions, wished{id: id})
	}
	var err error
	if w.from, err = everywhere(q.text("after"), q.has("after"), ""); err != nil && q.err == nil {
		q.err = err
	}
	if q.err != nil {
		return q.err
	}
	return c.stream(&w)
}

// streamListed follows the sessions of the body, each from where it says.
func (c *call) streamListed() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(false, "sessions", "events", "keys", "after")
	if err != nil {
		return err
	}
	var w wish
	if w.types, err = o.names("events"); err != nil {
		return err
	}
	w.types = eventTypes(w.types)
	if w.keys, err = o.names("keys"); err != nil {
		return err
	}
	if o.has("after") {
		if w.from, err = everywhere(afterText(o.fields["after"]), true, "$.after"); err != nil {
			return err
		}
	}
	if err := o.each("sessions", func(i int, raw json.RawMessage) error {
		if i == maxStreamSessions {
			return tooMany("sessions", "$.sessions", maxStreamSessions, "follow the others by another stream")
		}
		one, err := wishOf(raw, fmt.Sprintf("$.sessions[%d]", i))
		w.sessions = append(w.sessions, one)
		return err
	}); err != nil {
		return err
	}
	return c.stream(&w)
}

// wishOf reads {id, after?}.
func wishOf(raw json.RawMessage, path string) (w wished, err error) {
	if !event.Members(raw, func(key string, value json.RawMessage) bool {
		switch key {
		case "id":
			w.id, _ = event.String(value)
		case "after":
			var ok bool
			if w.from, ok = parsePosition(afterText(value)); !ok {
				err = bodyInvalid(path+".after", `after must be "<incarnation>:<seq>", or the seq of the last event that is known, -1 for none`)
			}
		default:
			err = unknownField(path+event.PathKey(key), []string{"id", "after"})
		}
		return err == nil
	}) {
		err = bodyInvalid(path, "a session must be an object with its id")
	}
	return w, err
}

// afterText reads a position, which may be a number.
func afterText(raw json.RawMessage) string {
	if text, ok := event.String(raw); ok {
		return text
	}
	if n, ok := event.Integer(raw); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// everywhere reads a position of a stream of many sessions. A bare seq would be one of which of them?
func everywhere(text string, given bool, path string) (p position, err error) {
	if !given {
		return p, nil
	}
	p, ok := parsePosition(text)
	if !ok || p.incarnation == "" && p.seq != -1 {
		return p, bodyInvalid(path, "after must be the id of a frame of such a stream, or -1 for the start of all sessions")
	}
	return p, nil
}

// check refuses what is no set of sessions.
func (w *wish) check() error {
	if len(w.sessions) == 0 {
		return bodyInvalid("", fmt.Sprintf("no session is named: a stream follows from 1 to %d", maxStreamSessions))
	}
	seen := map[string]bool{}
	for _, s := range w.sessions {
		if s.id == "" {
			return bodyInvalid("", "a session has no id")
		}
		if seen[s.id] {
			return bodyInvalid("", fmt.Sprintf("the session %q is named twice", s.id))
		}
		seen[s.id] = true
	}
	return nil
}

// stream follows many sessions.
func (c *call) stream(w *wish) error {
	if err := w.check(); err != nil {
		return err
	}
	if c.api.stopping() {
		return stopping()
	}
	if p := c.sentPosition(); p.given {
		w.from, w.resumed = p, true
	}
	storeID, end, err := c.api.sessions.End(c.r.Context())
	if err != nil {
		return err
	}
	reset := w.from.lost(storeID, end)
	if reset == resetIncarnation {
		reset = resetStore
	}
	st := &stream{call: c, types: w.types, bell: newBell(), many: &row{storeID: storeID, at: w.from.seq, whole: -1}}
	defer st.leave()
	var first []byte
	var damage error
	for _, one := range w.sessions {
		before := len(st.parts)
		p, info, err := st.join(one.id, w.keys)
		whole := int64(math.MaxInt64)
		if err == nil {
			// What this stream has said already it does not say again, so a position of its own counts no more than where the session goes on.
			if p.reset = reset; reset == "" && !w.resumed {
				p.reset = one.from.lost(info.Incarnation, p.last)
			}
			if p.reset == "" {
				whole, err = c.start(p, &info, w, one.from)
			}
		}
		switch absent := (frames{session: one.id}); {
		case err == nil:
			st.many.whole = max(st.many.whole, whole)
			continue
		case is[*eventlog.NotFoundError](err):
			first = absent.unknown(first)
		case is[*eventlog.CorruptError](err):
			c.damaged(one.id, err)
			first, damage = absent.reset(first, resetDamaged), err
		default:
			return err
		}
		if p != nil {
			p.leave()
		}
		st.parts = st.parts[:before]
	}
	if len(st.parts) == 0 && damage != nil {
		return damage
	}
	return st.serve(first)
}

// start says where a session begins, and gives the least commit position that says the same.
func (c *call) start(p *part, info *eventlog.Info, w *wish, own position) (whole int64, err error) {
	p.pos = -1
	if w.from.given {
		whole = w.from.seq
		if p.pos, err = c.lastUpTo(p.session, info, w.from.seq); err != nil {
			return whole, err
		}
	}
	switch {
	case own.given && own.lost(info.Incarnation, p.last) == "":
		if own.seq <= p.pos {
			return whole, nil
		}
		p.pos = own.seq
	case w.from.given:
		return whole, nil
	default:
		p.pos = p.last
	}
	at, err := c.place(p.session, p.pos)
	return max(whole, at), err
}

// lastUpTo is the last event of a session that was committed at a position or before, -1 for none.
func (c *call) lastUpTo(s *session.Session, info *eventlog.Info, position int64) (seq int64, err error) {
	if info.Position <= position {
		return info.Seq - 1, nil
	}
	n := sort.Search(int(info.Seq), func(seq int) bool {
		at, failed := c.place(s, int64(seq))
		if failed != nil {
			err = failed
		}
		return at > position
	})
	return int64(n) - 1, err
}

// place is the commit position of an event, -1 for the one before the first.
func (c *call) place(s *session.Session, seq int64) (int64, error) {
	if seq < 0 {
		return -1, nil
	}
	page, err := s.Page(c.r.Context(), eventlog.Query{From: seq, To: seq + 1, Positions: true})
	if err == nil && len(page.Positions) == 0 {
		err = &Problem{Status: http.StatusInternalServerError, Code: CodeInternal, Detail: fmt.Sprintf("event %d of session %q cannot be read", seq, s.ID())}
	}
	if err != nil {
		return 0, err
	}
	return page.Positions[0], nil
}
