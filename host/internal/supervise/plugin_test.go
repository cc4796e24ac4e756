package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/restart"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// slow takes a second for a call.
func slow(call string) func(context.Context, *lifetest.Process, string) error {
	return func(ctx context.Context, _ *lifetest.Process, c string) error {
		if c == call {
			return lifetest.Sleep(ctx, time.Second)
		}
		return nil
	}
}

// TestTheStatesOfALife: each state that an operator sees, in order, with what belongs to it.
func TestTheStatesOfALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowly := lifetest.Plugin{Units: []unit.Definition{number("n", nil)}, Called: func(ctx context.Context, p *lifetest.Process, call string) error {
			if call == "stop" {
				call = "configure" // as slow as that
			}
			return slow("configure")(ctx, p, call)
		}}
		r := newRig(t, always(slowly))
		r.is(supervise.Stopped, "before it is started")
		r.run()
		s := r.is(supervise.Starting, "while it starts")
		if s.Pid != 0 || s.Description == nil || !s.Until.IsZero() {
			t.Errorf("while it starts: %+v", s)
		}
		began := time.Now()
		time.Sleep(time.Second)
		s = r.is(supervise.Ready, "once it is up")
		if s.Pid != r.last().Pid() || len(s.Units) != 1 || s.Restarts != 0 || s.LastError != "" || !s.Since.Equal(began.Add(time.Second)) {
			t.Errorf("once it is up: %+v", s)
		}
		for n := 1; n <= 5; n++ {
			r.die()
			s := r.Status()
			if s.Deaths != n || !strings.Contains(s.LastError, "dying") || s.Tail != "dying" || s.Pid != 0 || len(s.Units) != 1 {
				t.Errorf("after death %d: %+v", n, s)
			}
			if n == 5 {
				break
			}
			first := restart.First << (n - 1)
			until := r.backsOff(first*8/10, first, fmt.Sprint("after death ", n))
			time.Sleep(time.Until(until))
			r.is(supervise.Starting, "when its backoff is over")
			time.Sleep(time.Second)
			if s := r.is(supervise.Ready, "once it is up again"); s.Restarts != n || s.Reason != "" || !s.Until.IsZero() {
				t.Errorf("once it is up again: %+v", s)
			}
		}
		s = r.is(supervise.Parked, "after five deaths")
		block, err := r.session("s", "e").Snapshot(t.Context())
		if message := block.Unavailable["n"].Message; err != nil || !strings.Contains(message, "5 failures") || !strings.Contains(message, "code 3") || strings.Contains(message, "dying") {
			t.Errorf("whoever reads values hears %q (%v)", message, err)
		}
		if !strings.Contains(s.Reason, "5 failures") || !strings.Contains(s.Reason, "dying") || !s.Until.IsZero() {
			t.Errorf("once it is parked: %+v", s)
		}
		time.Sleep(24 * time.Hour)
		r.is(supervise.Parked, "a day later")
		r.Restart()
		r.is(supervise.Starting, "when somebody asked")
		time.Sleep(time.Second)
		r.is(supervise.Ready, "when somebody had asked")
		stopped := make(chan struct{})
		go func() { defer close(stopped); r.Stop(context.Background()) }()
		if s = r.is(supervise.Draining, "while it is stopped"); s.Pid == 0 {
			t.Errorf("while it is stopped: %+v", s)
		}
		other := number("n", nil)
		other.StateVersion = 2
		if _, err := r.registry.Register(registry.Registrant{Plugin: "next"}, other); err != nil {
			t.Errorf("while it is stopped its keys are not free: %v", err)
		}
		<-stopped
		if s = r.is(supervise.Stopped, "once it is stopped"); s.Pid != 0 || len(s.Units) != 0 || s.Reason != "" {
			t.Errorf("once it is stopped: %+v", s)
		}
	})
}

// TestAFailureCountsOnce: however it fails, and however many notice it, the first failure is followed by the first wait, and a failure of a process
// that was up is a death.
func TestAFailureCountsOnce(t *testing.T) {
	// answers makes every batch be answered by an error, and gives it one.
	answers := func(err error) func(*rig) {
		return func(r *rig) {
			r.batch.Store(&err)
			s := r.session("s", "step")
			go s.Snapshot(context.Background())
		}
	}
	for name, c := range map[string]struct {
		fail   func(*rig)
		within time.Duration
		deaths int
	}{
		"its process dies":           {func(r *rig) { r.last().Die(3, "dying") }, 0, 1},
		"it ends its fold stream":    {func(r *rig) { r.last().EndFold() }, 0, 1},
		"it ends its registrations":  {func(r *rig) { r.last().EndRegistrations() }, 0, 1},
		"it breaks the protocol":     {answers(status.Error(codes.Internal, "no")), 0, 1},
		"it does not answer a batch": {answers(lifetest.ErrMute), 10 * time.Second, 1},
		"it fails its health check":  {func(r *rig) { r.sick.Store(true) }, 15 * time.Second, 1},
		"somebody kills it":          {func(r *rig) { r.last().Kill("for the fun of it") }, 0, 1},
		"it does not start":          {nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(t, func(int) (*lifetest.Plugin, error) {
					if c.fail == nil {
						return nil, &launch.StartError{Plugin: "p", Phase: launch.PhaseHandshake, Err: context.DeadlineExceeded, Stderr: "no idea"}
					}
					return &lifetest.Plugin{Units: []unit.Definition{number("n", nil)}, Called: func(ctx context.Context, _ *lifetest.Process, call string) error {
						switch {
						case call == "batch" && r.batch.Load() != nil:
							return *r.batch.Load()
						case call == "health" && r.sick.Load():
							return lifetest.Hang(ctx)
						}
						return nil
					}}, nil
				})
				r.run()
				if c.fail != nil {
					r.is(supervise.Ready, "first")
					c.fail(r)
				}
				if c.within > 0 {
					r.is(supervise.Ready, "before it is found out")
					time.Sleep(c.within)
				}
				r.backsOff(restart.First*8/10, restart.First, "after one failure")
				if s := r.Status(); s.Deaths != c.deaths || s.LastError == "" || c.fail == nil && s.Tail != "no idea" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestAFailureThatWouldComeAgainParksAtOnce: nothing but a wish starts it again, no forgiveness either.
func TestAFailureThatWouldComeAgainParksAtOnce(t *testing.T) {
	refused := func(phase launch.Phase, err error) next {
		return func(int) (*lifetest.Plugin, error) {
			return nil, &launch.StartError{Plugin: "p", Phase: phase, Err: err}
		}
	}
	for name, c := range map[string]struct {
		plugin next
		park   bool
	}{
		"a config that the plugin refuses": {always(lifetest.Plugin{Problems: []*pluginproto.ConfigProblem{{Path: "$.a", Message: "no"}}}), true},
		"a config that it does not take":   {always(lifetest.Plugin{}), true},
		"a description that is none":       {always(lifetest.Plugin{Description: &pluginproto.DescribeResponse{OwnedEvents: []*pluginproto.OwnedEvent{{Type: "turn/start"}}}}), true},
		"a file that is refused":           {refused(launch.PhaseFile, &launch.FileError{}), true},
		"a program of another machine":     {refused(launch.PhaseExec, syscall.ENOEXEC), true},
		"a version that nobody speaks":     {refused(launch.PhaseHandshake, &launch.HandshakeError{Rule: "version"}), true},
		"a handshake that is cut short":    {refused(launch.PhaseHandshake, &launch.HandshakeError{Rule: "line"}), false},
		"a start that takes too long":      {refused(launch.PhaseHandshake, context.DeadlineExceeded), false},
		"a lack of processes":              {refused(launch.PhaseExec, syscall.EAGAIN), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := started(t, c.plugin, func(s *life.Spec, _ *supervise.Deps) {
					if name == "a config that it does not take" {
						s.Config = []byte(`{}`)
					}
				})
				if !c.park {
					r.is(supervise.Backoff, "at first")
					return
				}
				first := r.is(supervise.Parked, "at first")
				tries := r.deps.Generation.Load()
				r.Forgive()
				time.Sleep(time.Hour)
				if s := r.is(supervise.Parked, "later"); r.deps.Generation.Load() != tries || !s.Since.Equal(first.Since) {
					t.Errorf("it was tried %d times", r.deps.Generation.Load())
				}
				r.Restart()
				r.is(supervise.Parked, "after a wish")
				if n := r.deps.Generation.Load(); n != tries+1 {
					t.Errorf("a wish gave %d tries", n-tries)
				}
			})
		})
	}
}

// TestTheFirstStartHasBeenTried: whether it ends well, ends badly, or is stopped.
func TestTheFirstStartHasBeenTried(t *testing.T) {
	for name, plugin := range map[string]next{"well": good(), "badly": always(lifetest.Plugin{Called: hangs("configure")})} {
		synctest.Test(t, func(t *testing.T) {
			r := started(t, plugin)
			if name == "badly" {
				select {
				case <-r.Tried():
					t.Error("it was not tried yet")
				default:
				}
			}
			<-r.Tried()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := started(t, always(lifetest.Plugin{Called: hangs("configure")}))
		r.Stop(t.Context())
		<-r.Tried()
	})
}

// TestAStopAtAnyMoment: it returns as soon as the process has had its time, nothing is left, and the state is stopped. That nothing is left the
// end of the bubble shows.
func TestAStopAtAnyMoment(t *testing.T) {
	units := []unit.Definition{number("n", nil)}
	hanging := func(call string) next { return always(lifetest.Plugin{Units: units, Called: hangs(call)}) }
	// firstGood is a plugin whose second process hangs in a call.
	firstGood := func(call string) next {
		return func(n int) (*lifetest.Plugin, error) {
			if n == 0 {
				return &lifetest.Plugin{Units: units}, nil
			}
			return &lifetest.Plugin{Units: units, Called: hangs(call)}, nil
		}
	}
	for name, c := range map[string]struct {
		plugin next
		before func(*rig)
		// after is how long the stop may take; patience how long its context lasts, 0 for ever.
		after, patience time.Duration
	}{
		"in describe":                                   {hanging("describe"), nil, 0, 0},
		"in configure":                                  {hanging("configure"), nil, 0, 0},
		"while the fold stream is opened":               {hanging("fold"), nil, 0, 0},
		"while registrations are opened":                {hanging("registrations"), nil, 0, 0},
		"before the first set":                          {hanging("set"), nil, 0, 0},
		"while it is ready":                             {good(), nil, 0, 0},
		"while it is ready and takes time":              {always(lifetest.Plugin{Units: units, Called: slow("stop")}), nil, time.Second, 0},
		"while it is ready and never ends":              {hanging("stop"), nil, 3 * time.Second, 3 * time.Second},
		"in a backoff":                                  {good(), (*rig).die, 0, 0},
		"while parked":                                  {always(lifetest.Plugin{Problems: []*pluginproto.ConfigProblem{{Path: "$", Message: "no"}}}), nil, 0, 0},
		"while another process is started":              {firstGood("configure"), func(r *rig) { r.Restart(); synctest.Wait() }, 0, 0},
		"when it has died while another one is started": {firstGood("configure"), func(r *rig) { r.Restart(); synctest.Wait(); r.all()[0].Die(3, ""); synctest.Wait() }, 0, 0},
		"while the one before is being stopped": {func(n int) (*lifetest.Plugin, error) {
			if n == 0 {
				return &lifetest.Plugin{Units: units, Called: slow("stop")}, nil
			}
			return &lifetest.Plugin{Units: units}, nil
		}, func(r *rig) { r.Restart(); synctest.Wait() }, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := started(t, c.plugin)
				if c.before != nil {
					c.before(r)
				}
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.patience > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.patience)
				}
				defer cancel()
				began := time.Now()
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() { r.Stop(ctx) })
				}
				both.Wait()
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %v", took)
				}
				if s := r.is(supervise.Stopped, "then"); s.Pid != 0 || len(s.Units) != 0 {
					t.Errorf("%+v", s)
				}
				for i, p := range r.all() {
					if p.Alive() {
						t.Errorf("process %d lives", i)
					}
				}
				// Its keys are free.
				other := number("n", nil)
				other.StateVersion = 2
				if _, err := r.registry.Register(registry.Registrant{Plugin: "other"}, other); err != nil {
					t.Error(err)
				}
				r.Restart()
				r.Forgive()
				r.Retry()
				time.Sleep(time.Minute)
				r.is(supervise.Stopped, "whatever is asked for then")
			})
		})
	}
}

// TestARestartThatIsAskedForStartsAtOnce: also from a backoff and a parking place, and what came before is forgotten.
func TestARestartThatIsAskedForStartsAtOnce(t *testing.T) {
	for _, deaths := range []int{4, 5} {
		synctest.Test(t, func(t *testing.T) {
			r := started(t, good())
			for range deaths {
				s, err := r.Settle(t.Context())
				if err != nil || s.State != supervise.Ready {
					t.Fatalf("%+v, %v", s, err)
				}
				r.die()
			}
			r.is(map[int]supervise.State{4: supervise.Backoff, 5: supervise.Parked}[deaths], "after its deaths")
			r.Restart()
			r.is(supervise.Ready, "at once")
			r.die()
			r.backsOff(restart.First*8/10, restart.First, "after the next death")
		})
	}
}

// TestAnExchangeHasNoGap: the process before serves until the next one is up, however long that takes, and then ends without counting.
func TestAnExchangeHasNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, func(n int) (*lifetest.Plugin, error) {
			p := &lifetest.Plugin{Description: &pluginproto.DescribeResponse{Version: fmt.Sprint(n)}, Units: []unit.Definition{number("n", nil)}}
			if n == 1 {
				p.Called = slow("configure")
			}
			return p, nil
		}, func(s *life.Spec, _ *supervise.Deps) { s.Args = []string{"asked each time"} })
		s := r.session("s", "step", "step")
		value := func() string {
			block, err := s.Snapshot(t.Context())
			if err != nil || len(block.Unavailable) > 0 {
				t.Errorf("%+v, %v", block, err)
			}
			return string(block.Values["n"])
		}
		if v := value(); v != "2" {
			t.Errorf("the value is %s", v)
		}
		for range 10 {
			r.Restart() // Wishes while it is granted are for one more process at most.
		}
		time.Sleep(time.Second / 2)
		if st := r.is(supervise.Ready, "meanwhile"); st.Pid != r.all()[0].Pid() || st.Description.Version != "0" || value() != "2" {
			t.Errorf("meanwhile: %+v", st)
		}
		time.Sleep(time.Minute)
		st := r.is(supervise.Ready, "then")
		if n := len(r.all()); n != 2 || st.Pid != r.all()[1].Pid() || st.Description.Version != "1" || st.Restarts != 1 || st.LastError != "" || st.Deaths != 0 || value() != "2" {
			t.Errorf("%d processes: %+v", n, st)
		}
		if p := r.all()[0]; p.Alive() || len(p.Killed()) > 0 {
			t.Errorf("the one before: alive %v, killed for %q", p.Alive(), p.Killed())
		}
	})
}

// TestWhatServesIsTheFileThatItWasStartedFrom: whatever lies at its path by now, and why another one did not take over is told until one is asked for again.
func TestWhatServesIsTheFileThatItWasStartedFrom(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p")
	replace := func(text string) {
		program(t, filepath.Join(dir, "new"), text)
		if err := os.Rename(filepath.Join(dir, "new"), path); err != nil {
			t.Fatal(err)
		}
	}
	for _, hashed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			replace("one")
			r := started(t, func(n int) (*lifetest.Plugin, error) {
				if n == 1 {
					return nil, errors.New("it is broken")
				}
				return &lifetest.Plugin{}, nil
			}, func(s *life.Spec, _ *supervise.Deps) { s.Path = path })
			digest := func() string {
				d, _ := r.Digest(t.Context())
				return d
			}
			one := ""
			if hashed {
				if one = digest(); len(one) != 64 {
					t.Fatalf("the digest is %q", one)
				}
			}
			replace("two, which is broken")
			r.Restart()
			if s := r.is(supervise.Ready, "after it failed"); !strings.Contains(s.Successor, "it is broken") || digest() != one {
				t.Errorf("%+v, digest %q, want %q", s, digest(), one)
			}
			r.die() // Nobody serves now: what counts is what would be started.
			if s := r.Status(); s.Successor != "" || len(digest()) != 64 || digest() == one {
				t.Errorf("%+v, digest %q", s, digest())
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		r := started(t, func(int) (*lifetest.Plugin, error) {
			if tries.Add(1) == 2 {
				return nil, errors.New("it is broken")
			}
			return &lifetest.Plugin{}, nil
		})
		r.Restart()
		if s := r.is(supervise.Ready, "after it failed"); s.Successor == "" {
			t.Error("why it failed is not told")
		}
		r.Restart()
		if s := r.is(supervise.Ready, "when another came up"); s.Successor != "" {
			t.Errorf("it is still told that %s", s.Successor)
		}
	})
}

// TestAnExchangeThatFailsLeavesTheOneBefore: with its description, whatever the new one said about itself.
func TestAnExchangeThatFailsLeavesTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, func(n int) (*lifetest.Plugin, error) {
			p := &lifetest.Plugin{Description: &pluginproto.DescribeResponse{Version: fmt.Sprint(n)}, Units: []unit.Definition{number("n", nil)}}
			if n > 0 {
				p.Problems = []*pluginproto.ConfigProblem{{Path: "$", Message: "no"}}
			}
			return p, nil
		}, func(s *life.Spec, _ *supervise.Deps) { s.Args = []string{"asked each time"} })
		r.Restart()
		if s := r.is(supervise.Ready, "after it failed"); s.Pid != r.all()[0].Pid() || s.Description.Version != "0" || s.LastError == "" || s.Deaths != 0 {
			t.Errorf("%+v", s)
		}
		// Now there is nobody else.
		r.all()[0].Die(3, "")
		r.backsOff(0, 2*restart.First, "when the one before has died")
		time.Sleep(time.Minute)
		r.is(supervise.Parked, "when the next one was refused")
	})
}

// TestADeathDuringAnExchange: it is starting then, not ready, and the process that is on its way takes over as soon as it is up.
func TestADeathDuringAnExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, func(n int) (*lifetest.Plugin, error) {
			p := &lifetest.Plugin{Units: []unit.Definition{number("n", nil)}}
			if n == 1 {
				p.Called = slow("configure")
			}
			return p, nil
		})
		r.Restart()
		synctest.Wait()
		r.all()[0].Die(3, "dying")
		if s := r.is(supervise.Starting, "after the death"); s.Pid != 0 || s.Deaths != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		if s := r.is(supervise.Ready, "then"); len(r.all()) != 2 || s.Pid != r.last().Pid() || s.Restarts != 1 {
			t.Errorf("%d processes: %+v", len(r.all()), s)
		}
	})
}

// TestSettleWaitsForAProcessOrForTheEnd of trying for one.
func TestSettleWaitsForAProcessOrForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := started(t, always(lifetest.Plugin{Called: slow("configure")}))
		began := time.Now()
		settle := func(want supervise.State, after time.Duration) {
			t.Helper()
			if s, err := r.Settle(t.Context()); err != nil || s.State != want || time.Since(began) < after {
				t.Errorf("after %v: %+v, %v", time.Since(began), s, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := r.Settle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		settle(supervise.Ready, time.Second)
		for range 4 {
			r.die()
			began = time.Now()
			settle(supervise.Ready, time.Second)
		}
		r.die()
		settle(supervise.Parked, 0)
		r.Stop(t.Context())
		settle(supervise.Stopped, 0)
	})
}

// TestAPluginThatIsPutBackHasItsFailures: they belong to its name and config.
func TestAPluginThatIsPutBackHasItsFailures(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		parked bool
	}{"with the same config": {`{"a":1, "b":2}`, true}, "with another config": {`{"a":1,"b":3}`, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plugin := always(lifetest.Plugin{Description: &pluginproto.DescribeResponse{ConfigSchema: []byte(`{"type":"object"}`)}})
				with := func(config string, ledger *supervise.Ledger) func(*life.Spec, *supervise.Deps) {
					return func(s *life.Spec, d *supervise.Deps) { s.Config, d.Ledger = []byte(config), ledger }
				}
				ledger := &supervise.Ledger{}
				r := started(t, plugin, with(`{"b":2,"a":1}`, ledger))
				for range 4 {
					r.Settle(t.Context())
					r.die()
				}
				r.Stop(t.Context())
				r = started(t, plugin, with(c.config, ledger))
				r.die()
				if parked := r.Status().State == supervise.Parked; parked != c.parked {
					t.Errorf("parked %v: %+v", parked, r.Status())
				}
			})
		})
	}
}

// TestDeathsByPoisonAreForgiven: given sessions of each of which one event ends the process, each loses that cell, and the plugin stays up.
func TestDeathsByPoisonAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(int) (*lifetest.Plugin, error) {
			var self *lifetest.Process
			return &lifetest.Plugin{Units: []unit.Definition{number("n", func() { self.Die(3, "poisoned") }), number("other", nil)},
				Called: func(_ context.Context, p *lifetest.Process, call string) error {
					if call == "configure" {
						self = p
					}
					return nil
				}}, nil
		})
		r.run()
		r.is(supervise.Ready, "first")
		const poisoned = 12
		for i := range poisoned {
			s := r.session(fmt.Sprint("s", i), "step", "poison", "step")
			go s.Snapshot(context.Background())
		}
		fine := r.session("fine", "step", "step")
		time.Sleep(10 * time.Minute)
		r.is(supervise.Ready, "after all that")
		block, err := fine.Snapshot(t.Context())
		if err != nil || string(block.Values["n"]) != "2" {
			t.Errorf("%+v, %v", block, err)
		}
		if r.convicted != poisoned {
			t.Errorf("%d events were found guilty", r.convicted)
		}
		// Five deaths of its own park it all the same.
		for range 5 {
			time.Sleep(10 * time.Second) // Nothing is in flight.
			r.die()
		}
		r.is(supervise.Parked, "after five deaths of its own")
	})
}

// TestAPluginThatDiesByItselfEndsParked: whatever it has to do when it dies. The events that it has in flight are not to blame, and not many are
// found guilty before that is clear.
func TestAPluginThatDiesByItselfEndsParked(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		// work gives it a new session each time it starts.
		work bool
	}{
		"with nothing to do":                 {100 * time.Millisecond, false},
		"with work that never ends":          {100 * time.Millisecond, true},
		"at once, with work that never ends": {0, true},
		"after a while with nothing to do":   {50 * time.Second, false},
		"after a while with work":            {50 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(t, func(n int) (*lifetest.Plugin, error) {
					return &lifetest.Plugin{Units: []unit.Definition{number("n", nil)}, Called: func(ctx context.Context, p *lifetest.Process, call string) error {
						switch call {
						case "set":
							go func() {
								select {
								case <-time.After(c.after):
									p.Die(2, "a panic in the background")
								case <-p.Exited():
								}
							}()
							if c.work {
								s := r.session(fmt.Sprint("s", n), "step", "step")
								go s.Snapshot(context.Background())
							}
						case "batch":
							return lifetest.Sleep(ctx, time.Second) // As a rule it is in the middle of something.
						}
						return nil
					}}, nil
				})
				r.run()
				time.Sleep(time.Hour)
				s := r.is(supervise.Parked, "an hour later")
				if r.convicted > restart.Excuses {
					t.Errorf("%d events were found guilty", r.convicted)
				}
				t.Logf("%d processes, %d guilty: %s", len(r.all()), r.convicted, s.Reason)
			})
		})
	}
}

// TestWhateverIsAskedForItEndsStopped: calls from many sides at once, deaths at any time, starts that fail or take long; then a stop, after which
// nothing is left.
func TestWhateverIsAskedForItEndsStopped(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			chance := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			calls := []string{"describe", "configure", "fold", "registrations", "set", "batch", "health", "stop"}
			r := newRig(t, func(int) (*lifetest.Plugin, error) {
				if chance(8) == 0 {
					return nil, &launch.StartError{Plugin: "p", Phase: launch.PhaseExec, Err: syscall.EAGAIN}
				}
				p := &lifetest.Plugin{Units: []unit.Definition{number("n", nil)}}
				at, what := calls[chance(len(calls))], chance(6)
				p.Called = func(ctx context.Context, p *lifetest.Process, call string) error {
					switch {
					case call != at:
					case what == 0:
						return lifetest.Hang(ctx)
					case what == 1:
						return status.Error(codes.Internal, "no")
					case what == 2:
						p.Die(3, "dying")
					case what == 3:
						return lifetest.Sleep(ctx, time.Second)
					}
					return nil
				}
				return p, nil
			})
			r.run()
			s := r.session("s", "step", "step")
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 30 {
						time.Sleep(time.Duration(chance(2000)) * time.Millisecond)
						switch chance(9) {
						case 0, 1:
							r.Restart()
						case 2:
							r.Forgive()
						case 3:
							r.Retry()
						case 4:
							if all := r.all(); len(all) > 0 {
								all[len(all)-1].Die(3, "dying")
							}
						case 5:
							within, done := context.WithTimeout(ctx, time.Duration(chance(3000))*time.Millisecond)
							r.Settle(within)
							done()
						case 6:
							s.SnapshotWithin(ctx, time.Duration(chance(500))*time.Millisecond)
						case 7:
							if all := r.all(); len(all) > 0 {
								all[len(all)-1].Offer([]unit.Definition{number([]string{"n", "m"}[chance(2)], nil)}, nil)
							}
						default:
							if s := r.Status(); s.State == supervise.Ready && s.Pid == 0 || s.State == supervise.Backoff && s.Until.IsZero() || s.State == supervise.Parked && s.Reason == "" {
								t.Errorf("seed %d: %+v", seed, s)
							}
						}
					}
				})
			}
			if chance(2) == 0 {
				all.Wait()
			} else {
				time.Sleep(time.Duration(chance(20_000)) * time.Millisecond)
			}
			patience, done := context.WithTimeout(t.Context(), time.Duration(chance(3))*time.Second)
			defer done()
			r.Stop(patience)
			r.is(supervise.Stopped, fmt.Sprint("seed ", seed))
			cancel()
			all.Wait()
		})
	}
}
