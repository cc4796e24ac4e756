package torture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
)

func TestMain(m *testing.M) {
	if os.Getenv(envDir) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1) // a child only ends by being killed
	}
	os.Exit(m.Run())
}

// kills is how many times a host is killed.
func kills(t *testing.T) int {
	text := os.Getenv("TORTURE_KILLS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("TORTURE_KILLS is %q: give a number of kills", text)
	}
	return n
}

// points are where children kill themselves, and about how often one comes there.
var points = []struct {
	name  string
	often int
}{
	{"group/commit", 200}, {"rows/row", 60}, {"checkpoint/rows", 40}, {"session/surface-row", 20}, {"append/event", 400}, {"group/committed", 200}, {"checkpoint/past", 5},
	{"group/applied", 200}, {"create/log", 3}, {"delete", 2}, {"sweep", 2}, {"fold", 1}, {"folded", 1}, {"start", 1},
}

func TestNothingAcknowledgedIsLostAndNothingWrongIsServed(t *testing.T) {
	h := newHarness(t, t.TempDir())
	died := map[string]int{}
	n := kills(t)
	for round := range n {
		p := plan{startup: h.random.IntN(6) == 0}
		switch round % 3 {
		case 1:
			at := points[round/3%len(points)]
			p = plan{point: at.name, often: 1 + h.random.IntN(at.often)}
		case 2:
			if round%2 == 0 && runtime.GOOS == "linux" {
				p.limit = true
			}
		}
		h.run(p)
		if h.died != "" {
			died[h.died]++
		}
		h.verify(round%5 == 4)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	h.report()
	t.Logf("killed at named points: %v; short writes in %d rounds", died, h.troubles[readOnly])
	for i := 1; i < n; i += 3 {
		if name := points[i/3%len(points)].name; died[name] == 0 {
			t.Errorf("nothing was killed at %s", name)
		}
	}
	if len(h.known.deleted) == 0 && n > 100 {
		t.Error("the children deleted nothing")
	}
	if h.troubles[readOnly] == 0 && n > 5 && runtime.GOOS == "linux" {
		t.Error("no write came out short")
	}
}

// The disk fills up under the host, which is killed then, or when there is room again.
func TestNothingAcknowledgedIsLostOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "48m")
	h := newHarness(t, filepath.Join(disk, "data"))
	h.ballast = filepath.Join(disk, "ballast")
	for round := range max(3, kills(t)/10) {
		h.run(plan{full: true, often: h.random.IntN(2)})
		h.verify(round%5 == 4)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	h.report()
	t.Logf("the disk was full in %d rounds", h.troubles[diskFull])
	if h.troubles[diskFull] == 0 {
		t.Error("the disk was never full")
	}
}

// harness is a directory, what is known of it, and what happened to it.
type harness struct {
	*testing.T
	dir, plugins string
	// ballast is a file that fills the disk.
	ballast string
	random  *rand.Rand
	known   *knowledge
	// troubles counts the rounds in which something was refused for them, pluginKills the processes that were killed beside. died is the named point at
	// which the last child died.
	troubles    map[trouble]int
	pluginKills int
	died        string
}

func newHarness(t *testing.T, dir string) *harness {
	plugins := filepath.Join(t.TempDir(), "plugins")
	build := exec.Command("go", "build", "-o", plugins+string(filepath.Separator),
		"../../plugins/todo", "../../plugins/imagelimits", "../../plugins/title", "../../plugins/tokenusage")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugins: %v\n%s", err, out)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &harness{T: t, dir: dir, plugins: plugins, random: rand.New(rand.NewPCG(seed, 0)), known: newKnowledge(), troubles: map[trouble]int{}}
}

func (h *harness) report() {
	h.Helper()
	h.Logf("%d acknowledged batches, %d sessions, %d deletions, %d plugin processes killed beside", h.known.acked, len(h.known.created), len(h.known.deleted), h.pluginKills)
	if h.known.acked == 0 {
		h.Error("the children did not do what they are there for")
	}
}

// plan is how a child is to end.
type plan struct {
	// startup: while it opens. Else after some acknowledgements, with the next ones under way.
	startup bool
	// point is the name of a crash point; it ends when it comes there for the time that often says.
	point string
	often int
	// limit: files get no larger than a little more than they are, so that a write comes out short; it is killed after that. full: the disk fills
	// up meanwhile; it is killed while it is full, or a while after there is room again when often is not 0.
	limit, full bool
}

// knowledge is what children said. Lives are named by incarnation.
type knowledge struct {
	created map[string]string
	batches map[string][]ack
	// deleted and deleting: the life is over, or may be.
	deleted, deleting map[string]bool
	acked             int
}

func newKnowledge() *knowledge {
	return &knowledge{created: map[string]string{}, batches: map[string][]ack{}, deleted: map[string]bool{}, deleting: map[string]bool{}}
}

func (k *knowledge) learn(a ack) {
	k.created[a.Incarnation] = a.Session
	switch {
	case a.Deleted:
		k.deleted[a.Incarnation] = true
	case a.Deleting:
		k.deleting[a.Incarnation] = true
	case a.Batch != "":
		k.batches[a.Incarnation] = append(k.batches[a.Incarnation], a)
		k.acked++
	}
}

// run starts a child, sees it killed somewhere on its way, and takes in what it acknowledged until then.
func (h *harness) run(p plan) {
	h.Helper()
	self, err := os.Executable()
	if err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envDir+"="+h.dir, envPlugins+"="+h.plugins, envSeed+"="+strconv.FormatUint(h.random.Uint64()>>1, 10))
	switch {
	case p.point != "":
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s %d", envPoint, p.point, p.often))
	case p.limit:
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", envLimit, largest(h.T, h.dir)+int64(100_000+h.random.IntN(300_000))))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	lines := make(chan ack)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			var a ack
			if json.Unmarshal(sc.Bytes(), &a) == nil { // the last line may be cut off
				lines <- a
			}
		}
	}()
	var early <-chan time.Time
	if p.startup {
		early = time.After(time.Duration(h.random.IntN(150)) * time.Millisecond)
	}
	killed := false
	kill := func() {
		if err := cmd.Process.Kill(); err == nil {
			killed = true
		}
	}
	// left is how many more acknowledgements it has to live for.
	left, murderous, met := 1+h.random.IntN(400), h.random.IntN(3) == 0, map[trouble]int{}
	if p.point != "" || p.limit || p.full {
		left = 1 << 30
	}
	h.died = ""
	for n := 0; ; {
		select {
		case <-early:
			kill()
			continue
		case a, ok := <-lines:
			if !ok {
				err := cmd.Wait()
				if !killed {
					h.Fatalf("the child ended by itself: %v\n%s", err, stderr.String())
				}
				h.emptyDisk()
				for kind := range met {
					h.troubles[kind]++
				}
				return
			}
			switch {
			case a.Dying != "":
				h.died, killed = a.Dying, true
				continue
			case a.Trouble != "":
				if met[a.Trouble]++; met[a.Trouble] != 20 {
					continue
				}
				if p.full && p.often > 0 {
					h.emptyDisk()
					left = 100
				} else {
					kill()
				}
				continue
			}
			h.known.learn(a)
			if n++; p.full && n == 50 {
				h.fillDisk()
			}
			if left--; left == 0 {
				kill()
			} else if murderous && n%50 == 25 {
				h.pluginKills += killOneChild(cmd.Process.Pid, h.random)
			}
		}
	}
}

// largest is the size of the largest file in a directory.
func largest(t *testing.T, dir string) (size int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			size = max(size, info.Size())
		}
	}
	return size
}

func (h *harness) fillDisk() {
	h.Helper()
	f, err := os.Create(h.ballast)
	if err != nil {
		h.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(chunk)
	}
}

func (h *harness) emptyDisk() {
	if h.ballast != "" {
		_ = os.Remove(h.ballast)
	}
}

// bare hides the rows of a store: what is folded over it is folded from zero.
type bare struct{ eventlog.Store }

// verify opens what a child left behind.
func (h *harness) verify(processes bool) {
	t, known := h.T, h.known
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, h.dir, sqlite.Options{})
	if err != nil {
		t.Fatalf("open the store after a kill: %v", err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}()
	check(t, store)
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	zero := host.New(host.Options{Store: bare{store}, Logger: logger})
	defer zero.Close()
	offer(t, zero)
	served := host.New(host.Options{Store: store, Logger: logger})
	if processes {
		if served, err = host.Open(host.Options{Store: store, Logger: logger, Plugins: options(h.plugins)}); err != nil {
			t.Fatal(err)
		}
		if err := served.WaitPlugins(ctx); err != nil {
			t.Fatal(err)
		}
	} else {
		offer(t, served)
	}
	defer served.Close()

	for incarnation, id := range known.created {
		info, err := store.Info(ctx, id)
		var none *eventlog.NotFoundError
		over := known.deleted[incarnation]
		if errors.As(err, &none) || err == nil && info.Incarnation != incarnation {
			if !over && !known.deleting[incarnation] {
				t.Errorf("session %s, incarnation %s, was acknowledged and is gone (%v)", id, incarnation, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("session %s: %v", id, err)
		}
		if over {
			t.Errorf("session %s, incarnation %s, was deleted and is there", id, incarnation)
			continue
		}
		events := read(t, store, info)
		complete(t, id, events, known.batches[incarnation])
		sameSurface(t, served, id, events)
		want, err := zero.Values(ctx, id)
		if err != nil {
			t.Fatalf("folding session %s from zero: %v", id, err)
		}
		got, err := served.Values(ctx, id)
		if err != nil {
			t.Fatalf("the values of session %s: %v", id, err)
		}
		if got.AsOfSeq != want.AsOfSeq || len(got.Unavailable) > 0 || len(want.Values) != 4 {
			t.Errorf("session %s: as of %d, a fold from zero %d; unavailable: %v", id, got.AsOfSeq, want.AsOfSeq, got.Unavailable)
		}
		for key, value := range want.Values {
			if !bytes.Equal(got.Values[key], value) {
				t.Errorf("session %s: %s is %s, from zero %s", id, key, got.Values[key], value)
			}
		}
	}
}

func offer(t *testing.T, h *host.Host) {
	t.Helper()
	for plugin, u := range map[string]sdk.Unit{"imagelimits": limitsunit.New(limitsunit.Default()), "title": titleunit.Projection, "todo": todounit.Projection, "tokenusage": usageunit.Projection} {
		def, err := u.Definition()
		if err == nil {
			_, err = h.Register(plugin, def)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read gives the whole log; it checks that seqs are dense.
func read(t *testing.T, store eventlog.Store, info eventlog.Info) (events []event.Event) {
	t.Helper()
	for ev, err := range eventlog.Scan(context.Background(), store, eventlog.Query{Life: eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}}) {
		if err != nil {
			t.Fatalf("reading session %s: %v", info.Header.ID, err)
		}
		if ev.Seq != int64(len(events)) {
			t.Fatalf("session %s has seq %d where %d belongs", info.Header.ID, ev.Seq, len(events))
		}
		events = append(events, ev)
	}
	if int64(len(events)) != info.Seq {
		t.Errorf("session %s has %d events and says %d", info.Header.ID, len(events), info.Seq)
	}
	return events
}

// complete checks that every acknowledged batch is where it was acknowledged, and that every batch that is there is whole.
func complete(t *testing.T, id string, events []event.Event, acked []ack) {
	t.Helper()
	marks := make([]mark, len(events))
	for i := range events {
		marks[i] = markOf(&events[i])
	}
	for _, a := range acked {
		for i := range a.Size {
			seq := a.First + int64(i)
			if seq >= int64(len(marks)) || marks[seq] != (mark{a.Batch, i, a.Size}) {
				t.Errorf("session %s: event %d of batch %s was acknowledged at seq %d and is not there", id, i, a.Batch, seq)
			}
		}
	}
	seen := map[string]bool{}
	for i := 0; i < len(marks); {
		m := marks[i]
		if m.Batch == "" { // a closer
			i++
			continue
		}
		if seen[m.Batch] {
			t.Errorf("session %s: batch %s is there twice", id, m.Batch)
		}
		seen[m.Batch] = true
		for at := range m.Of {
			if i >= len(marks) || marks[i] != (mark{m.Batch, at, m.Of}) {
				t.Errorf("session %s: batch %s is not whole: %d of %d is not at seq %d", id, m.Batch, at, m.Of, i)
				return
			}
			i++
		}
	}
}

func sameSurface(t *testing.T, h *host.Host, id string, events []event.Event) {
	t.Helper()
	want, err := surface.Fold(func(yield func(event.Draft) bool) {
		for i := range events {
			if !yield(event.Draft{Event: events[i]}) {
				return
			}
		}
	})
	if err != nil {
		t.Fatalf("session %s: its log is not acceptable: %v", id, err)
	}
	s, err := h.Sessions().Open(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got session.SurfaceState
	if got, err = s.Surface().State(context.Background()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Nodes) != fmt.Sprint(want.Nodes) || got.ReplaceGeneration != want.ReplaceGeneration || got.AsOfSeq != int64(len(events))-1 {
		t.Errorf("session %s: the surface is %v, a full fold gives %v", id, got, want)
	}
	if err := s.Detach(context.Background()); err != nil { // so that its values come from rows
		t.Fatal(err)
	}
}
