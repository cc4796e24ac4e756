//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldhost/foldhost/client"
)

func TestMain(m *testing.M) {
	if os.Getenv(envDir) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// patience is for what must come, and is never waited out by a test that passes.
const patience = 3 * time.Minute

// cuts is how many connections are cut.
func cuts(t *testing.T) int64 {
	text := os.Getenv("CHAOS_CUTS")
	if text == "" && testing.Short() {
		return 150
	}
	if text == "" {
		return 1000
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("CHAOS_CUTS is %q: give a number of cuts", text)
	}
	return n
}

// truth is what the host has of a session in the end.
type truth struct {
	events []string
	values map[string][]byte
}

func TestEveryClientEndsWithWhatTheHostHas(t *testing.T) {
	n := cuts(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d cuts", seed, n)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBackend(t, build(t))
	p := newProxy(t, b.address, seed)
	sessions := []string{"a", "b", "c", "d", "e"}
	for _, id := range sessions {
		if _, _, err := b.client.Create(t.Context(), client.NewSession{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	through := func() *client.Client {
		c, err := client.New(client.Options{URL: p.url()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}

	// Those who follow, until the end.
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(n)*100*time.Millisecond)
	defer cancel()
	var readers []*reader
	for _, id := range append(sessions, sessions...) {
		readers = append(readers, newReader("a reader of one", []string{id}))
	}
	for i := range 6 {
		readers = append(readers, newReader(fmt.Sprintf("reader %d of all", i), sessions))
	}
	reading, leave := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer leave()
	for i, r := range readers {
		c, own := through(), rand.New(rand.NewPCG(seed, uint64(10+i)))
		following.Go(func() {
			if err := r.follow(reading, c, own, i%2 == 1); err != nil {
				t.Error(err)
				cancel()
			}
		})
	}

	nodes := startNodes(t, ctx, p.url(), sessions)

	// Those who write, until enough was cut.
	stop := make(chan struct{})
	var writers []*writer
	var writing sync.WaitGroup
	for i := range 24 {
		w := &writer{name: fmt.Sprint("w", i), random: rand.New(rand.NewPCG(seed, uint64(100+i))), client: through()}
		writers = append(writers, w)
		writing.Go(func() {
			if err := w.write(ctx, sessions, stop); err != nil {
				t.Error(err)
				cancel()
			}
		})
	}

	// The host and its plugins.
	plugins := 0
	steps := max(6, n/60)
	for step := range steps {
		if err := p.wait(ctx, n*(step+1)/(steps+1)); err != nil {
			t.Fatal("not enough was cut: ", err)
		}
		switch [...]string{"kill", "plugin", "stop", "plugin", "ask"}[step%5] {
		case "kill":
			b.again(syscall.SIGKILL)
		case "stop":
			b.again(syscall.SIGTERM)
		case "ask":
			if _, err := b.client.RestartPlugin(ctx, "title"); err != nil {
				t.Error(err)
			}
		case "plugin":
			if b.killPlugin(ctx, []string{"todo", "title", "tokenusage"}[random.IntN(3)]) {
				plugins++
			}
		}
	}
	if err := p.wait(ctx, n); err != nil {
		t.Fatal("not enough was cut: ", err)
	}
	close(stop)
	writing.Wait()
	p.calm.Store(true)
	if t.Failed() {
		return
	}

	all := map[string]*truth{}
	for _, id := range sessions {
		all[id] = whole(t, ctx, b.client, id)
	}
	acks, lost := 0, 0
	for _, w := range writers {
		lost += w.tries
		for _, a := range w.acks {
			acks++
			check(t, all[a.session], a)
		}
	}
	events := 0
	for id, log := range all {
		events += len(log.events)
		if v, err := b.client.Verify(ctx, id); err != nil || !v.OK {
			t.Errorf("session %s: %+v, %v", id, v, err)
		}
	}
	appended := 0
	for _, w := range writers {
		for _, a := range w.acks {
			appended += a.n
		}
	}
	if appended != events {
		t.Errorf("%d events were acknowledged, and the logs have %d", appended, events)
	}
	breaks, starts := 0, 0
	for _, r := range readers {
		if err := r.catchUp(ctx, all); err != nil {
			t.Error(err)
		}
		breaks += int(r.breaks.Load())
	}
	if connections := nodes.catchUp(t, all); connections > 0 {
		breaks += connections - len(sessions)*len(nodes.all)
		t.Logf("the clients in TypeScript subscribed %d times", connections)
	} else if len(nodes.all) > 0 {
		t.Error("the clients in TypeScript never subscribed")
	}
	leave()
	following.Wait()
	for _, r := range readers {
		starts += r.starts
	}
	t.Logf("%d cut, %d half open, %d stuck, %d bytes late, %d refused; the host killed %d times and stopped %d times, %d plugins killed; %d requests answered, %d without an answer; %d events; streams broken %d times, readers started anew %d times",
		p.cuts.Load(), p.halves.Load(), p.sticks.Load(), p.delays.Load(), p.refused.Load(), b.kills, b.stops, plugins, acks, lost, events, breaks, starts)
	for what, n := range map[string]int{"halves": int(p.halves.Load()), "sticks": int(p.sticks.Load()), "delays": int(p.delays.Load()), "kills": b.kills, "stops": b.stops, "plugins": plugins,
		"requests without an answer": lost, "broken streams": breaks, "readers started anew": starts} {
		if n == 0 {
			t.Errorf("there were no %s", what)
		}
	}
}

// whole reads what the host has of a session.
func whole(t *testing.T, ctx context.Context, c *client.Client, id string) *truth {
	t.Helper()
	all := &truth{values: map[string][]byte{}}
	for ev, err := range c.Events(ctx, id, client.EventsQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		all.events = append(all.events, string(ev.AppendJSON(nil)))
	}
	for {
		block, err := c.Projections(ctx, id, client.ValuesQuery{})
		if err != nil {
			t.Fatal(err)
		}
		if len(block.Unavailable) > 0 && ctx.Err() == nil { // A plugin that was killed a moment ago.
			continue
		}
		for key, value := range block.Values {
			all.values[key] = value
		}
		return all
	}
}

// check looks whether what was acknowledged is there, where it was said to be, once.
func check(t *testing.T, log *truth, a ack) {
	t.Helper()
	for i := range a.n {
		if at := int(a.first) + i; at >= len(log.events) || !says(log.events[at], a.key) {
			t.Fatalf("session %s: what %s appended is not at %d", a.session, a.key, at)
		}
	}
}
