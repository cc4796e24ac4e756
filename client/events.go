package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/foldhost/foldhost/event"
)

// maxEvent is the largest event that is read: whatever the server took. What is held at once is bounded by Options.MaxFrameBytes.
const maxEvent = 1 << 30

// EventsQuery says which events to read.
type EventsQuery struct {
	// From is the first seq.
	From int64
	// Limit is how many to give at most; 0 is all of Events, and 1,000 of EventPage.
	Limit int
	// Types are those to give; nil is all.
	Types []string
}

// EventPage is a part of a log.
type EventPage struct {
	Events []event.Event
	// Seq is the length of the log.
	Seq int64
}

// EventPage reads some events, 1,000 at most, all of which are held in memory.
func (c *Client) EventPage(ctx context.Context, id string, q EventsQuery) (page EventPage, err error) {
	r, err := eventsRequest(id, q)
	if err != nil {
		return page, err
	}
	if q.Limit != 0 {
		r.number("limit", int64(q.Limit))
	}
	var in struct {
		Events []json.RawMessage `json:"events"`
		Seq    int64             `json:"seq"`
	}
	if _, err := c.json(ctx, r, &in); err != nil {
		return page, err
	}
	page.Seq = in.Seq
	page.Events, err = readEvents(r.doing, in.Events)
	return page, err
}

// HistoryQuery says which page of history to read.
type HistoryQuery struct {
	// BeforeSeq is the seq of the first event of the page after it; nil is the last page, which comes with values.
	BeforeSeq *int64
	// MaxMessages is how many messages it has at most; 0 leaves it to the server, which takes 50.
	MaxMessages int
	// Keys are those of the values; nil is all, empty is none.
	Keys []string
}

// HistoryPage is a part of a log that begins with what its oldest message stands on.
type HistoryPage struct {
	Events []event.Event
	// HasMore says that there is something before it.
	HasMore bool
	// Projections are those of the last page, which ends exactly at their seq.
	Projections *Block
}

// History reads a log backwards, page by page, all of which is held in memory.
func (c *Client) History(ctx context.Context, id string, q HistoryQuery) (page HistoryPage, err error) {
	r, err := onSession(http.MethodGet, "read the history of session %q", id, "/history")
	if err != nil {
		return page, err
	}
	if q.BeforeSeq != nil {
		r.number("beforeSeq", *q.BeforeSeq)
	}
	if q.MaxMessages != 0 {
		r.number("maxMessages", int64(q.MaxMessages))
	}
	r.list("keys", q.Keys)
	var in struct {
		Events      []json.RawMessage `json:"events"`
		HasMore     bool              `json:"hasMore"`
		Projections *Block            `json:"projections"`
	}
	if _, err := c.json(ctx, r, &in); err != nil {
		return page, err
	}
	page.HasMore, page.Projections = in.HasMore, in.Projections
	page.Events, err = readEvents(r.doing, in.Events)
	return page, err
}

// Events gives events one after the other, up to the end that the log has when the reading begins, or later. It holds one at a time. A connection that breaks is made again, and
// the reading goes on behind the last event; if the session was deleted meanwhile, and made again, that is the end, with a *NetworkError. It ends at the first error.
func (c *Client) Events(ctx context.Context, id string, q EventsQuery) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		err := c.eachEvent(ctx, id, q, func(ev event.Event) bool { return yield(ev, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(event.Event{}, err)
		}
	}
}

// errEnough: whoever reads has read enough.
var errEnough = errors.New("enough")

func (c *Client) eachEvent(ctx context.Context, id string, q EventsQuery, yield func(event.Event) bool) error {
	// Which life it is, so that a reading that goes on does so in the same one.
	session, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	given := 0
	for failures := 1; ; failures++ {
		r, err := eventsRequest(id, q)
		if err != nil {
			return err
		}
		r.head("Accept", "application/x-ndjson")
		if left := q.Limit - given; q.Limit != 0 && left <= 1000 {
			r.number("limit", int64(left))
		}
		res, err := c.open(ctx, r)
		if err != nil {
			return err
		}
		before := given
		err = c.eachLine(r.doing, res.Body, func(line []byte) error {
			ev, err := readEvent(line)
			if err != nil {
				return &AnswerError{Doing: r.doing, Err: err}
			}
			q.From, given = ev.Seq+1, given+1
			if !yield(ev) || given == q.Limit {
				return errEnough
			}
			return nil
		})
		if given > before {
			failures = 1
		}
		if _, broken := errors.AsType[*NetworkError](err); !broken || failures >= c.o.Tries || pause(ctx, waitAfter(err, failures)) != nil {
			return err
		}
		now, again := c.Get(ctx, id)
		if again != nil {
			return again
		}
		if now.Incarnation != session.Incarnation {
			return &NetworkError{Doing: r.doing, Err: errors.New("the reading broke off, and the session is another one now")}
		}
	}
}

func eventsRequest(id string, q EventsQuery) (*request, error) {
	r, err := onSession(http.MethodGet, "read events of session %q", id, "/events")
	if err != nil {
		return nil, err
	}
	if q.From != 0 {
		r.number("from", q.From)
	}
	r.list("types", q.Types)
	return r, nil
}

// readEvents reads the events of an answer.
func readEvents(doing string, list []json.RawMessage) (events []event.Event, err error) {
	for _, raw := range list {
		ev, err := readEvent(raw)
		if err != nil {
			return nil, &AnswerError{Doing: doing, Err: err}
		}
		events = append(events, ev)
	}
	return events, nil
}

// readEvent reads an event of an answer.
func readEvent(raw []byte) (event.Event, error) {
	d, err := event.DecodeDraft(raw, maxEvent)
	if err == nil && d.OpFault+d.SourcesFault != "" {
		err = errors.New(d.OpFault + d.SourcesFault)
	}
	return d.Event, err
}

// eachLine gives the lines of a body, which it closes, until there is an error. A body that is cut off gives a *NetworkError, and its last line nobody.
func (c *Client) eachLine(doing string, body io.ReadCloser, line func([]byte) error) error {
	defer body.Close()
	lines := lineReader{r: bufio.NewReaderSize(body, readBuffer), max: c.o.MaxFrameBytes}
	for {
		text, err := lines.next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errTooLong):
			return &AnswerError{Doing: doing, Err: err}
		case err != nil:
			return &NetworkError{Doing: doing, Err: fmt.Errorf("reading the answer: %w", err)}
		}
		if err := line(text); err != nil {
			return err
		}
	}
}
