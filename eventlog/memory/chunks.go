package memory

// chunkBits makes chunks of 256 items, 28 KiB of events: a list that grows never copies what it has, which would hold a lock
// for milliseconds, and wastes at most one chunk.
const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
)

// chunks is a list in full chunks; only the last one may be short. The first starts small, as many sessions are.
type chunks[T any] struct {
	list [][]T
	n    int64
}

func (c *chunks[T]) len() int64 { return c.n }

func (c *chunks[T]) at(i int64) *T { return &c.list[i>>chunkBits][i&(chunkSize-1)] }

func (c *chunks[T]) append(item *T) {
	if c.n&(chunkSize-1) == 0 {
		var chunk []T
		if c.n > 0 {
			chunk = make([]T, 0, chunkSize)
		}
		c.list = append(c.list, chunk)
	}
	last := &c.list[len(c.list)-1]
	*last = append(*last, *item)
	c.n++
}
