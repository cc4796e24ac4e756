package surface

import "slices"

// blockSize is how many nodes a block holds at most. A replacement moves and searches within a block (2 KiB, some tens of
// nanoseconds) and looks at the bounds of all blocks: 400 for 100,000 nodes.
const blockSize = 256

// nodeList is the ordered list of nodes in blocks, so that a replacement costs about the same wherever its range stands,
// and a node is found without an index that would have to grow with the log.
type nodeList struct {
	blocks []block
	len    int
}

// block is a run of nodes, never empty. min and max bound its seqs, so that a search passes over most blocks.
type block struct {
	min, max int64
	seqs     []int64
}

// place is where a node stands.
type place struct{ block, index int }

func (p place) after(q place) bool {
	return p.block > q.block || p.block == q.block && p.index > q.index
}

func (l *nodeList) append(seq int64) {
	l.len++
	if n := len(l.blocks); n > 0 {
		if last := &l.blocks[n-1]; len(last.seqs) < blockSize {
			last.seqs = append(last.seqs, seq)
			last.min, last.max = min(last.min, seq), max(last.max, seq)
			return
		}
		// The first block grows as it needs to, since most surfaces are short; the others get their size at once.
		l.blocks = append(l.blocks, block{seq, seq, append(make([]int64, 0, blockSize), seq)})
		return
	}
	l.blocks = append(l.blocks, block{seq, seq, []int64{seq}})
}

// find searches from the end, since most replacements are of recent nodes.
func (l *nodeList) find(seq int64) (place, bool) {
	for i := len(l.blocks) - 1; i >= 0; i-- {
		if b := &l.blocks[i]; b.min <= seq && seq <= b.max {
			if j := slices.Index(b.seqs, seq); j >= 0 {
				return place{i, j}, true
			}
		}
	}
	return place{}, false
}

// position is the index of a place in the whole list.
func (l *nodeList) position(p place) int {
	n := p.index
	for _, b := range l.blocks[:p.block] {
		n += len(b.seqs)
	}
	return n
}

// runs calls yield for the nodes between two places, both inclusive, run by run.
func (l *nodeList) runs(from, to place, yield func(run []int64)) {
	for i := from.block; i <= to.block; i++ {
		run := l.blocks[i].seqs
		if i == to.block {
			run = run[:to.index+1]
		}
		if i == from.block {
			run = run[from.index:]
		}
		yield(run)
	}
}

func (l *nodeList) appendRange(dst []int64, from, to place) []int64 {
	l.runs(from, to, func(run []int64) { dst = append(dst, run...) })
	return dst
}

func (l *nodeList) appendTo(dst []int64) []int64 {
	for i := range l.blocks {
		dst = append(dst, l.blocks[i].seqs...)
	}
	return dst
}

// replace puts seq in the place of the nodes between two places, both inclusive. seq is larger than all nodes.
func (l *nodeList) replace(from, to place, seq int64) {
	first := &l.blocks[from.block]
	if from.block == to.block {
		l.len -= to.index - from.index
		lost := slices.Contains(first.seqs[from.index:to.index+1], first.min)
		first.seqs[from.index] = seq
		first.seqs = slices.Delete(first.seqs, from.index+1, to.index+1)
		first.max = seq
		if lost {
			first.min = slices.Min(first.seqs)
		}
		l.merge(from.block)
		return
	}
	last := &l.blocks[to.block]
	l.len -= len(first.seqs) - from.index + to.index
	for _, b := range l.blocks[from.block+1 : to.block] {
		l.len -= len(b.seqs)
	}
	first.seqs = append(first.seqs[:from.index], seq)
	first.min, first.max = slices.Min(first.seqs), seq
	last.seqs = slices.Delete(last.seqs, 0, to.index+1)
	gone := to.block
	if len(last.seqs) == 0 {
		gone++
	} else {
		last.min, last.max = slices.Min(last.seqs), slices.Max(last.seqs)
	}
	l.blocks = slices.Delete(l.blocks, from.block+1, gone)
	if from.block+1 < len(l.blocks) {
		l.merge(from.block + 1)
	}
	l.merge(from.block)
}

// merge joins a block that has shrunk with its neighbours when they fill at most half a block together, so that two that are
// left side by side hold more than that and the number of blocks follows the number of nodes. Half, so that what is joined
// has room to grow and is not soon joined again.
func (l *nodeList) merge(i int) {
	if i+1 < len(l.blocks) && len(l.blocks[i].seqs)+len(l.blocks[i+1].seqs) <= blockSize/2 {
		l.join(i)
	}
	if i > 0 && len(l.blocks[i-1].seqs)+len(l.blocks[i].seqs) <= blockSize/2 {
		l.join(i - 1)
	}
}

// join moves the block behind i into block i.
func (l *nodeList) join(i int) {
	a, b := &l.blocks[i], l.blocks[i+1]
	a.seqs = append(a.seqs, b.seqs...)
	a.min, a.max = min(a.min, b.min), max(a.max, b.max)
	l.blocks = slices.Delete(l.blocks, i+1, i+2)
}
