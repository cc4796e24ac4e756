package life_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/remote"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// at does something in one call and lets the others pass.
func at(call string, do func(context.Context, *lifetest.Process) error) func(context.Context, *lifetest.Process, string) error {
	return func(ctx context.Context, p *lifetest.Process, c string) error {
		if c != call {
			return nil
		}
		return do(ctx, p)
	}
}

func TestAStartTakesItsStepsInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		known *life.Description
		want  string
	}{
		"a plugin that nobody knows":   {nil, "describe configure fold registrations set health"},
		"one that has said what it is": {&life.Description{Name: "known"}, "configure fold registrations set health"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []string
				r := &rig{options: life.Options{Known: c.known}}
				r.plugin.Called = func(_ context.Context, _ *lifetest.Process, call string) error {
					calls = append(calls, call)
					return nil
				}
				told := 0
				r.options.Described = func(*life.Description) { told++ }
				if err := r.start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(calls, " "); got != c.want || told != 1 {
					t.Errorf("it was called %s; told %d times", got, told)
				}
				exit := r.End(t.Context(), "the test is over")
				if broke, _ := r.told(); !exit.Expected || len(r.process.Killed()) > 0 || len(broke) > 0 {
					t.Errorf("it ended with %+v, killed for %q, broken %v", exit, r.process.Killed(), broke)
				}
			})
		})
	}
}

// TestAStartThatFailsLeavesNothing: whatever goes wrong in whatever step, the error names the phase, the process is gone by then, no later step was
// begun, and nobody was told that a process that was up broke.
func TestAStartThatFailsLeavesNothing(t *testing.T) {
	steps := []string{"describe", "configure", "fold", "registrations", "set", "health"}
	phases := map[string]launch.Phase{"describe": launch.PhaseDescribe, "configure": launch.PhaseConfigure, "fold": launch.PhaseRegister, "registrations": launch.PhaseRegister, "set": launch.PhaseRegister,
		"health": launch.PhaseHealth}
	limits := map[launch.Phase]time.Duration{launch.PhaseDescribe: 5 * time.Second, launch.PhaseConfigure: 10 * time.Second, launch.PhaseRegister: 5 * time.Second,
		launch.PhaseHealth: 5 * time.Second}
	ways := map[string]struct {
		do func(context.Context, *lifetest.Process) error
		// took is how long the start takes; −1 is the limit of the phase.
		took time.Duration
	}{
		"it hangs":             {func(ctx context.Context, _ *lifetest.Process) error { return lifetest.Hang(ctx) }, -1},
		"it answers an error":  {func(context.Context, *lifetest.Process) error { return status.Error(codes.Internal, "no") }, 0},
		"it has no such call":  {func(context.Context, *lifetest.Process) error { return status.Error(codes.Unimplemented, "no") }, 0},
		"its process dies":     {func(_ context.Context, p *lifetest.Process) error { p.Die(3, "dying"); return nil }, 0},
		"the host is stopping": {nil, time.Second},
	}
	for _, step := range steps {
		for way, w := range ways {
			t.Run(step+": "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					do := w.do
					if do == nil {
						time.AfterFunc(time.Second, cancel)
						do = func(ctx context.Context, _ *lifetest.Process) error { return lifetest.Hang(ctx) }
					}
					r := &rig{plugin: lifetest.Plugin{Called: at(step, do)}}
					began := time.Now()
					err := r.start(ctx)
					took, want := time.Since(began), w.took
					if want < 0 {
						want = limits[phases[step]]
					}
					var failed *launch.StartError
					if !errors.As(err, &failed) || failed.Phase != phases[step] || took != want {
						t.Fatalf("after %v: %v", took, err)
					}
					if way == "its process dies" != (failed.Exit != nil) {
						t.Errorf("the exit is %v", failed.Exit)
					}
					if broke, _ := r.told(); r.process.Alive() || len(broke) > 0 {
						t.Errorf("alive %v, broken %v", r.process.Alive(), broke)
					}
					for _, later := range steps[slices.Index(steps, step)+1:] {
						if n := r.process.Calls.Of(later); n > 0 && later != "health" { // That is also how a process is found to be gone.
							t.Errorf("%s was called after %s had failed", later, step)
						}
					}
				})
			})
		}
	}
}

func TestAConfigThatIsRefusedSaysWhere(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"limit":{"type":"integer"}}}`)
	for name, c := range map[string]struct {
		plugin lifetest.Plugin
		config string
		asked  int
		path   string
	}{
		"by the schema": {lifetest.Plugin{Description: &pluginproto.DescribeResponse{Name: "p", ConfigSchema: schema}}, `{"limit":"many"}`, 0, "$.limit"},
		"by the plugin": {lifetest.Plugin{Description: &pluginproto.DescribeResponse{Name: "p", ConfigSchema: schema},
			Problems: []*pluginproto.ConfigProblem{{Path: "$.limit", Message: "is low"}}}, `{"limit":1}`, 1, "$.limit"},
		"by a plugin that takes none": {lifetest.Plugin{}, `{}`, 0, "$"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{plugin: c.plugin, spec: life.Spec{Config: []byte(c.config)}}
				var refused *life.ConfigError
				if err := r.start(t.Context()); !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Path != c.path {
					t.Errorf("%v", err)
				}
				if n := r.process.Calls.Of("configure"); n != c.asked {
					t.Errorf("the plugin was asked %d times", n)
				}
			})
		})
	}
}

// TestWhatEndsALife: whatever makes a process of no more use, it is killed, its host is told once, before what was in flight is answered, and
// nothing is answered twice.
func TestWhatEndsALife(t *testing.T) {
	var gone *unit.GoneError
	var late *unit.DeadlineError
	var broken *remote.BrokenError
	mute := at("batch", func(context.Context, *lifetest.Process) error { return lifetest.ErrMute })
	for name, c := range map[string]struct {
		called func(context.Context, *lifetest.Process, string) error
		do     func(*rig)
		is     any
		// busy: with a batch in flight.
		busy bool
	}{
		"its process dies":                    {nil, func(r *rig) { r.process.Die(7, "dying") }, &gone, false},
		"its process dies with work":          {mute, func(r *rig) { r.process.Die(7, "dying") }, &gone, true},
		"it ends its fold stream":             {nil, func(r *rig) { r.process.EndFold() }, &broken, false},
		"it ends its fold stream with work":   {mute, func(r *rig) { r.process.EndFold() }, &broken, true},
		"it ends its registrations":           {nil, func(r *rig) { r.process.EndRegistrations() }, &broken, false},
		"it answers a batch with an error":    {at("batch", func(context.Context, *lifetest.Process) error { return status.Error(codes.Internal, "no") }), func(*rig) {}, &broken, true},
		"it does not answer a batch":          {mute, func(*rig) {}, &late, true},
		"it offers more than a host can bear": {nil, func(r *rig) { r.process.Send(&pluginproto.RegistrationSet{Tools: make([]*pluginproto.Tool, 1001)}) }, &broken, false},
		"somebody has found out":              {nil, func(r *rig) { r.Fail(&unit.DeadlineError{}) }, &late, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := up(t, lifetest.Plugin{Units: []unit.Definition{number("n")}, Called: c.called})
				var got chan unit.Reply
				if c.busy {
					got = r.submit()
				}
				synctest.Wait()
				c.do(r)
				if c.busy {
					reply := <-got
					if broke, _ := r.told(); reply.Err == nil || len(broke) != 1 {
						t.Errorf("answered %+v, when %v was told", reply, broke)
					}
				}
				<-r.process.Exited()
				time.Sleep(time.Minute)
				if broke, busy := r.told(); len(broke) != 1 || !errors.As(broke[0], c.is) || busy != c.busy {
					t.Errorf("broken %v, busy %v", broke, busy)
				}
				if len(got) > 0 {
					t.Error("answered twice")
				}
			})
		})
	}
}

// TestAWantedEndIsNoFailure: a process that was asked to end may close its streams in any order, and takes its time; nobody kills it for that, and
// nobody is told.
func TestAWantedEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := up(t, lifetest.Plugin{Called: at("stop", func(_ context.Context, p *lifetest.Process) error {
			p.EndRegistrations()
			p.EndFold()
			time.Sleep(3 * time.Second)
			return nil
		})})
		exit := r.End(t.Context(), "it is not needed")
		if broke, _ := r.told(); !exit.Expected || len(r.process.Killed()) > 0 || len(broke) > 0 {
			t.Errorf("it ended with %+v, killed for %q, broken %v", exit, r.process.Killed(), broke)
		}
	})
}

// TestAnEndThatIsGivenUpKills: the context of an end ends while the process takes its time.
func TestAnEndThatIsGivenUpKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := up(t, lifetest.Plugin{Called: at("stop", func(ctx context.Context, _ *lifetest.Process) error { return lifetest.Hang(ctx) })})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.End(ctx, "it is not needed")
		if broke, _ := r.told(); r.process.Alive() || len(r.process.Killed()) != 1 || len(broke) > 0 {
			t.Errorf("alive %v, killed for %q, broken %v", r.process.Alive(), r.process.Killed(), broke)
		}
	})
}

func TestOnlyTheLatestSetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := up(t, lifetest.Plugin{})
		for _, key := range []string{"a", "b", "c"} {
			r.process.Offer([]unit.Definition{number(key)}, nil)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if set := <-r.Sets(); len(set.Units) != 1 || set.Units[0].Key != "c" || set.Units[0].Instance == nil {
			t.Errorf("%+v", set)
		}
		if len(r.Sets()) != 0 {
			t.Errorf("another set waits: %+v", <-r.Sets())
		}
	})
}

// TestAPluginThatKeepsChangingItsMindIsLookedAtNowAndThen: ten times a second, whatever it sends; the last set is not lost.
func TestAPluginThatKeepsChangingItsMindIsLookedAtNowAndThen(t *testing.T) {
	for name, size := range map[string]int{"small sets": 10, "large sets": 200 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := up(t, lifetest.Plugin{})
				const sets = 200
				go func() {
					for i := range sets {
						r.process.Offer(nil, []*pluginproto.Tool{tool(fmt.Sprint("t", i), func(m *pluginproto.Tool) { m.Description = strings.Repeat("x", size) })})
					}
				}()
				began, looks, last := time.Now(), 0, ""
				for last != fmt.Sprint("t", sets-1) {
					last = (<-r.Sets()).Tools[0].Name
					looks++
				}
				if took := time.Since(began); looks > 1+int(took/(100*time.Millisecond)) || looks == sets {
					t.Errorf("it was looked at %d times in %v", looks, took)
				}
			})
		})
	}
}

func TestACheckHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		r := up(t, lifetest.Plugin{Called: at("health", func(ctx context.Context, _ *lifetest.Process) error {
			if first {
				first = false
				return nil
			}
			return lifetest.Hang(ctx)
		})})
		began := time.Now()
		if err := r.Check(t.Context()); err == nil || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
