package registry

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// Whatever happens to processes, registrations and sessions, in whatever order, at any time each value in a snapshot is the fold of
// the prefix that the snapshot says, the feed goes forward, and in the end everything is there and right.
func TestAnyScheduleServesOnlyRightValuesAndEndsWithAll(t *testing.T) {
	seeds := 60 // enough for each step to meet each other; CHAOS_SEEDS asks for more
	if s := os.Getenv("CHAOS_SEEDS"); s != "" {
		seeds, _ = strconv.Atoi(s)
	}
	if testing.Short() {
		seeds = 8
	}
	var done sync.Map
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChaos(t, uint64(seed))
				for range 60 {
					name := c.step()
					done.Store(name, true)
				}
				c.finish()
			})
		})
	}
	for _, name := range []string{"append", "burst", "crash", "upgrade", "replace", "takeover", "release", "reattach", "poison", "hold", "lie", "starting"} {
		if _, ok := done.Load(name); !ok {
			t.Errorf("%s never happened", name)
		}
	}
}

// turn is a mutex that time may pass over in a bubble.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// chaos does at random what can be done to a registry and knows what is right.
type chaos struct {
	*world
	t    *testing.T
	rnd  *rand.Rand
	p    *fakeplugin.Plugin
	regs map[string]*Registration
	// known are the definitions that a key has had: a value must be a fold of one of them.
	known map[string][]unit.Definition
	rival *Registration
	wg    sync.WaitGroup
	hold  chan struct{}
	e     *ear
	mu    turn // one bring-up at a time
	rows  Rows
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{t: t, mu: make(turn, 1), rnd: rand.New(rand.NewPCG(seed, 1)), regs: map[string]*Registration{}, known: map[string][]unit.Definition{}}
	var first []event.Event
	if c.rnd.IntN(2) == 0 {
		first = events(many(c.rnd.IntN(40), "a", "b", "x")...)
	}
	c.world = given(t, Options{BatchEvents: 1 + c.rnd.IntN(20), Window: 1 + c.rnd.IntN(3), BatchDeadline: 5 * time.Second, ReadWait: time.Minute}, first...)
	c.p = c.fake(fakeplugin.Chain("r1", "a"), fakeplugin.Chain("r2", "a", "b"), fakeplugin.HostOnly(fakeplugin.Chain("r3", "b")), fakeplugin.Chain("r4"))
	for _, d := range append(c.p.Definitions(), fakeplugin.Chain("i1", "a"), fakeplugin.Chain("i2")) {
		c.regs[d.Key] = c.register("p", d)[0]
	}
	for _, d := range []unit.Definition{fakeplugin.Chain("r1", "a"), fakeplugin.Chain("r2", "a", "b"), fakeplugin.Chain("r4"), fakeplugin.Chain("i1", "a"), fakeplugin.Chain("i2")} {
		c.known[d.Key] = []unit.Definition{d}
	}
	c.p.OnDeath(func(*fakeplugin.Process) { c.bringUp(true) })
	c.e = c.listen()
	return c
}

func (c *chaos) bringUp(suspend bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if suspend {
		for _, g := range c.regs {
			g.Suspend(Restarting, "it crashed")
		}
		time.Sleep(10 * time.Millisecond)
	}
	next := c.p.Start()
	for _, g := range c.regs {
		g.Resume(next)
	}
}

func (c *chaos) step() string {
	time.Sleep(time.Duration(c.rnd.IntN(3)) * time.Millisecond)
	switch c.rnd.IntN(22) {
	case 0:
		c.burst(100 + c.rnd.IntN(200))
		return "burst"
	case 1:
		c.p.Crash()
		return "crash"
	case 2:
		c.wg.Go(func() { c.bringUp(false) })
		return "upgrade"
	case 3:
		c.mu.Lock()
		defer c.mu.Unlock()
		key := []string{"i1", "i2"}[c.rnd.IntN(2)]
		d := c.known[key][len(c.known[key])-1]
		d = fakeplugin.Version(fakeplugin.Chain(key, []string{"a", "b", "x"}[:1+c.rnd.IntN(3)]...), d.StateVersion+1)
		if c.rival != nil && key == "i1" {
			return "nothing"
		}
		if err := c.r.Replace(c.regs[key], d); err != nil {
			c.t.Fatal(err)
		}
		c.known[key] = append(c.known[key], d)
		return "replace"
	case 4:
		if c.rival == nil && len(c.known["i1"]) == 1 {
			by := []string{"a", "z"}[c.rnd.IntN(2)]
			c.rival = c.register(by, fakeplugin.Chain("i1", "a"))[0]
			return "takeover"
		}
	case 5:
		if c.rival != nil {
			c.rival.Release()
			c.rival = nil
			return "release"
		}
	case 6:
		if rows, err := c.s.Checkpoint(c.t.Context()); err == nil {
			for key, row := range rows.Rows {
				for _, d := range c.known[key] {
					if _, state := folded(c.t, d, c.log.events, row.Seq); d.StateVersion == row.Ver && state != string(row.Val) && d.Events != nil {
						c.t.Errorf("row of %s at %d is %s, want %s", key, row.Seq, row.Val, state)
					}
				}
			}
			c.rows = rows
		} else {
			c.t.Error(err)
		}
		return "checkpoint"
	case 7:
		c.s.Detach(false)
		c.attach(c.rows)
		return "reattach"
	case 8:
		// A poisonous event, for as long as it takes to be found.
		c.p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Key("r2").Seq(c.log.head() + int64(c.rnd.IntN(3))).Times(1 + c.rnd.IntN(2)))
		return "poison"
	case 9:
		if c.hold == nil {
			c.hold = make(chan struct{})
			c.p.Add(fakeplugin.Hold([]fakeplugin.Place{fakeplugin.AtBatch, fakeplugin.AtReply}[c.rnd.IntN(2)], c.hold).Once())
			return "hold"
		}
	case 10:
		if c.hold != nil {
			close(c.hold)
			c.hold = nil
		}
	case 11:
		// Only lies that show: a wrong seq within the batch, or a value left out, cannot be told from the truth.
		c.p.Add([]*fakeplugin.Fault{fakeplugin.Twice(), fakeplugin.Backwards(), fakeplugin.Shift(1 << 40), fakeplugin.Foreign(12345),
			fakeplugin.ForgetCell(fakeplugin.AtEvent), fakeplugin.ForgetCell(fakeplugin.AtOpen), fakeplugin.NoStates()}[c.rnd.IntN(7)].Once())
		return "lie"
	case 12:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.regs["r1"].Suspend(Starting, "it is only starting")
		c.wg.Go(func() {
			time.Sleep(20 * time.Millisecond)
			c.bringUp(false)
		})
		return "starting"
	case 13, 14, 15:
		c.look(false)
		return "snapshot"
	}
	c.burst(1 + c.rnd.IntN(5))
	return "append"
}

func (c *chaos) burst(n int) {
	var types []string
	for range n {
		types = append(types, []string{"a", "b", "x", "x"}[c.rnd.IntN(4)])
	}
	c.append(types...)
}

// look takes a snapshot, now or later, and checks every value in it.
func (c *chaos) look(now bool) {
	s, wait := c.s, time.Duration(c.rnd.IntN(100))*time.Millisecond
	f := func() {
		b, err := s.SnapshotWithin(c.t.Context(), wait)
		if err != nil {
			return // detached meanwhile
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for key, v := range b.Values {
			c.right("snapshot", key, string(v), b.AsOfSeq)
		}
	}
	if now {
		f()
	} else {
		c.wg.Go(f)
	}
}

func (c *chaos) right(where, key, v string, seq int64) {
	c.log.mu.Lock()
	evs := c.log.events
	c.log.mu.Unlock()
	for _, d := range c.known[key] {
		if v == want(c.t, d, evs, seq) {
			return
		}
	}
	c.t.Errorf("%s: %s is %s at %d, want %s", where, key, v, seq, want(c.t, c.known[key][len(c.known[key])-1], evs, seq))
}

func (c *chaos) finish() {
	if c.hold != nil {
		close(c.hold)
	}
	c.p.Heal()
	time.Sleep(30 * time.Second)
	c.p.Crash()
	time.Sleep(30 * time.Second)
	c.wg.Wait()
	if _, err := c.s.Retry(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.append("a", "b", "x")
	time.Sleep(time.Minute)
	b := c.snapshot()
	if b.AsOfSeq != c.log.head() || len(b.Unavailable) > 0 {
		c.t.Errorf("in the end as of %d of %d: unavailable %+v", b.AsOfSeq, c.log.head(), b.Unavailable)
	}
	last := map[string]Change{}
	for _, ch := range c.e.changes() {
		if ch.Kind != KindValue {
			continue
		}
		c.right("feed", ch.Key, string(ch.Value), ch.Seq)
		if was, ok := last[ch.Key]; ok && (ch.Rev < was.Rev || ch.Rev == was.Rev && ch.Seq <= was.Seq) {
			c.t.Errorf("the feed of %s goes from %d@%d to %d@%d", ch.Key, was.Rev, was.Seq, ch.Rev, ch.Seq)
		}
		last[ch.Key] = ch
	}
	for key, ds := range c.known {
		v := string(b.Values[key])
		if w := want(c.t, ds[len(ds)-1], c.log.events, b.AsOfSeq); v != w {
			c.t.Errorf("in the end %s is %s, want %s", key, v, w)
		}
		if ch, ok := last[key]; !ok || string(ch.Value) != v || ch.Rev > b.Revs[key] {
			c.t.Errorf("in the end the feed has told %s@%d rev %d of %s, the snapshot %s rev %d", ch.Value, ch.Seq, ch.Rev, key, v, b.Revs[key])
		}
	}
	h := fakeplugin.Chain("r3", "b")
	raw, seq, err := c.s.StateOf(c.t.Context(), "r3")
	if _, state := folded(c.t, h, c.log.events, seq); err != nil || string(raw) != state {
		c.t.Errorf("in the end the state of r3 is %s, %v, want %s", raw, err, state)
	}
	if slots := slices.IndexFunc(c.s.slots, func(s slot) bool { return s.next != nil }); slots >= 0 {
		c.t.Errorf("in the end %s still waits for its successor", c.s.plan.units[slots].Key)
	}
}
