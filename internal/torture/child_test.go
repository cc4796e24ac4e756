package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/internal/crashpoint"
	"github.com/foldhost/foldhost/session"
)

// What tells a child what to do, in its environment.
const (
	envDir     = "TORTURE_DIR" // its data; set in a child alone
	envPlugins = "TORTURE_PLUGINS"
	envSeed    = "TORTURE_SEED"
	envPoint   = "TORTURE_POINT" // "NAME N": it kills itself when it comes to a crash point for the nth time
	envLimit   = "TORTURE_LIMIT" // no file may become larger, in bytes
)

const (
	sessions = 12
	workers  = 8
)

// ack is one line of a child: what an append or a creation returned.
type ack struct {
	Session     string `json:"s"`
	Incarnation string `json:"i"`
	// Batch is in the data of each of its events, with the place in it and its size. First is the seq of its first event.
	Batch string `json:"b,omitempty"`
	First int64  `json:"f"`
	Size  int    `json:"n"`
	// Deleting: the session is about to be deleted. Deleted: it was.
	Deleting bool `json:"t,omitempty"`
	Deleted  bool `json:"d,omitempty"`
	// Dying is the crash point at which the child ends now. Trouble is what a change was refused for.
	Dying   string  `json:"y,omitempty"`
	Trouble trouble `json:"x,omitempty"`
}

// trouble is what a disk can do to a change without harm to what is there.
type trouble string

const (
	diskFull trouble = "full"
	readOnly trouble = "read-only"
)

// child works until it is killed, or something goes wrong, which it writes to standard error.
func child() error {
	ctx := context.Background()
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	if err != nil {
		return err
	}
	if err := limitFiles(os.Getenv(envLimit)); err != nil {
		return fmt.Errorf("limit the size of files: %w", err)
	}
	dieAt(os.Getenv(envPoint))
	store, err := sqlite.Open(ctx, os.Getenv(envDir), sqlite.Options{})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	w := &worker{out: bufio.NewWriter(os.Stdout), seed: seed, boot: store.Identity().Boot}
	w.host, err = host.Open(host.Options{
		Store:   store,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Plugins: options(os.Getenv(envPlugins)),
		// Sessions go cold and come back, rows are written all the time, and the clock goes backwards.
		Session:    session.Options{IdleAfter: 40 * time.Millisecond, MaxLive: sessions / 2, Now: backwards()},
		Checkpoint: checkpoint.Options{Policy: checkpoint.Policy{EveryEvents: 5, Interval: 20 * time.Millisecond}, PastEvery: 50},
	})
	if err != nil {
		return fmt.Errorf("open the host: %w", err)
	}
	failed := make(chan error, workers)
	for i := range workers {
		go func() { failed <- w.run(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) }()
	}
	return <-failed
}

// options start the shipped plugins.
func options(plugins string) *host.PluginOptions {
	return &host.PluginOptions{Dir: plugins, Config: &config.File{Plugins: map[string]config.Plugin{"todo": {Config: json.RawMessage(`{"allowParallelInProgress":true}`)}}}}
}

// dieAt has the process killed where told.
func dieAt(told string) {
	name, often, ok := strings.Cut(told, " ")
	nth, err := strconv.Atoi(often)
	if !ok || err != nil {
		return
	}
	var left atomic.Int64
	left.Store(int64(nth))
	crashpoint.Set(func(reached string) {
		if reached != name || left.Add(-1) != 0 {
			return
		}
		raw, _ := json.Marshal(ack{Dying: name})
		_, _ = os.Stdout.Write(append(raw, '\n')) // past the workers, who may be waiting for this very goroutine
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // It takes a moment, in which nothing may go on from here.
	})
}

func backwards() func() time.Time {
	var mu sync.Mutex
	now := time.Now()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(-time.Second)
		return now
	}
}

// worker is what all the workers of a child share. mu guards out.
type worker struct {
	host *host.Host
	seed uint64
	boot int64

	mu     sync.Mutex
	out    *bufio.Writer
	serial int
}

func (w *worker) say(a ack) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(append(raw, '\n')); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *worker) batch() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	return fmt.Sprintf("%d-%d-%d", w.boot, w.seed, w.serial)
}

func (w *worker) run(ctx context.Context, r *rand.Rand) error {
	for {
		err := w.step(ctx, r)
		var full *eventlog.DiskFullError
		var refusing *eventlog.ReadOnlyError
		switch {
		case errors.As(err, &full):
			err = w.say(ack{Trouble: diskFull})
		case errors.As(err, &refusing):
			err = w.say(ack{Trouble: readOnly})
		}
		if err != nil {
			return err
		}
	}
}

// step does one thing to one session. What another worker did to it meanwhile is no error.
func (w *worker) step(ctx context.Context, r *rand.Rand) error {
	id := fmt.Sprint("s", r.IntN(sessions))
	set := w.host.Sessions()
	s, err := set.Open(ctx, id)
	var none *eventlog.NotFoundError
	if errors.As(err, &none) {
		s, err = set.Create(ctx, session.New{Header: event.Header{ID: id}})
		var exists *eventlog.ExistsError
		if errors.As(err, &exists) || errors.As(err, &none) { // somebody else's; or somebody else has deleted it already
			return nil
		}
		if err == nil {
			err = w.say(ack{Session: id, Incarnation: s.Incarnation()})
		}
	}
	if err != nil {
		return err
	}
	switch n := r.IntN(100); {
	case n < 1:
		if err = w.say(ack{Session: id, Incarnation: s.Incarnation(), Deleting: true}); err != nil {
			return err
		}
		err = set.Delete(ctx, id)
		if err == nil {
			err = w.say(ack{Session: id, Incarnation: s.Incarnation(), Deleted: true})
		}
	case n < 4:
		err = s.Detach(ctx)
	case n < 10:
		_, err = w.host.Values(ctx, id)
	case n < 14:
		_, err = s.Recover(ctx)
	default:
		err = w.append(ctx, r, s)
	}
	if errors.As(err, &none) {
		return nil
	}
	return err
}

func (w *worker) append(ctx context.Context, r *rand.Rand, s *session.Session) error {
	name := w.batch()
	size := 1 + r.IntN(4)
	b := session.Batch{}
	if r.IntN(2) == 0 {
		b.Once = session.Once{Key: name, Digest: "digest"}
	}
	var state session.SurfaceState
	if r.IntN(4) == 0 {
		var err error
		if state, err = s.Surface().State(ctx); err != nil {
			return err
		}
	}
	for i := range size {
		b.Items = append(b.Items, item(r, mark{name, i, size}, state.Nodes))
		state.Nodes = nil // one replacement a batch
	}
	commit, _, err := s.AppendBatch(ctx, b)
	var refused *event.IndexError
	if errors.As(err, &refused) {
		return nil // the surface has moved on
	}
	if err != nil {
		return err
	}
	return w.say(ack{Session: s.ID(), Incarnation: s.Incarnation(), Batch: name, First: commit.First, Size: size})
}

// mark is in the data of each event, wherever its type has room for a text: which batch, which place, of how many.
type mark struct {
	Batch  string
	At, Of int
}

func (m mark) String() string { return fmt.Sprintf("mark:%s|%d|%d", m.Batch, m.At, m.Of) }

var marked = regexp.MustCompile(`mark:([0-9-]+)\|([0-9]+)\|([0-9]+)`)

// markOf finds the mark of an event; the zero mark when it has none.
func markOf(ev *event.Event) (m mark) {
	if found := marked.FindSubmatch(ev.Data); found != nil {
		m.Batch = string(found[1])
		m.At, _ = strconv.Atoi(string(found[2]))
		m.Of, _ = strconv.Atoi(string(found[3]))
	}
	return m
}

func item(r *rand.Rand, m mark, nodes []int64) session.Item {
	raw := func(format string, args ...any) json.RawMessage { return json.RawMessage(fmt.Sprintf(format, args...)) }
	message := raw(`{"id":%q,"role":"user","content":[],"source":{"kind":"user"}}`, m)
	if len(nodes) > 1 {
		from := r.IntN(len(nodes))
		to := min(from+r.IntN(5), len(nodes)-1)
		return session.Item{Type: event.UserMessage, Data: message, Intent: session.Intent{Op: event.Replace(nodes[from], nodes[to]), Sources: nodes[from : to+1]}}
	}
	switch r.IntN(6) {
	case 0:
		return session.Item{Type: "todo/write", Data: raw(`{"todos":[{"content":%q,"status":"pending"}]}`, m)}
	case 1:
		return session.Item{Type: "session/title", Data: raw(`{"title":%q}`, m)}
	case 2:
		return session.Item{Type: event.AssistantChunk, Data: raw(`{"turn":1,"step":%d,"mark":%q,"chunk":{"type":"usage","usage":{"inputTokens":%d,"outputTokens":2}}}`, r.IntN(5), m, r.IntN(1000))}
	case 3:
		return session.Item{Type: event.UserMessage, Data: message, Intent: session.Intent{Op: event.Append()}}
	}
	return session.Item{Type: "torture/note", Data: raw(`{"text":%q,"mark":%q}`, fmt.Sprint(r.Uint64()), m)}
}
