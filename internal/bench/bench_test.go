package bench

import "testing"

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
