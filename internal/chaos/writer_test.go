//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/foldhost/foldhost/client"
)

// writer appends and calls tools through the proxy, each request with a key of its own, again and again until it has an answer. It belongs to one goroutine.
type writer struct {
	name   string
	random *rand.Rand
	client *client.Client
	// acks are the answers.
	acks []ack
	// tries counts the requests that had none.
	tries int
}

// ack is what a request was answered with.
type ack struct {
	session, key string
	first        int64
	n            int
}

// tryTime is how long the client has for an answer, with all that it sends again by itself. Only one that lost its connection without hearing of it takes that long.
const tryTime = 2 * time.Second

// write goes on until stop is closed. The request under way is brought to its end.
func (w *writer) write(ctx context.Context, sessions []string, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		id := sessions[w.random.IntN(len(sessions))]
		key := fmt.Sprintf("%s-%d", w.name, n)
		send := w.append
		if w.random.IntN(5) == 0 {
			send = w.tool
		}
		if err := w.until(ctx, func(ctx context.Context) error { return send(ctx, id, key) }); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
}

// until sends a request until it is answered.
func (w *writer) until(ctx context.Context, send func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, tryTime)
		err := send(one)
		cancel()
		if err == nil {
			return nil
		}
		w.tries++
		if _, lost := errors.AsType[*client.NetworkError](err); lost && ctx.Err() == nil {
			continue
		}
		// A plugin that was killed a moment ago, a server that ends.
		if e, ok := errors.AsType[*client.Error](err); ok && e.Status == 503 && ctx.Err() == nil {
			continue
		}
		return err
	}
}

func (w *writer) append(ctx context.Context, id, key string) error {
	// The same request has the same body, so what is in it comes from the key.
	random := rand.New(rand.NewPCG(digits(key), 7))
	items := make([]client.Item, 1+random.IntN(3))
	for i := range items {
		items[i] = client.Item{Type: "session/title", Data: map[string]string{"title": key + ", title"}}
		if random.IntN(3) > 0 {
			items[i] = client.Item{Type: "note", Data: map[string]string{"by": key, "text": strings.Repeat("x", random.IntN(2000))}}
		}
	}
	a, err := w.client.Append(ctx, id, items, client.AppendOptions{Once: client.Once{Key: key}, Projections: random.IntN(4) == 0})
	if err != nil {
		return err
	}
	if len(a.Events) != len(items) {
		return fmt.Errorf("%d events were appended and %d are answered", len(items), len(a.Events))
	}
	w.acks = append(w.acks, ack{id, key, a.Events[0].Seq, len(items)})
	return nil
}

func (w *writer) tool(ctx context.Context, id, key string) error {
	r, err := w.client.CallTool(ctx, id, "todo_write", map[string]any{"todos": []map[string]string{{"content": key, "status": "pending"}}}, client.Once{Key: key})
	if err != nil {
		return err
	}
	if r.IsError && len(r.Events) == 0 { // The other writers were faster, three times.
		w.acks = append(w.acks, ack{session: id, key: key})
		return nil
	}
	if len(r.Events) != 1 {
		return fmt.Errorf("the tool says %+v", r)
	}
	w.acks = append(w.acks, ack{id, key, r.Events[0].Seq, 1})
	return nil
}

func digits(key string) (n uint64) {
	for _, c := range key {
		n = n*31 + uint64(c)
	}
	return n
}

// says tells whether an event is one of a request.
func says(ev, key string) bool {
	var in struct {
		Data struct {
			By    string `json:"by"`
			Title string `json:"title"`
			Todos []struct {
				Content string `json:"content"`
			} `json:"todos"`
		} `json:"data"`
	}
	if json.Unmarshal([]byte(ev), &in) != nil {
		return false
	}
	return in.Data.By == key || in.Data.Title == key+", title" || len(in.Data.Todos) == 1 && in.Data.Todos[0].Content == key
}
