package sqlite

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/foldhost/foldhost/internal/crashpoint"
)

// appendAndReport is the child that gets killed: it works on a store and reports. childKill says where it kills itself: at the nth time it comes to a point in the code,
// "point NAME N", or in the middle of the nth write to a file, "write SUFFIX N"; it says so first. Otherwise somebody else kills it.
func appendAndReport(dir string) error {
	seed, _ := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.WriteString(line + "\n")
		_ = out.Flush()
	}
	var o Options
	// Small, so that it is taken over often, and that rows are dropped in several changes.
	o.walPages, o.dropSlice = 40, 2
	if kill := strings.Fields(os.Getenv(childKill)); len(kill) == 3 {
		nth, _ := strconv.Atoi(kill[2])
		var counting sync.Mutex
		die := func() {
			counting.Lock()
			defer counting.Unlock()
			if nth--; nth == 0 {
				say("dying at " + kill[1])
				killSelf()
			}
		}
		switch kill[0] {
		case "point":
			crashpoint.Set(func(name string) {
				if name == kill[1] {
					die()
				}
			})
		case "write":
			o.base = &mortalDisk{vfs.Find("os").(vfs.VFSFilename), kill[1], die}
		}
	}
	s, err := Open(nowhere, dir, o)
	if err != nil {
		return err
	}
	w := workload{s: s, seed: seed, workers: 4, report: say}
	n := 0
	err = w.run(func() bool {
		mu.Lock()
		defer mu.Unlock()
		n++
		return n > 4000
	})
	if err != nil {
		return err
	}
	return s.Close()
}

func killSelf() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// mortalDisk kills the process in the middle of a write.
type mortalDisk struct {
	vfs.VFSFilename
	suffix string
	die    func()
}

func (d *mortalDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil || !strings.HasSuffix(name.String(), d.suffix) {
		return f, flags, err
	}
	return &mortalFile{f.(diskFile), d.die}, flags, nil
}

type mortalFile struct {
	diskFile
	die func()
}

func (f *mortalFile) WriteAt(p []byte, off int64) (int, error) {
	half := len(p) / 2
	if _, err := f.diskFile.WriteAt(p[:half], off); err != nil {
		return 0, err
	}
	f.die()
	n, err := f.diskFile.WriteAt(p[half:], off+int64(half))
	return half + n, err
}

// killed runs a child on a directory until it dies, or for so many lines, and says whether it told that it was dying.
func killed(t *testing.T, dir, kill string, seed uint64, lines int, book *ledger) (told bool) {
	t.Helper()
	p := start(t, "append", dir, childKill+"="+kill, fmt.Sprint(childSeed, "=", seed))
	n := 0
	for line := p.line(); line != ""; line = p.line() {
		if strings.HasPrefix(line, "dying at ") {
			told = true
			continue
		}
		book.take(line)
		if n++; n == lines {
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			// What it had said already was acknowledged too.
		}
	}
	err := p.cmd.Wait()
	if said := p.said.String(); said != "" {
		t.Fatalf("the child said %s (%v)", said, err)
	}
	return told
}

// crashPoints are the named points of the package, and about how often a child comes to each.
var crashPoints = map[string]int{
	"start": 1, "group/applied": 300, "group/commit": 300, "group/committed": 300, "append/event": 1000, "create/stage": 3, "create/log": 10,
	"delete": 10, "sweep": 20, "rows/row": 100, "rows/drop": 30, "fold": 20, "folded": 20, "create/made": 1, "create/moved": 1, "migrate": 1,
	"close": 1, "restore/made": 1,
}

func TestEveryCrashPointIsTried(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, call := range regexp.MustCompile(`\bcrashpoint\.Reach\("([^"]+)"\)`).FindAllStringSubmatch(string(source), -1) {
			if found++; crashPoints[call[1]] == 0 {
				t.Errorf("%s: nothing is killed at %q", path, call[1])
			}
		}
	}
	if found != len(crashPoints) {
		t.Errorf("the code has %d points, %d are tried", found, len(crashPoints))
	}
}

// The process is killed at every named point, again and again on one store. After each start all that it had acknowledged is there, nothing is half there, and it goes on from there.
func TestKilledAtNamedPoints(t *testing.T) {
	notUnderRace(t)
	dir, book := memoryDir(t), newLedger()
	random := rand.New(rand.NewPCG(1, 2))
	round := uint64(0)
	for name, often := range crashPoints {
		for range tortureRounds(1) {
			round++
			if strings.HasPrefix(name, "create/m") || name == "migrate" {
				killedWhileMaking(t, name)
				continue
			}
			if name == "restore/made" {
				continue // TestKilledWhileRestoring
			}
			for !killed(t, dir, fmt.Sprint("point ", name, " ", 1+random.IntN(often)), round, -1, book) {
				round++ // it had done its work before it came there so often
			}
			s := reopen(t, dir, Options{})
			book.check(t, s, Full)
			clean(t, s)
			closeStore(t, s)
			if t.Failed() {
				t.Fatalf("after %s in round %d", name, round)
			}
		}
	}
}

func killedWhileMaking(t *testing.T, name string) {
	t.Helper()
	dir := memoryDir(t)
	if !killed(t, dir, "point "+name+" 1", 1, -1, newLedger()) {
		t.Fatalf("a store was made without coming to %s", name)
	}
	s := reopen(t, dir, Options{})
	create(t, s, "a", row(0, 3)...)
	holds(t, s, "a", row(0, 3))
}

func TestKilledInTheMiddleOfAWrite(t *testing.T) {
	notUnderRace(t)
	dir, book := memoryDir(t), newLedger()
	random := rand.New(rand.NewPCG(3, 4))
	fired := map[string]int{}
	for round := range uint64(tortureRounds(8)) {
		suffix, often := "-wal", 3000
		if round%2 == 1 {
			suffix, often = dbName, 300
		}
		if !killed(t, dir, fmt.Sprint("write ", suffix, " ", 1+random.IntN(often)), round, -1, book) {
			continue
		}
		fired[suffix]++
		s := reopen(t, dir, Options{})
		book.check(t, s, Full)
		clean(t, s)
		closeStore(t, s)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if len(fired) != 2 {
		t.Errorf("killed in writes to %v only", fired)
	}
}

func TestKilledAtAnyTime(t *testing.T) {
	notUnderRace(t)
	dir, book := memoryDir(t), newLedger()
	random := rand.New(rand.NewPCG(5, 6))
	for round := range uint64(tortureRounds(8)) {
		killed(t, dir, "", round, 1+random.IntN(1500), book)
		s := reopen(t, dir, Options{})
		book.check(t, s, Full)
		clean(t, s)
		// Sometimes the next process finds what this one left unclean.
		if round%2 == 0 {
			closeStore(t, s)
		} else {
			end(s)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// tortureRounds is how often a test kills, more when asked for.
func tortureRounds(usual int) int {
	n, err := strconv.Atoi(os.Getenv("FOLDHOST_TORTURE"))
	if err != nil || n < 1 {
		return usual
	}
	return usual * n
}
