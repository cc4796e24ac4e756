package bench

import (
	"fmt"
	"os"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	b.Run("units=0", Append(0))
	b.Run("units=1", Append(1))
	b.Run("units=64", Append(64))
}

func BenchmarkAppendFolded(b *testing.B) {
	b.Run("units=1", AppendFolded(1))
	b.Run("units=12", AppendFolded(12))
}

func BenchmarkSnapshot(b *testing.B) {
	b.Run("events=1000", Snapshot(1_000))
	b.Run("events=100000", Snapshot(100_000))
}

func BenchmarkAcceptance(b *testing.B) { Acceptance(b) }

func BenchmarkSurface(b *testing.B) {
	b.Run("appends", Surface(Nowhere))
	b.Run("replace=tail", Surface(Tail))
	b.Run("replace=middle", Surface(Middle))
	b.Run("replace=head", Surface(Head))
}

func BenchmarkBuild(b *testing.B) {
	b.Run("todos", BuildTodos)
	b.Run("own", BuildOwn)
	b.Run("everything", BuildEverything)
	b.Run("typed", BuildTyped)
}

func BenchmarkOpen(b *testing.B) { Open(b) }

func BenchmarkHeap(b *testing.B) { Heap(b) }

func BenchmarkStoredAppend(b *testing.B) {
	b.Run("one", StoredAppend(1, 1))
	b.Run("64 on 64 sessions", StoredAppend(64, 64))
	b.Run("64 on one session", StoredAppend(1, 64))
}

func BenchmarkColdValues(b *testing.B) {
	b.Run("rows,events=10000", ColdValues(10_000, true))
	b.Run("rows,events=100000", ColdValues(100_000, true))
	b.Run("rows,events=1000000", ColdValues(1_000_000, true))
	b.Run("from zero,events=100000", ColdValues(100_000, false))
}

func BenchmarkOpenToAppend(b *testing.B) { OpenToAppend(1_000_000)(b) }

func BenchmarkListPage(b *testing.B) { ListPage(b) }

func BenchmarkStoredHeap(b *testing.B) { StoredHeap(b) }

func BenchmarkImport(b *testing.B) { Import(b) }

func BenchmarkExport(b *testing.B) { Export(b) }

func BenchmarkServedAppend(b *testing.B) {
	b.Run("one", ServedAppend(1, 0))
	b.Run("one, now and then", ServedAppend(1, NowAndThen))
	b.Run("64 on 64 sessions", ServedAppend(64, 0))
	b.Run("called, one", CalledAppend(1, 0))
	b.Run("called, one, now and then", CalledAppend(1, NowAndThen))
	b.Run("called, 64 on 64 sessions", CalledAppend(64, 0))
	b.Run("bare, one", BareAppend(1))
	b.Run("bare, 64 on 64 sessions", BareAppend(64))
	b.Run("barest, one", BarestAppend)
}

func BenchmarkServedHistory(b *testing.B) { ServedHistory(b) }

func BenchmarkFanOut(b *testing.B) {
	b.Run("events", FanOut(0))
	b.Run("events and values", FanOut(1))
	b.Run("streams of 20 sessions", FanOutMany)
	b.Run("bare", BareFanOut)
}

func BenchmarkIdleStreams(b *testing.B) {
	b.Run("server", IdleStreams)
	b.Run("bare", BareIdleStreams)
}

func BenchmarkBesideStalled(b *testing.B) {
	b.Run("none", BesideStalled(0))
	b.Run("one", BesideStalled(1))
}

func TestMain(m *testing.M) {
	if Clients() {
		return
	}
	code := m.Run()
	if err := Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
