package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// Item is an event to be appended. The log gives it its seq.
type Item struct {
	Type string
	// Data: a json.RawMessage or []byte is JSON text, which is kept byte for byte, white space outside strings aside. Everything else is marshalled as
	// event.Encode does.
	Data any
	// Time is in milliseconds since the epoch; nil is now, by the clock of the server.
	Time *int64
	// Op is what it does to the surface, and Sources what it was made from; nil is absent.
	Op      event.Op
	Sources []int64
	// Ignorable says that a reader that does not know Type may skip it.
	Ignorable bool

	raw json.RawMessage
}

// RawItem is an event that is JSON already, such as {"type":"note","data":{}}. The server says what is wrong with it.
func RawItem(text []byte) Item { return Item{raw: text} }

// appendJSON appends the item as a request has it.
func (it *Item) appendJSON(dst []byte) ([]byte, error) {
	if it.raw != nil {
		if !json.Valid(it.raw) {
			return nil, fmt.Errorf("an event is not JSON: %.100q", it.raw)
		}
		return append(dst, it.raw...), nil
	}
	data, err := event.Encode(it.Data)
	if err != nil {
		return nil, err
	}
	dst = event.AppendString(append(dst, `{"type":`...), it.Type)
	if it.Time != nil {
		dst = strconv.AppendInt(append(dst, `,"time":`...), *it.Time, 10)
	}
	// Behind seq and time, which are the log's to give, an event stands as it does in a log.
	whole := (&event.Event{Data: data, Op: it.Op, Sources: it.Sources, Ignorable: it.Ignorable}).AppendJSON(nil)
	return append(dst, whole[len(`{"type":"","seq":0,"time":0`):]...), nil
}

// appendItems appends a list. The error names the place in it.
func appendItems(dst []byte, items []Item) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = items[i].appendJSON(dst); err != nil {
			return nil, &event.IndexError{Index: int64(i), Err: err}
		}
	}
	return append(dst, ']'), nil
}

// Once makes a request that writes safe to repeat, for as long as the server remembers keys: the same request with the same key is done once, and gives the first answer.
type Once struct {
	// Key is 1 to 255 visible ASCII characters. Empty makes up a new one for each call, so that what the client sends again after a break is not done twice. NoKey sends none, and
	// then nothing again.
	Key   string
	NoKey bool
}

// AppendOptions say how to append. The zero AppendOptions are right for most.
type AppendOptions struct {
	// ExpectedSeq is the seq that the first event is to get: the append is refused, with a seq-conflict, if the log is not as long as that. nil takes any.
	ExpectedSeq *int64
	Once
	// Projections asks for values that contain what was appended, of Keys: nil is all.
	Projections bool
	Keys        []string
}

// Appended says where events went.
type Appended struct {
	// Seq is the length of the log behind them.
	Seq    int64   `json:"seq"`
	Events []Place `json:"events"`
	// Projections are there when they were asked for, and could be given.
	Projections *Block `json:"projections,omitempty"`
}

// Place is where an event stands in its log, and since when.
type Place struct {
	Seq  int64 `json:"seq"`
	Time int64 `json:"time"`
}

// Append appends events, all or none. Errors are *Error, of which Index names the event; *NetworkError, after which it is not known whether they were appended: call it
// again with the same Key; and *event.IndexError for an item that is not JSON, before anything is sent.
func (c *Client) Append(ctx context.Context, id string, items []Item, o AppendOptions) (a Appended, err error) {
	r, err := onSession(http.MethodPost, "append to session %q", id, "/events")
	if err != nil {
		return a, err
	}
	list, err := appendItems(nil, items)
	if err != nil {
		return a, fmt.Errorf("%s: %w", r.doing, err)
	}
	var f fields
	f.raw("events", list)
	f.number("expectedSeq", o.ExpectedSeq)
	r.body = f.body()
	r.values(o.Projections, o.Keys)
	r.once(o.Once)
	_, err = c.json(ctx, r, &a)
	return a, err
}

// Compaction puts one message in the place of the nodes of the surface from the seq Start to the seq End. Message is as the Data of an Item.
type Compaction struct {
	Start, End int64
	Message    any
	Once
}

// Compact appends a compaction.
func (c *Client) Compact(ctx context.Context, id string, with Compaction) (a Appended, err error) {
	r, err := onSession(http.MethodPost, "compact session %q", id, "/compact")
	if err != nil {
		return a, err
	}
	text, err := event.Encode(with.Message)
	if err != nil {
		return a, fmt.Errorf("%s: %w", r.doing, err)
	}
	var f fields
	f.number("start", &with.Start)
	f.number("end", &with.End)
	f.raw("message", text)
	r.body = f.body()
	r.once(with.Once)
	_, err = c.json(ctx, r, &a)
	return a, err
}

// Recover closes a turn whose program is gone. There are no events where there is nothing to close.
func (c *Client) Recover(ctx context.Context, id string, o Once) (a Appended, err error) {
	r, err := onSession(http.MethodPost, "recover session %q", id, "/recover")
	if err != nil {
		return a, err
	}
	r.once(o)
	_, err = c.json(ctx, r, &a)
	return a, err
}

// once sends an idempotency key, unless none is wanted.
func (r *request) once(o Once) {
	if o.NoKey {
		return
	}
	r.head("Idempotency-Key", cmp.Or(o.Key, rand.Text()))
	r.safe = true
}

// values asks for values with an append.
func (r *request) values(wanted bool, keys []string) {
	switch {
	case !wanted:
	case keys == nil:
		r.set("projections", "*")
	default:
		r.list("projections", keys)
	}
}
