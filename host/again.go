package host

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/foldhost/foldhost/registry"
)

// A process that dies takes every unit of its plugin down with it, and only one of them is to blame. The registry finds out which, if it is asked
// again, once the plugin is up: then it drives each suspect alone, event by event, and convicts the one with which the process dies again. So a
// replay asks until each key has come, or has failed by itself, or its plugin is given up. Each time, a key gets further, or a unit is convicted, or
// a death counts that nothing explains; five of those park the plugin. So it ends.

// passing are the keys that are missing for a reason that may pass, sorted.
func passing(down map[string]registry.Unavailable) (keys []string) {
	for key, u := range down {
		switch u.Code {
		case registry.Starting, registry.Restarting, registry.Behind:
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// maxIdle is how often a plugin that stays up is asked for what it says it cannot give now, with pauses up to maxPause: two minutes, while suspects of
// others are tried, each of whom may hang for a batch deadline.
const (
	maxIdle  = 500
	maxPause = 250 * time.Millisecond
)

// again asks for the keys that are passing unavailable until they are so no more. ask takes what came out of down, and puts there what it
// learned. While it does, no other replay folds anything: what dies, dies of this one.
func (r *replay) again(down map[string]registry.Unavailable, ask func(keys []string) error) error {
	keys := passing(down)
	if len(keys) == 0 {
		return nil
	}
	if err := r.turn.take(r.ctx, alone); err != nil {
		return err
	}
	pause := time.Millisecond
	for idle := 0; len(keys) > 0 && idle < maxIdle; {
		before, serves, err := r.host.plugins.settle(r.ctx, r.set, keys)
		if err != nil {
			return err
		}
		asked := keys
		if err := ask(asked); err != nil {
			return err
		}
		if keys = passing(down); !serves || len(keys) == 0 {
			break
		}
		if r.host.plugins.deaths(r.set, asked) != before {
			idle, pause = 0, time.Millisecond
			continue
		}
		// It lives: what trails there will not come, and what waits for suspects will.
		keys = slices.DeleteFunc(keys, func(key string) bool { return down[key].Code == registry.Behind })
		idle++
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		pause = min(2*pause, maxPause)
	}
	return r.turn.take(r.ctx, shared)
}

// settle waits until each plugin of a set that offers one of the keys serves or is not started again by itself. serves says whether any does.
func (p *plugins) settle(ctx context.Context, set string, keys []string) (deaths int, serves bool, err error) {
	for _, one := range p.offering(set, keys) {
		s, err := p.list[one].Settle(ctx)
		if err != nil {
			return 0, false, err
		}
		deaths += s.Deaths
		serves = serves || PluginState(s.State) == PluginReady
	}
	return deaths, serves, nil
}

// deaths counts those of the plugins of a set that offer one of the keys.
func (p *plugins) deaths(set string, keys []string) (n int) {
	for _, one := range p.offering(set, keys) {
		n += p.list[one].Facts().Deaths
	}
	return n
}

// offering are the places of the plugins of a set that offer one of the keys.
func (p *plugins) offering(set string, keys []string) (places []int) {
	for i, one := range p.list {
		if !one.serves(set) {
			continue
		}
		for _, u := range one.Facts().Units {
			if slices.Contains(keys, u.Key) {
				places = append(places, i)
				break
			}
		}
	}
	return places
}

// How much of a gate a replay takes: many fold at once, and one that asks again folds alone.
const (
	shared = 1
	alone  = 1 << 30
)

func newGate() *semaphore.Weighted { return semaphore.NewWeighted(alone) }

// turn is what one replay holds of the gate. It belongs to the replay's goroutine.
type turn struct {
	gate *semaphore.Weighted
	held int64
}

// take exchanges what is held for n. With an error nothing is held.
func (t *turn) take(ctx context.Context, n int64) error {
	if t.held == n {
		return nil
	}
	t.leave()
	if err := t.gate.Acquire(ctx, n); err != nil {
		return err
	}
	t.held = n
	return nil
}

func (t *turn) leave() {
	if t.held > 0 {
		t.gate.Release(t.held)
	}
	t.held = 0
}
