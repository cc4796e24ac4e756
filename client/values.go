package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/foldhost/foldhost/event"
)

// Block is how values come: all of them as of one seq.
type Block struct {
	// Epoch is "<storeId>.<boot>", Gen counts changes of registrations in it.
	Epoch string `json:"epoch"`
	Gen   int64  `json:"gen"`
	// AsOfSeq is the last event that the values contain, −1 for the empty log.
	AsOfSeq int64 `json:"asOfSeq"`
	// Historical: the values are those of another time than now.
	Historical bool `json:"historical,omitempty"`
	// Values are whole values by key, byte for byte as the unit gave them, and Revs the revision of each.
	Values map[string]json.RawMessage `json:"values"`
	Revs   map[string]int64           `json:"revs"`
	// Unavailable are the keys that have no value as of AsOfSeq, and why.
	Unavailable map[string]Unavailable `json:"unavailable,omitempty"`
}

// Unavailable is why a key has no value.
type Unavailable struct {
	// Code is "starting", "restarting", "parked", "faulted" or "behind".
	Code string `json:"code"`
	// Seq is what the unit reached, −1 for nothing.
	Seq     int64  `json:"seq"`
	Message string `json:"message"`
}

// ValuesQuery says which values to read.
type ValuesQuery struct {
	// Keys are those to give: nil is all, empty is none.
	Keys []string
	// At is the event right after which the values are to be, −1 for the empty log; nil is now. One that the log does not have is not-reached at once.
	At *int64
	// MinSeq is an event that the log must have; until then the server waits for as long as Wait says, a minute at most, and then answers not-reached. 0 for Wait leaves it to
	// the server, which takes 2 s.
	MinSeq *int64
	Wait   time.Duration
}

// Projections reads values.
func (c *Client) Projections(ctx context.Context, id string, q ValuesQuery) (b Block, err error) {
	r, err := onSession(http.MethodGet, "read values of session %q", id, "/projections")
	if err != nil {
		return b, err
	}
	r.list("keys", q.Keys)
	if q.At != nil {
		r.number("at", *q.At)
	}
	if q.MinSeq != nil {
		r.number("minSeq", *q.MinSeq)
	}
	if q.Wait != 0 {
		r.set("wait", q.Wait.String())
	}
	_, err = c.json(ctx, r, &b)
	return b, err
}

// Surface is what a model would see.
type Surface struct {
	// Nodes are the seqs of the events, in order.
	Nodes []int64 `json:"nodes"`
	// ReplaceGeneration counts replacements.
	ReplaceGeneration int64 `json:"replaceGeneration"`
	AsOfSeq           int64 `json:"asOfSeq"`
}

// Surface reads the surface of a session.
func (c *Client) Surface(ctx context.Context, id string) (s Surface, err error) {
	r, err := onSession(http.MethodGet, "read the surface of session %q", id, "/surface")
	if err != nil {
		return s, err
	}
	_, err = c.json(ctx, r, &s)
	return s, err
}

// Messages are those of the surface, byte for byte as they were logged.
type Messages struct {
	Messages []json.RawMessage `json:"messages"`
	AsOfSeq  int64             `json:"asOfSeq"`
}

// Messages reads the messages of a session, all at once.
func (c *Client) Messages(ctx context.Context, id string) (m Messages, err error) {
	r, err := onSession(http.MethodGet, "read the messages of session %q", id, "/messages")
	if err != nil {
		return m, err
	}
	_, err = c.json(ctx, r, &m)
	return m, err
}

// Retry has units that failed in a session tried again: those of keys, nil for all. It gives the values then.
func (c *Client) Retry(ctx context.Context, id string, keys []string) (b Block, err error) {
	r, err := onSession(http.MethodPost, "retry units of session %q", id, "/retry")
	if err != nil {
		return b, err
	}
	if keys != nil {
		list, err := event.Encode(keys)
		if err != nil {
			return b, err
		}
		var f fields
		f.raw("keys", list)
		r.body = f.body()
	}
	_, err = c.json(ctx, r, &b)
	return b, err
}

// Verification says whether what is served of a session is what a fold from zero gives.
type Verification struct {
	// OK: all keys could be compared, and nothing differs.
	OK          bool                   `json:"ok"`
	Seq         int64                  `json:"seq"`
	Incarnation string                 `json:"incarnation"`
	Keys        []string               `json:"keys"`
	Differences []Difference           `json:"differences"`
	Unavailable map[string]Unavailable `json:"unavailable,omitempty"`
}

// Difference is something that a fold from zero does not give.
type Difference struct {
	Key string `json:"key"`
	// Seq is what both are as of. What is "value", "row value" or "row state".
	Seq  int64  `json:"seq"`
	What string `json:"what"`
	// Served and Folded are the two, nil where one has none.
	Served json.RawMessage `json:"served,omitempty"`
	Folded json.RawMessage `json:"folded,omitempty"`
}

// Verify compares what is served of a session with a fold from zero, which takes as long as the log is. It changes nothing.
func (c *Client) Verify(ctx context.Context, id string) (v Verification, err error) {
	r, err := onSession(http.MethodPost, "verify session %q", id, "/verify")
	if err != nil {
		return v, err
	}
	r.safe = true
	_, err = c.json(ctx, r, &v)
	return v, err
}
