//go:build unix

package launch

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/foldhost/foldhost/pluginproto"
)

// TestCrashAndRestartLeakNothing runs 50 rounds, or as many as FOLDHOST_SOAK_ROUNDS says; CI's long mode runs 1,000.
func TestCrashAndRestartLeakNothing(t *testing.T) {
	rounds := 50
	if n, err := strconv.Atoi(os.Getenv("FOLDHOST_SOAK_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	r := newRig(t)
	ways := []func(p *Process){
		func(p *Process) {
			p.Client().CallTool(context.Background(), &pluginproto.CallToolRequest{Tool: "exit 5"})
			<-p.gone
		},
		func(p *Process) {
			p.Client().CallTool(context.Background(), &pluginproto.CallToolRequest{Tool: "signal KILL"})
			<-p.gone
		},
		func(p *Process) { p.Kill("soak"); <-p.gone },
		func(p *Process) { p.Stop(context.Background()) },
		func(p *Process) {
			p.Client().CallTool(context.Background(), &pluginproto.CallToolRequest{Tool: "grandchild"})
			p.Kill("soak")
			<-p.gone
		},
	}
	round := func(i int) {
		ways[i%len(ways)](r.start(t, spec("")))
		for _, mode := range []string{"exit-3", "say 1|7|unix|SOCKET|grpc", "accept-and-exit"} {
			if i%len(ways) == 0 {
				if _, err := r.Start(context.Background(), spec(mode)); err == nil {
					t.Fatalf("%s started", mode)
				}
			}
		}
	}
	for i := range len(ways) { // what is made once
		round(i)
	}
	before := held(r)
	for i := range rounds {
		round(i)
	}
	// Goroutines of go-plugin and of gRPC end a moment after what they serve.
	after := held(r)
	for deadline := time.Now().Add(patient); after.worse(before) && time.Now().Before(deadline); after = held(r) {
		runtime.Gosched()
	}
	t.Logf("%d rounds: %+v before, %+v after", rounds, before, after)
	if after.worse(before) {
		t.Errorf("held after %d rounds: %+v, before: %+v", rounds, after, before)
	}
	if left := r.files(t); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// holding is what a process holds on to.
type holding struct {
	Goroutines, Descriptors, Children int
	Heap                              uint64
}

func held(r *rig) holding {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := holding{Goroutines: runtime.NumGoroutine(), Children: len(children(os.Getpid())), Heap: m.HeapAlloc}
	r.log.mu.Lock()
	r.log.records = nil
	r.log.mu.Unlock()
	if fds, err := os.ReadDir("/dev/fd"); err == nil {
		h.Descriptors = len(fds)
	}
	return h
}

// worse allows the heap 2 MiB, which is noise at any number of rounds and would be 2 KiB a round at 1,000.
func (h holding) worse(before holding) bool {
	return h.Goroutines > before.Goroutines || h.Descriptors > before.Descriptors || h.Children > before.Children || h.Heap > before.Heap+2<<20
}
