package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stream is a plugin's side of a fold stream, held by a test.
type stream struct {
	grpc.ClientStream
	ctx context.Context
	// down has what the instance sends; nobody reading it is a plugin that does not read.
	down chan *pluginproto.FoldBatch
	up   chan any // *pluginproto.FoldReply or error
}

func (s *stream) Send(m *pluginproto.FoldBatch) error {
	select {
	case s.down <- m:
		return nil
	case <-s.ctx.Done():
		return io.EOF
	}
}

func (s *stream) Recv() (*pluginproto.FoldReply, error) {
	select {
	case v := <-s.up:
		if err, is := v.(error); is {
			return nil, err
		}
		return v.(*pluginproto.FoldReply), nil
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

// rig is an instance over such a stream. broke collects what Broken was told.
type rig struct {
	*Instance
	*stream
	mu    sync.Mutex
	broke []error
	busy  bool
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{stream: &stream{ctx: ctx, down: make(chan *pluginproto.FoldBatch), up: make(chan any)}}
	o := Options{Stream: r.stream, Cancel: cancel, Generation: 7, Broken: func(why error, busy bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.broke, r.busy = append(r.broke, why), busy
	}}
	for _, c := range change {
		c(&o)
	}
	r.Instance = New(o)
	t.Cleanup(func() {
		r.Close("the test is over")
		r.Wait()
	})
	return r
}

// submit hands in a batch of one event for a cell; the channel gets every answer, of which there must be one.
func (r *rig) submit(ctx context.Context, cell unit.CellID, seq int64) chan unit.Reply {
	got := make(chan unit.Reply, 2)
	b := unit.Batch{Cells: []unit.CellID{cell}, Events: []event.Event{{Type: "step", Seq: seq, Data: json.RawMessage("1")}}, Through: seq}
	r.Submit(ctx, b, func(reply unit.Reply) { got <- reply })
	return got
}

func (r *rig) answer(m *pluginproto.FoldBatch) {
	r.up <- &pluginproto.FoldReply{Batch: m.Batch, Generation: m.Generation, Last: true,
		Values: []*pluginproto.CellValue{{Cell: m.Cells[0], Seq: m.Through, View: []byte("1")}}}
}

func answered(t *testing.T, got chan unit.Reply) unit.Reply {
	t.Helper()
	r := <-got
	synctest.Wait()
	if len(got) > 0 {
		t.Errorf("answered twice: %+v", <-got)
	}
	return r
}

func TestEachBatchIsAnsweredWhateverTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first, second := r.submit(t.Context(), 1, 3), r.submit(t.Context(), 2, 4)
		one, two := <-r.down, <-r.down
		r.answer(two)
		r.answer(one)
		if v := answered(t, second).Values; len(v) != 1 || v[0].Cell != 2 || v[0].Seq != 4 {
			t.Errorf("the second got %+v", v)
		}
		if v := answered(t, first).Values; len(v) != 1 || v[0].Cell != 1 || v[0].Seq != 3 {
			t.Errorf("the first got %+v", v)
		}
	})
}

func TestWhatNoPluginSendsBreaksTheInstanceOnce(t *testing.T) {
	reply := func(change func(*pluginproto.FoldReply)) func(*pluginproto.FoldBatch) any {
		return func(m *pluginproto.FoldBatch) any {
			r := &pluginproto.FoldReply{Batch: m.Batch, Generation: m.Generation, Last: true, Values: []*pluginproto.CellValue{{Cell: 1, Seq: 3, View: []byte("1")}}}
			change(r)
			return r
		}
	}
	fails := func(err error) func(*pluginproto.FoldBatch) any {
		return func(*pluginproto.FoldBatch) any { return err }
	}
	for name, say := range map[string]func(*pluginproto.FoldBatch) any{
		"an older generation": reply(func(r *pluginproto.FoldReply) { r.Generation-- }),
		"an unknown batch":    reply(func(r *pluginproto.FoldReply) { r.Batch += 100 }),
		"an unknown cell":     reply(func(r *pluginproto.FoldReply) { r.Values[0].Cell++ }),
		"a seq beyond":        reply(func(r *pluginproto.FoldReply) { r.Values[0].Seq++ }),
		"no JSON":             reply(func(r *pluginproto.FoldReply) { r.Values[0].View = nil }),
		"a refusal":           reply(func(r *pluginproto.FoldReply) { r.Refused = "no" }),
		"too much":            fails(status.Error(codes.ResourceExhausted, "received message larger than max")),
		"no message":          fails(status.Error(codes.Internal, "string field contains invalid UTF-8")),
		"an end":              fails(io.EOF),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				first, second := r.submit(t.Context(), 1, 3), r.submit(t.Context(), 1, 4)
				m := <-r.down
				<-r.down
				r.up <- say(m)
				var gone *unit.GoneError
				for _, got := range []chan unit.Reply{first, second, r.submit(t.Context(), 1, 5)} {
					if reply := answered(t, got); !errors.As(reply.Err, &gone) {
						t.Errorf("answered %+v", reply)
					}
				}
				var broken *BrokenError
				if len(r.broke) != 1 || !errors.As(r.broke[0], &broken) || !r.busy {
					t.Errorf("broken %v, busy %v", r.broke, r.busy)
				}
			})
		})
	}
}

// TestAHeldInstanceSendsNothingBeforeItBegins: and what waits is answered when it ends before.
func TestAHeldInstanceSendsNothingBeforeItBegins(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Held = true })
			got := r.submit(t.Context(), 1, 3)
			time.Sleep(time.Minute)
			if len(r.broke) > 0 || len(got) > 0 {
				t.Errorf("while it is held: broken %v", r.broke)
			}
			if dies {
				r.up <- io.EOF
				if reply := answered(t, got); reply.Err == nil {
					t.Errorf("answered %+v", reply)
				}
				r.Begin()
				return
			}
			r.Begin()
			r.answer(<-r.down)
			if reply := answered(t, got); reply.Err != nil {
				t.Error(reply.Err)
			}
		})
	}
}

func TestAnAnswerThatComesTwiceBreaksTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		got := r.submit(t.Context(), 1, 3)
		m := <-r.down
		r.answer(m)
		answered(t, got)
		r.answer(m)
		synctest.Wait()
		if len(r.broke) != 1 || r.busy {
			t.Errorf("broken %v, busy %v", r.broke, r.busy)
		}
	})
}

func TestABatchThatIsNotAnsweredInTimeEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		late := r.submit(t.Context(), 1, 3)
		<-r.down
		time.Sleep(4 * time.Second)
		other := r.submit(t.Context(), 2, 4)
		<-r.down
		began := time.Now()
		var deadline *unit.DeadlineError
		if reply := answered(t, late); !errors.As(reply.Err, &deadline) {
			t.Errorf("answered %+v", reply)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("after %v more", took)
		}
		var gone *unit.GoneError
		if reply := answered(t, other); !errors.As(reply.Err, &gone) {
			t.Errorf("the other was answered %+v", reply)
		}
		if len(r.broke) != 1 || !errors.As(r.broke[0], &deadline) || !r.busy {
			t.Errorf("broken %v", r.broke)
		}
	})
}

// TestADeadlineOfTheCallerEndsTheInstance: given a caller that gives a batch a second, a plugin that has not answered it by then is of no more
// use, although its own deadline is ten; whether the batch was sent or waits for others that were.
func TestADeadlineOfTheCallerEndsTheInstance(t *testing.T) {
	for name, before := range map[string]int{"sent": 0, "waiting": firstWindow} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var others []chan unit.Reply
				for i := range before {
					others = append(others, r.submit(t.Context(), unit.CellID(i+1), 3))
					<-r.down
				}
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				late := r.submit(ctx, 100, 3)
				if before == 0 {
					<-r.down
				}
				var deadline *unit.DeadlineError
				if reply := answered(t, late); !errors.As(reply.Err, &deadline) || time.Since(began) != time.Second {
					t.Errorf("after %v: %+v", time.Since(began), reply)
				}
				var gone *unit.GoneError
				for _, other := range others {
					if reply := answered(t, other); !errors.As(reply.Err, &gone) {
						t.Errorf("another was answered %+v", reply)
					}
				}
				if len(r.broke) != 1 || !errors.As(r.broke[0], &deadline) || !r.busy {
					t.Errorf("broken %v, busy %v", r.broke, r.busy)
				}
			})
		})
	}
}

// TestADeadlineForDroppingCellsEndsNothing: nobody waits for that answer, and the plugin may be busy with others.
func TestADeadlineForDroppingCellsEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		dropped := make(chan unit.Reply, 1)
		r.Submit(ctx, unit.Batch{Drop: []unit.CellID{1}, Through: -1}, func(reply unit.Reply) { dropped <- reply })
		m := <-r.down
		time.Sleep(2 * time.Second)
		r.up <- &pluginproto.FoldReply{Batch: m.Batch, Generation: m.Generation, Last: true}
		if reply := answered(t, dropped); reply.Err != nil || len(r.broke) > 0 {
			t.Errorf("answered %+v, broken %v", reply, r.broke)
		}
	})
}

// TestABusyPluginIsNotCalledDead: it takes a second for each batch, and sixty wait for it; none is late, because each is sent only when its
// turn is near.
func TestABusyPluginIsNotCalledDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var all []chan unit.Reply
		for i := range 60 {
			all = append(all, r.submit(t.Context(), unit.CellID(i+1), 3))
		}
		go func() {
			for range all {
				m := <-r.down
				time.Sleep(time.Second)
				r.answer(m)
			}
		}()
		for i, got := range all {
			if reply := answered(t, got); reply.Err != nil {
				t.Fatalf("batch %d: %v", i, reply.Err)
			}
		}
	})
}

func TestACancelledBatchIsAnsweredAtOnceAndItsAnswerIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := r.submit(ctx, 1, 3)
		m := <-r.down
		cancel()
		if reply := answered(t, got); reply.Err == nil {
			t.Errorf("answered %+v", reply)
		}
		r.answer(m)
		next := r.submit(t.Context(), 1, 4)
		r.answer(<-r.down)
		if reply := answered(t, next); reply.Err != nil || len(r.broke) > 0 {
			t.Errorf("answered %+v, broken %v", reply, r.broke)
		}
	})
}

// Given answers under way when the instance has ended, of a batch that came too late and of one whose caller gave up, then Wait waits for them.
func TestWaitWaitsForEveryAnswer(t *testing.T) {
	for name, begin := range map[string]func(r *rig, done func(unit.Reply)){
		"to a batch that came too late": func(r *rig, done func(unit.Reply)) {
			r.Close("closed")
			r.Submit(context.Background(), unit.Batch{Cells: []unit.CellID{1}}, done)
		},
		"to one that was given up": func(r *rig, done func(unit.Reply)) {
			ctx, cancel := context.WithCancel(context.Background())
			r.Submit(ctx, unit.Batch{Cells: []unit.CellID{1}}, done)
			cancel()
			synctest.Wait()
			r.Close("closed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				release, waited := make(chan struct{}), make(chan struct{})
				begin(r, func(unit.Reply) { <-release })
				go func() {
					r.Wait()
					close(waited)
				}()
				synctest.Wait()
				select {
				case <-waited:
					t.Error("it did not wait for the answer")
				default:
				}
				close(release)
				<-waited
			})
		})
	}
}

func TestAPluginThatDoesNotReadHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 1000 {
			r.submit(t.Context(), unit.CellID(i+1), 3) // Returns: nothing waits for the plugin.
		}
		synctest.Wait()
		r.Instance.mu.Lock()
		defer r.Instance.mu.Unlock()
		if n := len(r.flights); n > firstWindow {
			t.Errorf("%d batches are in flight", n)
		}
	})
}

func TestABatchThatIsTooLargeForAMessageIsCutAndAnsweredAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		large := json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`)
		b := unit.Batch{Cells: []unit.CellID{1}, Mode: unit.EveryChange, Through: 9}
		for seq := range int64(6) {
			b.Events = append(b.Events, event.Event{Type: "step", Seq: seq, Data: large})
		}
		got := make(chan unit.Reply, 1)
		r.Submit(t.Context(), b, func(reply unit.Reply) { got <- reply })
		sent := 0
		for sent < 6 {
			m := <-r.down
			sent += len(m.Events)
			r.answer(m)
		}
		if reply := <-got; reply.Err != nil || len(reply.Values) < 2 {
			t.Errorf("%d values, %v", len(reply.Values), reply.Err)
		}
	})
}

func TestWhatNoMessageCarriesIsRefusedAndTheInstanceLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		got := make(chan unit.Reply, 1)
		huge := json.RawMessage(`"` + strings.Repeat("x", 17<<20) + `"`)
		r.Submit(t.Context(), unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{{Type: "step", Data: huge}}}, func(reply unit.Reply) { got <- reply })
		if reply := <-got; reply.Err == nil {
			t.Errorf("answered %+v", reply)
		}
		next := r.submit(t.Context(), 1, 4)
		r.answer(<-r.down)
		if reply := answered(t, next); reply.Err != nil {
			t.Error(reply.Err)
		}
	})
}

func TestTheObituaryExplainsABrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Obituary = func() string { return "the process exited with code 9" } })
		got := r.submit(t.Context(), 1, 3)
		<-r.down
		r.up <- status.Error(codes.Unavailable, "error reading from server: EOF")
		if reply := answered(t, got); reply.Err == nil || !strings.Contains(reply.Err.Error(), "code 9") {
			t.Errorf("answered %v", reply.Err)
		}
	})
}

func TestAWantedEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		got := r.submit(t.Context(), 1, 3)
		<-r.down
		r.Close("it is being stopped")
		if reply := answered(t, got); reply.Err == nil || len(r.broke) > 0 {
			t.Errorf("answered %+v, broken %v", reply, r.broke)
		}
	})
}

func TestTheWindowOpensForAQuickPluginAndClosesForASlowOne(t *testing.T) {
	w := newWindow(10 * time.Second)
	for range 100 {
		w.answered(time.Millisecond)
	}
	if w.size != maxWindow {
		t.Errorf("%d for a quick one", w.size)
	}
	for _, want := range []int{32, 16, 8, 4, 2, 2} {
		if w.answered(2 * time.Second); w.size != want {
			t.Errorf("%d, want %d", w.size, want)
		}
	}
	if w.answered(time.Second); w.size != 2 {
		t.Errorf("%d after one that was neither", w.size)
	}
}
