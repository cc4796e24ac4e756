package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
	"pgregory.net/rapid"
)

// within runs a test in a bubble, over a world that is closed at its end.
func within(t *testing.T, o Options, defs []unit.Definition, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := given(t, o, defs...)
		defer w.close()
		test(t, w)
	})
}

func units(defs ...unit.Definition) []unit.Definition { return defs }

// TestAColdReadFoldsOnlyWhatItsRowsDoNotCover, of the types that the units fold, and writes back what it found.
func TestAColdReadFoldsOnlyWhatItsRowsDoNotCover(t *testing.T) {
	within(t, Options{}, units(counting("a", "a"), counting("ab", "a", "b")), func(t *testing.T, w *world) {
		log := many(100, "a", "b", "x", "x")
		life := w.store.create(t, "s", log...)
		read := func(when string, events int, full, tail, rows int64) {
			t.Helper()
			w.store.Counts()
			b := w.read("s", "a", counted(log, int64(len(log)-1), "a"), "ab", counted(log, int64(len(log)-1), "a", "b"))
			synctest.Wait()
			if n := w.store.Counts().Read; n != events || b.AsOfSeq != int64(len(log)-1) || b.Historical {
				t.Errorf("%s: %d events were read, want %d; as of %d", when, n, events, b.AsOfSeq)
			}
			if s := w.r.Stats(); s.Full.Load() != full || s.Tail.Load() != tail || s.Rows.Load() != rows {
				t.Errorf("%s: %d full, %d tail, %d rows", when, s.Full.Load(), s.Tail.Load(), s.Rows.Load())
			}
		}
		read("without rows", 50+1, 1, 0, 0) // what is folded, and the last event, which the rows will stand on
		read("with fresh rows", 1, 1, 0, 1)
		more := many(9, "x", "a", "b")
		w.store.append(t, life, 100, more...)
		log = append(log, more...)
		read("with a tail", 6+2, 1, 1, 1)
		read("with fresh rows again", 1, 1, 1, 2)
		if n := len(w.store.cuts()); n != 2 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestAReadOfAnEmptyLogOrOfNothing(t *testing.T) {
	within(t, Options{}, units(counting("n")), func(t *testing.T, w *world) {
		w.store.create(t, "s")
		if b := w.read("s", "n", `{"n":0,"last":-1}`); b.AsOfSeq != -1 {
			t.Errorf("as of %d", b.AsOfSeq)
		}
		var none *eventlog.NotFoundError
		if _, _, err := w.r.Read(t.Context(), "t"); !errors.As(err, &none) {
			t.Errorf("an unknown session: %v", err)
		}
		if _, b, err := w.r.Read(t.Context(), "s", "m"); err != nil || len(b.Values)+len(b.Unavailable) != 0 {
			t.Errorf("an unknown key: %s (%v)", b.AppendJSON(nil), err)
		}
	})
}

// TestADoubtfulRowFoldsAgain: given rows that say something that the log does not, for every reason why they could, the values are those of the log and
// the rows are put right.
func TestADoubtfulRowFoldsAgain(t *testing.T) {
	log := many(60, "a", "b", "x")
	of := func(change func(*unit.Definition)) unit.Definition {
		d := counting("n", "a")
		d.ConfigBound, d.ConfigDigest = true, "c1"
		change(&d)
		return d
	}
	phantom := func(change func(row *registry.Row)) func(*eventlog.RowSet) {
		return func(set *eventlog.RowSet) {
			for i := range set.Rows {
				row, err := Decode(set.Rows[i])
				if err != nil {
					return // it was put right
				}
				row.Val, row.View = json.RawMessage(`{"n":1000,"last":1}`), json.RawMessage(`{"n":1000,"last":1}`)
				change(&row)
				set.Rows[i].Seq, set.Rows[i].Data = row.Seq, encodeRow("n", row)
			}
		}
	}
	raw := func(change func(data []byte) []byte) func(*eventlog.RowSet) {
		return func(set *eventlog.RowSet) {
			for i := range set.Rows {
				set.Rows[i].Data = change(slices.Clone(set.Rows[i].Data))
			}
		}
	}
	for name, c := range map[string]struct {
		then  func(*unit.Definition)
		alter func(*eventlog.RowSet)
	}{
		"a raised state version":     {func(d *unit.Definition) { d.StateVersion++ }, phantom(func(*registry.Row) {})},
		"a changed schema":           {func(d *unit.Definition) { d.StateSchema = json.RawMessage(`{"type":"object"}`) }, phantom(func(*registry.Row) {})},
		"a changed config":           {func(d *unit.Definition) { d.ConfigDigest = "c2" }, phantom(func(*registry.Row) {})},
		"other event types":          {func(d *unit.Definition) { d.Events = []string{"a", "c"} }, phantom(func(*registry.Row) {})},
		"a wrong anchor":             {nil, phantom(func(row *registry.Row) { row.Anchor = "another event" })},
		"another seq":                {nil, phantom(func(row *registry.Row) { row.Seq = 30 })},
		"beyond the head":            {nil, phantom(func(row *registry.Row) { row.Seq = 60 })},
		"a state against its schema": {nil, phantom(func(row *registry.Row) { row.Val = json.RawMessage(`[]`) })},
		"bytes that are cut":         {nil, raw(func(data []byte) []byte { return data[:len(data)/2] })},
		"a row without bytes":        {nil, raw(func([]byte) []byte { return nil })},
		"the row of another key": {nil, func(set *eventlog.RowSet) {
			set.Rows = []eventlog.Row{{Key: "n", Seq: 59, Cut: 59, Data: encodeRow("m", registry.Row{Ver: 1, Seq: 59})}}
		}},
		"no row": {nil, func(set *eventlog.RowSet) { set.Rows = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := given(t, Options{}, of(func(*unit.Definition) {}))
				before.store.create(t, "s", log...)
				before.read("s", "n", counted(log, 59, "a"))
				before.close()
				def := of(func(*unit.Definition) {})
				if c.then != nil {
					c.then(&def)
				}
				w := over(t, before.store, Options{}, def)
				defer w.close()
				w.store.onAlter(c.alter)
				w.store.Counts()
				w.read("s", "n", counted(log, 59, "a"))
				if n := w.store.Counts().Read; n < 20 {
					t.Errorf("%d events were read: it was not folded again", n)
				}
				w.store.onAlter(nil)
				synctest.Wait()
				w.store.Counts()
				w.read("s", "n", counted(log, 59, "a"))
				if n := w.store.Counts().Read; n != 1 {
					t.Errorf("the row was not put right: %d events were read", n)
				}
			})
		})
	}
}

// TestNoByteOfARowCanChangeUnseen: any single byte changed in any row, and the session folds again and is right.
func TestNoByteOfARowCanChangeUnseen(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		log := many(6, "a", "b")
		life := w.store.create(t, "s", log...)
		w.read("s", "n", counted(log, 5, "a"))
		synctest.Wait()
		set, err := w.store.rows.Rows(t.Context(), life)
		if err != nil || len(set.Rows) != 1 {
			t.Fatalf("%v (%v)", set.Rows, err)
		}
		good := set.Rows[0]
		for i := range good.Data {
			bad := good
			for flip := 1; flip < 256; flip++ {
				bad.Data = slices.Clone(good.Data)
				bad.Data[i] ^= byte(flip)
				if row, err := Decode(bad); err == nil {
					t.Fatalf("a row with byte %d changed by %x is taken: %+v", i, flip, row)
				}
			}
			if err := w.store.rows.SaveRows(t.Context(), life, []eventlog.Row{bad}); err != nil {
				t.Fatal(err)
			}
			items, err := w.r.List(t.Context(), []string{"s"})
			if err != nil || len(items[0].Block.Values) != 0 {
				t.Fatalf("a list serves it: %v (%v)", items, err)
			}
			w.read("s", "n", counted(log, 5, "a"))
			synctest.Wait()
		}
	})
}

// TestAnotherLifeSharesNothing: a log that was deleted and made again, shorter and other, has none of the values of the one before, also when that
// happens during a read.
func TestAnotherLifeSharesNothing(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		first := w.store.create(t, "s", many(40, "a")...)
		w.read("s", "n", counted(many(40, "a"), 39))
		synctest.Wait()
		gate := w.store.Hold(logtest.Read)
		done := make(chan registry.Block)
		go func() {
			_, b, err := w.r.Read(context.Background(), "s")
			if err != nil {
				t.Error(err)
			}
			done <- b
		}()
		<-gate.Arrived()
		if err := w.store.Delete(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		w.store.create(t, "s", "b", "a", "b")
		gate.Release()
		if b := <-done; string(b.Values["n"]) != `{"n":1,"last":1}` || b.AsOfSeq != 2 {
			t.Errorf("%s", b.AppendJSON(nil))
		}
	})
}

// Values of two lives are told apart by their revisions alone, whatever way they were read.
func TestALaterLifeIsNewerThanReadsOfTheOneBefore(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		first := w.store.create(t, "s", many(40, "a")...)
		w.units.Deleted("s") // a life before that
		long := w.read("s", "n", counted(many(40, "a"), 39))
		synctest.Wait()
		list := func() registry.Block {
			t.Helper()
			items, err := w.r.List(t.Context(), []string{"s"})
			if err != nil || len(items) != 1 || len(items[0].Block.Values) != 1 {
				t.Fatalf("%+v (%v)", items, err)
			}
			return items[0].Block
		}
		if b := list(); b.Revs["n"] != long.Revs["n"] {
			t.Errorf("a list has revision %d, and a read %d", b.Revs["n"], long.Revs["n"])
		}
		// It is deleted, and made anew, while a list has its rows in hand.
		w.store.onAlter(func(*eventlog.RowSet) {
			w.store.onAlter(nil)
			w.units.Deleted("s")
			if err := w.store.Delete(t.Context(), first); err != nil {
				t.Error(err)
			}
			w.units.Deleted("s")
			w.store.create(t, "s", "a", "a")
		})
		late := list()
		short := w.read("s", "n", counted(many(2, "a"), 1))
		synctest.Wait()
		again := list()
		if long.Revs["n"] >= short.Revs["n"] || late.Revs["n"] >= short.Revs["n"] || again.Revs["n"] != short.Revs["n"] {
			t.Errorf("revisions %d and, late, %d of the life before, and %d and %d of the next one", long.Revs["n"], late.Revs["n"], short.Revs["n"], again.Revs["n"])
		}
	})
}

func TestRowsThatCannotBeReadAreNone(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		life := w.store.create(t, "s", many(40, "a")...)
		w.read("s", "n", counted(many(40, "a"), 39))
		w.store.onLoad(func() error { return errors.New("the rows are away") })
		w.read("s", "n", counted(many(40, "a"), 39))
		if rows := w.r.Rows(t.Context(), life); len(rows.Rows) != 0 || rows.Incarnation != life.Incarnation {
			t.Errorf("%+v", rows)
		}
		items, err := w.r.List(t.Context(), []string{"s", "none"})
		if err != nil || len(items) != 1 || len(items[0].Block.Values) != 0 || items[0].Info.Seq != 40 {
			t.Errorf("%+v (%v)", items, err)
		}
	})
}

func TestReadsAtOnceShareTheWork(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		log := many(50, "a")
		w.store.create(t, "s", log...)
		gate := w.store.Hold(logtest.Read)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, _, err := w.r.Read(ctx, "s")
			left <- err
		}()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { w.read("s", "n", counted(log, 49)) })
		}
		synctest.Wait()
		cancel() // it began the work, perhaps; the others still want it
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left has %v", err)
		}
		gate.Release()
		wg.Wait()
		if n := w.store.Counts().Read; n != 50+1 {
			t.Errorf("%d events were read for six readers", n)
		}
	})
}

func TestTheLastReaderThatLeavesCallsTheWorkOff(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		w.store.create(t, "s", many(50, "a")...)
		gate := w.store.Hold(logtest.Read)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, _, err := w.r.Read(ctx, "s"); !errors.Is(err, context.Canceled) {
					t.Errorf("who left has %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		w.r.wg.Wait() // no work is left, although the gate is shut
		gate.Release()
		w.read("s", "n", counted(many(50, "a"), 49))
	})
}

func TestAClosedReaderSaysSo(t *testing.T) {
	within(t, Options{}, units(counting("n", "a")), func(t *testing.T, w *world) {
		w.store.create(t, "s", "a")
		gate := w.store.Hold(logtest.Read)
		defer gate.Release()
		failed := make(chan error)
		go func() {
			_, _, err := w.r.Read(context.Background(), "s")
			failed <- err
		}()
		synctest.Wait()
		w.r.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("a read under way: %v", err)
		}
		if _, _, err := w.r.Read(t.Context(), "s"); !errors.Is(err, ErrClosed) {
			t.Errorf("a later one: %v", err)
		}
	})
}

// TestALongBuildNamesWhatIsMissing: given a unit that is new to a long log and slow, the first reader gets the others after its wait, with how far the new
// one has come; the work goes on, and a later reader has all.
func TestALongBuildNamesWhatIsMissing(t *testing.T) {
	slow := counting("slow", "a")
	slow.Inline = counter{slow: func(int64) { time.Sleep(10 * time.Millisecond) }}
	within(t, Options{PastEvery: 100, ReadWait: 2 * time.Second}, units(counting("quick", "a")), func(t *testing.T, w *world) {
		log := many(1000, "a")
		life := w.store.create(t, "s", log...)
		w.read("s", "quick", counted(log, 999))
		synctest.Wait()
		w.register(slow)
		began := time.Now()
		b := w.read("s", "quick", counted(log, 999))
		if took := time.Since(began); took != 2*time.Second || w.r.Stats().Late.Load() != 1 {
			t.Errorf("it waited %v", took)
		}
		if u := b.Unavailable["slow"]; u.Code != registry.Behind || u.Seq != 99 && u.Seq != 199 || len(b.Unavailable) != 1 {
			t.Errorf("slow: %+v", u)
		}
		synctest.Wait()
		// What was done is in the rows already: a host that dies now goes on from there.
		if row := w.r.Rows(t.Context(), life).Rows["slow"]; row.Seq < 99 {
			t.Errorf("the row stands at %d", row.Seq)
		}
		time.Sleep(8 * time.Second)
		synctest.Wait()
		w.store.Counts()
		w.read("s", "quick", counted(log, 999), "slow", counted(log, 999))
		if n := w.store.Counts().Read; n != 1 {
			t.Errorf("the build was not written back: %d events were read", n)
		}
		if row, ok, err := w.store.PastRow(t.Context(), life, "slow", 550); err != nil || !ok || row.Seq != 499 {
			t.Errorf("kept for the past: %+v, %v, %v", row, ok, err)
		}
	})
}

// TestOnlySoManyBuildsGoOn: beyond Builders the work ends with its readers, and what was done of it is not lost.
func TestOnlySoManyBuildsGoOn(t *testing.T) {
	var folds atomic.Int64
	slow := counting("slow", "a")
	slow.Inline = counter{slow: func(int64) { folds.Add(1); time.Sleep(10 * time.Millisecond) }}
	within(t, Options{PastEvery: 50, ReadWait: time.Second, Builders: 1}, units(slow), func(t *testing.T, w *world) {
		log := many(500, "a")
		w.store.create(t, "first", log...)
		w.store.create(t, "second", log...)
		w.read("first")
		b := w.read("second")
		if u := b.Unavailable["slow"]; u.Seq < 49 {
			t.Errorf("%+v", u)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := folds.Load(); n < 600 || n > 670 {
			t.Errorf("%d events were folded: both builds went on, or none", n)
		}
		w.read("first", "slow", counted(log, 499))
		for range 6 {
			_, b, err := w.r.Read(t.Context(), "second")
			if err != nil {
				t.Fatal(err)
			}
			if b.Values["slow"] != nil {
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("a reader that comes again never has the value")
	})
}

func TestAListReadsNoEventAndSaysTheLowestSeq(t *testing.T) {
	asked := atomic.Int64{}
	def := counting("n", "a")
	def.Inline = counter{slow: func(int64) { asked.Add(1) }}
	within(t, Options{}, units(def, counting("m", "b")), func(t *testing.T, w *world) {
		for _, id := range []string{"s", "t", "u"} {
			life := w.store.create(t, id, many(10, "a", "b")...)
			if id == "u" {
				continue
			}
			w.read(id, "n", counted(many(10, "a", "b"), 9, "a"), "m", counted(many(10, "a", "b"), 9, "b"))
			w.store.append(t, life, 10, "a", "b")
		}
		if _, _, err := w.r.Read(t.Context(), "t", "m"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.store.Counts()
		asked.Store(0)
		items, err := w.r.List(t.Context(), []string{"u", "t", "none", "s"})
		if err != nil || len(items) != 3 {
			t.Fatalf("%+v (%v)", items, err)
		}
		for i, want := range []string{`u -1 0`, `t 9 2`, `s 9 2`} {
			if got := fmt.Sprint(items[i].Info.Header.ID, " ", items[i].Block.AsOfSeq, " ", len(items[i].Block.Values)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if v := string(items[1].Block.Values["m"]); v != `{"n":6,"last":11}` {
			t.Errorf("m of t is %s", v)
		}
		if items, err := w.r.List(t.Context(), []string{"t"}, "m"); err != nil || items[0].Block.AsOfSeq != 11 || len(items[0].Block.Values) != 1 {
			t.Errorf("narrowed: %+v (%v)", items, err)
		}
		if c := w.store.Counts(); c.Read != 0 || len(c.Calls) != 0 || asked.Load() != 0 {
			t.Errorf("a list read %d events by %v and folded %d", c.Read, c.Calls, asked.Load())
		}
	})
}

func TestThePastBeginsFromWhatWasKept(t *testing.T) {
	within(t, Options{PastEvery: 100}, units(counting("n", "a")), func(t *testing.T, w *world) {
		log := many(1000, "a", "b")
		w.store.create(t, "s", log...)
		w.read("s", "n", counted(log, 999, "a")) // leg by leg
		synctest.Wait()
		for seq, events := range map[int64]int{-1: 0, 0: 1, 50: 26, 99: 1, 149: 25 + 1, 555: 28 + 1, 998: 50 + 1, 999: 1} {
			w.store.Counts()
			_, b, err := w.r.At(t.Context(), "s", seq)
			if err != nil || string(b.Values["n"]) != counted(log, seq, "a") || b.AsOfSeq != seq || !b.Historical {
				t.Errorf("at %d: %s (%v)", seq, b.AppendJSON(nil), err)
			}
			if n := w.store.Counts().Read; n != events {
				t.Errorf("at %d: %d events were read, want %d", seq, n, events)
			}
		}
		for _, seq := range []int64{-2, 1000} {
			var out *registry.SeqRangeError
			if _, _, err := w.r.At(t.Context(), "s", seq); !errors.As(err, &out) || out.Head != 999 {
				t.Errorf("at %d: %v", seq, err)
			}
		}
	})
}

// TestWhateverTheRowsAReadIsTheFold: random logs, appended to and read cold by hosts with other units, in legs of any length, with rows that get lost.
func TestWhateverTheRowsAReadIsTheFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := newStore(t)
		var log []string
		life := store.create(t, "s")
		for range rapid.IntRange(1, 5).Draw(rt, "hosts") {
			types := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "x"}), 0, 40).Draw(rt, "types")
			if len(types) > 0 {
				store.append(t, life, int64(len(log)), types...)
				log = append(log, types...)
			}
			if rapid.IntRange(0, 4).Draw(rt, "lose") == 0 {
				if err := store.DropRows(context.Background(), life, "a"); err != nil {
					rt.Fatal(err)
				}
			}
			keys := map[string][]string{}
			o := Options{PastEvery: rapid.Int64Range(1, 20).Draw(rt, "leg")}
			w := over(t, store, o)
			for key, types := range map[string][]string{"a": {"a"}, "ab": {"a", "b"}, "all": nil} {
				if rapid.Bool().Draw(rt, "has "+key) {
					def := counting(key, types...)
					def.StateVersion = int64(rapid.IntRange(1, 2).Draw(rt, "version"))
					w.register(def)
					keys[key] = types
				}
			}
			head := int64(len(log)) - 1
			at := rapid.Int64Range(-1, head).Draw(rt, "at")
			_, now, err1 := w.r.Read(context.Background(), "s")
			_, past, err2 := w.r.At(context.Background(), "s", at)
			report, err3 := w.r.Verify(context.Background(), "s", nil)
			w.close()
			if err := errors.Join(err1, err2, err3); err != nil {
				rt.Fatal(err)
			}
			for key, types := range keys {
				if got, want := string(now.Values[key]), counted(log, head, types...); got != want {
					rt.Fatalf("%s at the head %d is %s, want %s", key, head, got, want)
				}
				if got, want := string(past.Values[key]), counted(log, at, types...); got != want {
					rt.Fatalf("%s at %d is %s, want %s", key, at, got, want)
				}
			}
			if len(now.Values) != len(keys) || len(report.Differences) != 0 || len(report.Keys) != len(keys) {
				rt.Fatalf("%d values, %d keys, report %+v", len(now.Values), len(keys), report)
			}
		}
	})
}

// TestVerifySaysWhatIsServedWrongly: given rows that no fold gives and that nothing gives away, the report names the values that a list and a read serve.
func TestVerifySaysWhatIsServedWrongly(t *testing.T) {
	within(t, Options{}, units(counting("n", "a"), counting("m", "a")), func(t *testing.T, w *world) {
		log := many(10, "a")
		life := w.store.create(t, "s", log...)
		w.read("s", "n", counted(log, 9), "m", counted(log, 9))
		synctest.Wait()
		w.store.append(t, life, 10, "a")
		rows := w.r.Rows(t.Context(), life)
		row := rows.Rows["n"]
		row.Val, row.View = json.RawMessage(`{"n":77,"last":9}`), json.RawMessage(`{"n":78,"last":9}`)
		if err := w.store.rows.SaveRows(t.Context(), life, encode(map[string]registry.Row{"n": row}, 9)); err != nil {
			t.Fatal(err)
		}
		before := len(w.store.cuts())
		report, err := w.r.Verify(t.Context(), "s", nil)
		if err != nil || fmt.Sprint(report.Keys) != "[m n]" || len(report.Unavailable) != 0 {
			t.Fatalf("%+v (%v)", report, err)
		}
		var got []string
		for _, d := range report.Differences {
			got = append(got, fmt.Sprintf("%s@%d %s %s not %s", d.Key, d.Seq, d.What, d.Served, d.Folded))
		}
		want := []string{
			`n@9 row state {"n":77,"last":9} not {"n":10,"last":9}`, `n@9 row value {"n":78,"last":9} not {"n":10,"last":9}`,
			`n@10 value {"n":78,"last":10} not {"n":11,"last":10}`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q", got)
		}
		synctest.Wait()
		if len(w.store.cuts()) != before {
			t.Error("verifying wrote something")
		}
	})
}
