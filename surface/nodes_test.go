package surface

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// check requires what the other functions of nodeList rely on, and what keeps them fast.
func (l *nodeList) check(t *rapid.T, want []int64) {
	if got := l.appendTo(nil); !slices.Equal(got, want) || l.len != len(want) {
		t.Fatalf("got %v (%d), want %v", got, l.len, want)
	}
	for i, b := range l.blocks {
		switch {
		case len(b.seqs) == 0 || len(b.seqs) > blockSize:
			t.Fatalf("block %d holds %d nodes", i, len(b.seqs))
		case b.min != slices.Min(b.seqs) || b.max != slices.Max(b.seqs):
			t.Fatalf("block %d has bounds %d..%d", i, b.min, b.max)
		case i > 0 && len(l.blocks[i-1].seqs)+len(b.seqs) <= blockSize/2:
			t.Fatalf("blocks %d and %d could be one", i-1, i)
		}
	}
}

func TestBlocksStayWholeAndFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l nodeList
		var model []int64
		next := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.SampledFrom([]int{0, 1, 40, blockSize, 3 * blockSize}).Draw(t, "appends") {
				l.append(next)
				model = append(model, next)
				next++
			}
			if len(model) == 0 {
				continue
			}
			// Whole blocks come off often, since their ends are where it is easy to be wrong.
			i := rapid.IntRange(0, len(model)-1).Draw(t, "start")
			if rapid.Bool().Draw(t, "aligned") {
				i -= i % blockSize
			}
			j := min(i+rapid.SampledFrom([]int{0, 1, 100, blockSize - 1, blockSize, 2*blockSize - 1, 1000}).Draw(t, "width"), len(model)-1)
			from, ok := l.find(model[i])
			to, found := l.find(model[j])
			if !ok || !found || l.position(from) != i || l.position(to) != j || to.after(from) != (i < j) {
				t.Fatalf("found %v (%d) and %v (%d), want %d and %d", from, l.position(from), to, l.position(to), i, j)
			}
			if got := l.appendRange(nil, from, to); !slices.Equal(got, model[i:j+1]) {
				t.Fatalf("range %d..%d is %v", i, j, got)
			}
			l.replace(from, to, next)
			model = slices.Replace(model, i, j+1, next)
			next++
			l.check(t, model)
		}
	})
}
