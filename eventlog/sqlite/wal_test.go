package sqlite

import (
	"fmt"
	"os"
	"testing"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func TestWhenTheWALIsTakenOver(t *testing.T) {
	for _, c := range []struct {
		pages, tried int
		now          bool
		mode         sqlite3.CheckpointMode
	}{
		{0, 0, false, 0}, {99, 0, false, 0}, {100, 0, true, sqlite3.CHECKPOINT_PASSIVE}, {150, 100, false, 0},
		{200, 100, true, sqlite3.CHECKPOINT_PASSIVE}, {799, 699, true, sqlite3.CHECKPOINT_PASSIVE},
		{800, 700, true, sqlite3.CHECKPOINT_RESTART}, {850, 800, false, 0}, {100_000, 0, true, sqlite3.CHECKPOINT_RESTART},
	} {
		if mode, now := walStep(c.pages, c.tried, 100); now != c.now || mode != c.mode {
			t.Errorf("%d pages, %d when last tried: %v, %v", c.pages, c.tried, mode, now)
		}
	}
}

func walSize(t *testing.T, s *Store) int64 {
	t.Helper()
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A reader that takes its time between pages holds nothing: the WAL starts over under it again and again.
func TestALongReadPinsNothing(t *testing.T) {
	const step = 50
	s := reopen(t, memoryDir(t), Options{walPages: step})
	create(t, s, "read", row(0, 60)...)
	create(t, s, "written")
	n, read := int64(0), 0
	for _, err := range eventlog.Scan(t.Context(), s, eventlog.Query{Life: eventlog.Life{ID: "read"}, Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			mustAdd(t, s, "written", row(n, 1)...)
			n++
		}
		if read++; read == 30 {
			// Ten commits change a few pages each, and it is looked at after each of them.
			if size, most := walSize(t, s), int64(2*step*4120); size > most {
				t.Errorf("the WAL has %d bytes after %d commits, more than %d", size, n, most)
			}
		}
	}
	if read != 60 {
		t.Errorf("%d events were read", read)
	}
}

// A foreign program that reads for hours cannot keep appends from going on.
func TestAForeignReaderPinsTheWALAndNoAppend(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{walPages: 10})
	create(t, s, "a")
	c, err := openConn(s.path, s.disk)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.exec("BEGIN"); err != nil {
		t.Fatal(err)
	}
	if n, err := c.number("SELECT count(*) FROM events"); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	for seq := range int64(60) {
		mustAdd(t, s, "a", row(seq, 1)...)
	}
	if n, err := c.number("SELECT count(*) FROM events"); err != nil || n != 0 {
		t.Errorf("the reader sees %d events of later commits (%v)", n, err)
	}
	grown := walSize(t, s)
	if err := c.exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	for seq := range int64(60) {
		mustAdd(t, s, "a", row(60+seq, 1)...)
	}
	if size := walSize(t, s); size > grown+20*4120 {
		t.Errorf("the WAL went on from %d to %d bytes when nobody held it", grown, size)
	}
	holds(t, s, "a", row(0, 120))
}

// Opening does not read the log: it costs the same for a long one and a short one, in pages read.
func TestOpeningDoesNotReadTheLog(t *testing.T) {
	var ops [2]int
	for i, n := range []int{100, 30_000} {
		dir := memoryDir(t)
		s := reopen(t, dir, Options{})
		create(t, s, "a", row(0, n)...)
		closeStore(t, s)
		disk := newBadDisk()
		s = reopen(t, dir, Options{base: disk})
		info, err := s.Info(t.Context(), "a")
		if err != nil || info.Seq != int64(n) {
			t.Fatal(info, err)
		}
		mustAdd(t, s, "a", row(int64(n), 1)...)
		disk.mu.Lock()
		ops[i] = disk.reads
		disk.mu.Unlock()
	}
	// Its indexes are one or two levels deeper.
	if ops[1] > ops[0]+20 {
		t.Errorf("%d pages were read of the long log, %d of the short one", ops[1], ops[0])
	}
}

// A read by types reads the events of those types, and nothing else.
func TestAReadByTypesReadsOnlyThem(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{Readers: 1})
	var events []event.Event
	for seq := range int64(5000) {
		typ := "often"
		if seq%1000 == 500 {
			typ = "rare"
		}
		events = append(events, ev(typ, seq, fmt.Sprintf(`{"n":%d}`, seq)))
	}
	create(t, s, "a", events...)
	steps := func(types ...string) int {
		got, err := read(s, "a", types...)
		if err != nil || len(got) == 0 {
			t.Fatal(len(got), err)
		}
		n := 0
		err = s.readers.read(nowhere, func(r *reader) error {
			for _, st := range []*sqlite3.Stmt{r.events, r.seqs, r.event} {
				n += st.Status(sqlite3.STMTSTATUS_VM_STEP, true)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := steps()
	if rare := steps("rare"); rare*100 > all {
		t.Errorf("%d steps of the engine for 5 events, %d for 5000", rare, all)
	}
}
