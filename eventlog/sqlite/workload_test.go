package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// A workload changes a store from several goroutines, each with logs of its own, and reports in lines: "try …" before a change and the same without "try" when it
// was acknowledged. What the lines say can be compared with what is there after whatever happened.
//
//	create ID LENGTH  append ID LENGTH KEY  row ID CUT  drop ID  delete ID
//
// Every event says which batch it belongs to and how many that has, so that half a batch can be told.
type workload struct {
	s       *Store
	seed    uint64
	workers int
	report  func(line string)
}

func batch(from int64, n int) (events []event.Event) {
	for i := range n {
		e := ev(fmt.Sprint("t", i%3), from+int64(i), fmt.Sprintf(`{"first":%d,"i":%d,"of":%d,"pad":"%s"}`, from, i, n, strings.Repeat("p", int(from+int64(i))%300)))
		if i == 0 {
			e.Sources = []int64{from}
		}
		events = append(events, e)
	}
	return events
}

// run works until something fails or stop says so, and gives the failures.
func (w *workload) run(stop func() bool) error {
	var wg sync.WaitGroup
	errs := make([]error, w.workers)
	for i := range w.workers {
		wg.Go(func() { errs[i] = w.work(i, stop) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *workload) work(worker int, stop func() bool) error {
	random := rand.New(rand.NewPCG(w.seed, uint64(worker)))
	lengths, err := w.lengths(worker)
	if err != nil {
		return err
	}
	for !stop() {
		id := fmt.Sprintf("w%d-%d", worker, random.IntN(4))
		length, there := lengths[id]
		life := eventlog.Life{ID: id}
		switch n := random.IntN(100); {
		case !there:
			n := random.IntN(6)
			if random.IntN(12) == 0 {
				n = stagePage + random.IntN(50)
			}
			line := fmt.Sprintf("create %s %d", id, n)
			w.report("try " + line)
			_, err := w.s.Create(nowhere, eventlog.Creation{Header: event.Header{ID: id}, Events: pull(batch(0, n))})
			if err != nil {
				return err
			}
			lengths[id] = int64(n)
			w.report(line)
		case n < 4:
			w.report("try delete " + id)
			if err := w.s.Delete(nowhere, life); err != nil {
				return err
			}
			delete(lengths, id)
			w.report("delete " + id)
		case n < 20 && length > 0:
			row := eventlog.Row{Key: "n", Cut: length - 1, Seq: length - 1, Data: []byte(strings.Repeat(fmt.Sprint("row ", length-1, " "), 200))}
			w.report("try row " + id)
			if err := errors.Join(w.s.SaveRows(nowhere, life, []eventlog.Row{row}), w.s.SavePast(nowhere, life, []eventlog.Row{row})); err != nil {
				return err
			}
			w.report(fmt.Sprintf("row %s %d", id, length-1))
		case n < 24:
			w.report("try drop " + id)
			if err := w.s.DropRows(nowhere, life); err != nil {
				return err
			}
			w.report("drop " + id)
		default:
			events := batch(length, 1+random.IntN(5))
			key := fmt.Sprint("k", length)
			line := fmt.Sprintf("append %s %d %s", id, length+int64(len(events)), key)
			w.report("try " + line)
			if _, err := w.s.Append(nowhere, eventlog.Batch{Life: life, Events: events, Key: key, Digest: "d"}); err != nil {
				return err
			}
			lengths[id] = length + int64(len(events))
			w.report(line)
		}
	}
	return nil
}

// lengths finds the logs that the worker left when it last worked.
func (w *workload) lengths(worker int) (map[string]int64, error) {
	lengths := map[string]int64{}
	for k := range 4 {
		info, err := w.s.Info(nowhere, fmt.Sprintf("w%d-%d", worker, k))
		if _, none := errors.AsType[*eventlog.NotFoundError](err); none {
			continue
		}
		if err != nil {
			return nil, err
		}
		lengths[info.Header.ID] = info.Seq
	}
	return lengths, nil
}

// ledger is what the lines of a workload promise, over any number of its runs.
type ledger struct {
	mu   sync.Mutex
	logs map[string]*promise
	n    int
}

// promise is what must be there of one log.
type promise struct {
	there, mayGo, mayCome bool
	length                int64
	key                   string
	// row is the cut of one that must be there, dropped that none can be.
	row     int64
	dropped bool
}

func newLedger() *ledger { return &ledger{logs: map[string]*promise{}} }

func (l *ledger) take(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	part := strings.Fields(line)
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(part[i], 10, 64)
		return n
	}
	trying := part[0] == "try"
	if trying {
		part = part[1:]
	}
	p := l.logs[part[1]]
	if p == nil {
		p = &promise{row: -1}
		l.logs[part[1]] = p
	}
	switch what := part[0]; {
	case what == "create" && trying:
		p.mayCome = true
	case what == "delete" && trying:
		p.mayGo = true
	case what == "create":
		*p = promise{there: true, length: number(2), row: -1}
	case what == "delete":
		*p = promise{row: -1}
	case what == "append" && !trying:
		p.length, p.key = number(2), part[3]
	case what == "row" && trying:
		p.dropped = false
	case what == "row":
		p.row = number(2)
	case what == "drop":
		p.row, p.dropped = -1, !trying
	}
}

// check compares a store with what was promised, and takes what is there for promised from then on.
func (l *ledger) check(t testing.TB, s *Store, durability Durability) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.logs {
		info, err := s.Info(nowhere, id)
		if _, none := errors.AsType[*eventlog.NotFoundError](err); none {
			if p.there && !p.mayGo && durability == Full {
				t.Errorf("%s is lost", id)
			}
			*p = promise{row: -1}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if !p.there && !p.mayCome && durability == Full {
			t.Errorf("%s is back", id)
		}
		length, key := l.checkLog(t, s, info)
		if length < p.length && !p.mayGo && durability == Full {
			t.Errorf("%s has %d events, %d were acknowledged", id, length, p.length)
		}
		if durability == Full && p.there && !p.mayGo {
			l.checkExtras(t, s, id, p)
		}
		*p = promise{there: true, length: length, key: key, row: -1}
	}
	logs := 0
	for _, p := range l.logs {
		if p.there {
			logs++
		}
	}
	if page, err := s.List(nowhere, eventlog.ListQuery{}); err != nil || len(page.Logs) != logs {
		t.Errorf("%d logs are listed, there are %d (%v)", len(page.Logs), logs, err)
	}
}

// checkLog reads a log every way there is.
func (l *ledger) checkLog(t testing.TB, s *Store, info eventlog.Info) (length int64, key string) {
	t.Helper()
	id := info.Header.ID
	events, err := read(s, id)
	if err != nil {
		t.Errorf("reading %s: %v", id, err)
		return 0, ""
	}
	if int64(len(events)) != info.Seq {
		t.Errorf("%s has %d events, its head says %d", id, len(events), info.Seq)
	}
	for length < int64(len(events)) {
		first := events[length]
		want := batch(length, int(ofBatch(first)))
		got := events[length:min(length+int64(len(want)), int64(len(events)))]
		if !slices.EqualFunc(got, want, func(a, b event.Event) bool {
			return string(a.AppendJSON(nil)) == string(b.AppendJSON(nil))
		}) {
			t.Errorf("%s has half a batch, or another, at %d", id, length)
			return length, key
		}
		if length > 0 {
			key = fmt.Sprint("k", length)
		}
		length += int64(len(want))
	}
	typed, err := read(s, id, "t0", "t1", "t2")
	if err != nil || len(typed) != len(events) {
		t.Errorf("%s has %d events by type, %d in all (%v)", id, len(typed), len(events), err)
	}
	return length, key
}

func ofBatch(e event.Event) (n int64) {
	_, rest, _ := strings.Cut(string(e.Data), `"of":`)
	digits, _, _ := strings.Cut(rest, ",")
	n, _ = strconv.ParseInt(digits, 10, 64)
	return max(n, 1)
}

func (l *ledger) checkExtras(t testing.TB, s *Store, id string, p *promise) {
	t.Helper()
	if p.key != "" {
		if k, ok, err := s.Lookup(nowhere, eventlog.Life{ID: id}, p.key); err != nil || !ok || k.Commit.Seq != p.length {
			t.Errorf("key %s of %s: %+v, %v, %v", p.key, id, k, ok, err)
		}
	}
	if p.row < 0 && !p.dropped {
		return
	}
	set, err := s.Rows(nowhere, eventlog.Life{ID: id})
	if p.dropped {
		past, ok, pastErr := s.PastRow(nowhere, eventlog.Life{ID: id}, "n", 1<<40)
		if len(set.Rows) > 0 || ok || err != nil || pastErr != nil {
			t.Errorf("the rows of %s were dropped, and %d are there (%v), and a past one at %d: %v (%v)", id, len(set.Rows), err, past.Seq, ok, pastErr)
		}
		return
	}
	if err != nil || len(set.Rows) != 1 || set.Rows[0].Cut < p.row || set.Rows[0].Cut >= set.Info.Seq ||
		!strings.HasPrefix(string(set.Rows[0].Data), fmt.Sprint("row ", set.Rows[0].Cut, " ")) {
		t.Errorf("the row of %s: %d rows, %v; one of cut %d was acknowledged", id, len(set.Rows), err, p.row)
	}
	past, ok, err := s.PastRow(nowhere, eventlog.Life{ID: id}, "n", p.row)
	if err != nil || !ok || past.Seq != p.row {
		t.Errorf("the past row of %s at %d: %d, %v, %v", id, p.row, past.Seq, ok, err)
	}
}
