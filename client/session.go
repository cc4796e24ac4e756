package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// Session is what there is to know about one without reading its log.
type Session struct {
	Header event.Header
	// Seq is the length of the log, which is the seq that the next event gets. FirstLiveSeq is the first that is not of the seed.
	Seq, FirstLiveSeq int64
	// Incarnation names this life of the id: a session that is deleted and made again has another.
	Incarnation string
	// Live says that the server holds it open; reading makes none live.
	Live bool
	// UpdatedAt is when the last commit was, in milliseconds since the epoch.
	UpdatedAt int64
	// Projections are values, where a list has them.
	Projections *Block
}

// MarshalJSON gives the session as servers do.
func (s Session) MarshalJSON() ([]byte, error) {
	dst := s.Header.AppendFields([]byte(`{"header":`))
	dst = strconv.AppendInt(append(dst, `,"seq":`...), s.Seq, 10)
	dst = strconv.AppendInt(append(dst, `,"firstLiveSeq":`...), s.FirstLiveSeq, 10)
	dst = event.AppendString(append(dst, `,"incarnation":`...), s.Incarnation)
	dst = strconv.AppendBool(append(dst, `,"live":`...), s.Live)
	dst = strconv.AppendInt(append(dst, `,"updatedAt":`...), s.UpdatedAt, 10)
	if s.Projections != nil {
		block, err := event.Encode(s.Projections)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"projections":`...), block...)
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads what servers give.
func (s *Session) UnmarshalJSON(text []byte) error {
	var in struct {
		Header       json.RawMessage `json:"header"`
		Seq          int64           `json:"seq"`
		FirstLiveSeq int64           `json:"firstLiveSeq"`
		Incarnation  string          `json:"incarnation"`
		Live         bool            `json:"live"`
		UpdatedAt    int64           `json:"updatedAt"`
		Projections  *Block          `json:"projections"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	if len(in.Header) < 3 || in.Header[0] != '{' {
		return errors.New("a session without a header")
	}
	// The first line of a log, which says what it is; here that is known.
	header, err := event.DecodeHeader(append([]byte(`{"type":"session",`), in.Header[1:]...))
	if err != nil {
		return fmt.Errorf("the header of a session: %w", err)
	}
	*s = Session{header, in.Seq, in.FirstLiveSeq, in.Incarnation, in.Live, in.UpdatedAt, in.Projections}
	return nil
}

// NewSession is what a session begins as. The zero value is an empty one, with an id that the server makes up.
type NewSession struct {
	ID, CWD string
	// Preset is the set of plugins that serves it; empty is the default set, and one that there is not is a preset-unknown.
	Preset string
	// CreatedAt is in milliseconds since the epoch; nil is now.
	CreatedAt *int64
	// Seed are events that it begins with; what follows them is the session's own. nil is none.
	Seed []Item
	Once
}

// Create makes a session. created is false when one of the id was there already, to which all that was given is equal; one that differs is a session-conflict.
func (c *Client) Create(ctx context.Context, n NewSession) (s Session, created bool, err error) {
	doing := "create a session"
	if n.ID != "" {
		doing = fmt.Sprintf("create session %q", n.ID)
	}
	var f fields
	f.text("id", n.ID)
	f.text("cwd", n.CWD)
	f.text("preset", n.Preset)
	f.number("createdAt", n.CreatedAt)
	if n.Seed != nil {
		list, err := appendItems(nil, n.Seed)
		if err != nil {
			return s, false, fmt.Errorf("%s: %w", doing, err)
		}
		f.raw("events", list)
	}
	r := post(doing, "/v1/sessions", f.body())
	r.once(n.Once)
	status, err := c.json(ctx, r, &s)
	return s, status == http.StatusCreated, err
}

// Get gives a session without touching it.
func (c *Client) Get(ctx context.Context, id string) (s Session, err error) {
	r, err := onSession(http.MethodGet, "read session %q", id, "")
	if err != nil {
		return s, err
	}
	_, err = c.json(ctx, r, &s)
	return s, err
}

// ListQuery narrows a list.
type ListQuery struct {
	// Limit is how many sessions a page has; 0 leaves it to the server, which gives 50, and it gives at most 1,000.
	Limit int
	// Cursor is that of the page before.
	Cursor string
	// Keys are those whose values to give, as far as they are known without folding. nil is all, empty is none.
	Keys []string
}

// ListPage is a part of a list. Cursor is empty on the last.
type ListPage struct {
	Sessions []Session `json:"sessions"`
	Cursor   string    `json:"cursor,omitempty"`
}

// List gives a page of sessions, latest commit first.
func (c *Client) List(ctx context.Context, q ListQuery) (page ListPage, err error) {
	r := get("list sessions", "/v1/sessions")
	if q.Limit != 0 {
		r.number("limit", int64(q.Limit))
	}
	if q.Cursor != "" {
		r.set("cursor", q.Cursor)
	}
	r.list("keys", q.Keys)
	_, err = c.json(ctx, r, &page)
	return page, err
}

// Sessions gives the sessions of all pages from q on. It ends at the first error.
func (c *Client) Sessions(ctx context.Context, q ListQuery) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for {
			page, err := c.List(ctx, q)
			if err != nil {
				yield(Session{}, err)
				return
			}
			for _, s := range page.Sessions {
				if !yield(s, nil) {
					return
				}
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				return
			}
		}
	}
}

// Delete deletes a session for good. It is not repeated by itself: a second one would find nothing, or a successor.
func (c *Client) Delete(ctx context.Context, id string) error {
	r, err := onSession(http.MethodDelete, "delete session %q", id, "")
	if err != nil {
		return err
	}
	_, _, err = c.call(ctx, r)
	return err
}

// Detach makes a session cold, its values written. The next touch opens it again.
func (c *Client) Detach(ctx context.Context, id string) (s Session, err error) {
	r, err := onSession(http.MethodPost, "detach session %q", id, "/detach")
	if err != nil {
		return s, err
	}
	r.safe = true
	_, err = c.json(ctx, r, &s)
	return s, err
}

// Fork says how to make a child. The zero Fork is one of the whole log, with an id that the server makes up.
type Fork struct {
	ID string
	// AtSeq is an event of the last turn that goes into the child; nil is the last.
	AtSeq *int64
	Once
}

// Fork makes a child, which begins with the log up to the end of a turn.
func (c *Client) Fork(ctx context.Context, id string, f Fork) (child Session, err error) {
	r, err := onSession(http.MethodPost, "fork session %q", id, "/fork")
	if err != nil {
		return child, err
	}
	var body fields
	body.number("atSeq", f.AtSeq)
	body.text("id", f.ID)
	r.body = body.body()
	r.once(f.Once)
	_, err = c.json(ctx, r, &child)
	return child, err
}

// onSession is a request about a session; doing has a place for its id. A GET is safe.
func onSession(method, doing, id, below string) (*request, error) {
	doing = fmt.Sprintf(doing, id)
	path, err := sessionPath(doing, id, below)
	return &request{doing: doing, method: method, path: path, query: url.Values{}, safe: method == http.MethodGet}, err
}
