package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
	"github.com/foldhost/foldhost/surface"
)

// A session's surface has a row of its own beside the log, so that opening costs the events since the row and not the log. It is written when the
// session goes cold and every surfaceEvery changes, and trusted only if the log still has the very event that it stands on and no log could
// contradict it; else the surface is folded from the beginning.

const (
	// surfaceEvery bounds what is planned again after a crash to some hundred microseconds.
	surfaceEvery = 1000
	// surfaceWait bounds the reading and writing of rows: what saves time must not cost much.
	surfaceWait = 2 * time.Second
	// surfaceFormat is the first byte of a row. Rows of another format are folded again.
	surfaceFormat = 1
)

// surfaceRow is the state of a surface after the event next−1.
type surfaceRow struct {
	nodes            []int64
	generation, next int64
	// anchor is the fingerprint of the event next−1.
	anchor string
}

// encode: format, generation, next, anchor, count, the nodes as differences, most of which fit into a byte or two, and a checksum of all that: a
// flipped bit may well give a surface that some log leads to.
func (r *surfaceRow) encode() []byte {
	dst := make([]byte, 0, 64+2*len(r.nodes))
	dst = append(dst, surfaceFormat)
	dst = binary.AppendUvarint(dst, uint64(r.generation))
	dst = binary.AppendUvarint(dst, uint64(r.next))
	dst = binary.AppendUvarint(dst, uint64(len(r.anchor)))
	dst = append(dst, r.anchor...)
	dst = binary.AppendUvarint(dst, uint64(len(r.nodes)))
	last := int64(0)
	for _, n := range r.nodes {
		dst = binary.AppendVarint(dst, n-last)
		last = n
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSurfaceRow = errors.New("it is malformed")

// decodeSurfaceRow reads what encode wrote. Whether a log can lead there is for surface.Restore to say.
func decodeSurfaceRow(raw []byte) (r surfaceRow, err error) {
	end := len(raw) - crc32.Size
	if end < 1 || raw[0] != surfaceFormat || binary.BigEndian.Uint32(raw[end:]) != crc32.Checksum(raw[:end], castagnoli) {
		return r, errSurfaceRow
	}
	raw = raw[1:end]
	number := func(limit uint64) uint64 {
		v, n := binary.Uvarint(raw)
		if n <= 0 || v > limit {
			err = errSurfaceRow
			return 0
		}
		raw = raw[n:]
		return v
	}
	r.generation, r.next = int64(number(event.MaxInteger)), int64(number(event.MaxInteger))
	size := number(uint64(len(raw)))
	if err != nil || size > uint64(len(raw)) {
		return r, errSurfaceRow
	}
	r.anchor, raw = string(raw[:size]), raw[size:]
	count := number(uint64(len(raw))) // a node takes a byte at least
	if err != nil {
		return r, err
	}
	r.nodes = make([]int64, 0, count)
	last := int64(0)
	for range count {
		d, n := binary.Varint(raw)
		if n <= 0 {
			return r, errSurfaceRow
		}
		raw, last = raw[n:], last+d
		r.nodes = append(r.nodes, last)
	}
	if len(raw) > 0 {
		return r, errSurfaceRow
	}
	return r, nil
}

// storedSurface gives a planner at some event of the log, from the row; at the beginning when there is none that can be trusted.
func (t *Set) storedSurface(ctx context.Context, life eventlog.Life, length int64) *planner {
	if t.rows == nil || length == 0 {
		return newPlanner()
	}
	ctx, cancel := context.WithTimeout(ctx, surfaceWait)
	defer cancel()
	p, err := t.loadSurface(ctx, life, length)
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			t.stats.SurfaceUnused.Add(1)
			t.o.Logger.Warn("the stored surface of a session is not used; it is folded from the log", "session", life.ID, "error", err)
		}
		return newPlanner()
	}
	return p
}

func (t *Set) loadSurface(ctx context.Context, life eventlog.Life, length int64) (*planner, error) {
	set, err := t.rows.Rows(ctx, life)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(set.Rows, func(r eventlog.Row) bool { return r.Key == eventlog.SurfaceKey })
	if i < 0 {
		return newPlanner(), nil
	}
	stored := set.Rows[i]
	row, err := decodeSurfaceRow(stored.Data)
	if err != nil {
		return nil, err
	}
	if row.next != stored.Seq+1 || row.next < 1 || row.next > length {
		return nil, fmt.Errorf("it stands before seq %d of %d, and is stored as of seq %d", row.next, length, stored.Seq)
	}
	at, err := t.readOne(ctx, life, row.next-1)
	if err != nil {
		return nil, err
	}
	if event.Fingerprint(&at) != row.anchor {
		return nil, fmt.Errorf("the event at seq %d is not the one it stands on", at.Seq)
	}
	p := &planner{}
	p.m, err = surface.Restore(row.nodes, row.generation, row.next, p.reader())
	return p, err
}

// surfaceKeeper is what a core knows of its row.
type surfaceKeeper struct {
	// changes of the surface since the row, one more when that was not stored; core.mu guards it.
	changes int
	// saving has one place: rows are written one at a time.
	saving chan struct{}
}

// keepSurface takes note of applied events, and says whether it is time for a row. mu is held.
func (c *core) keepSurface(events []event.Event) (due bool) {
	if c.set.rows == nil {
		return false
	}
	for i := range events {
		if events[i].Op.Kind != event.OpNone {
			c.keeper.changes++
		}
	}
	return c.keeper.changes >= surfaceEvery
}

// saveSurface writes the row beside what goes on, unless one is being written. The turn is held.
func (c *core) saveSurface() {
	select {
	case c.keeper.saving <- struct{}{}:
	default:
		return
	}
	if c.set.begin() != nil { // a set that closes writes the row when it detaches the session
		<-c.keeper.saving
		return
	}
	row := c.takeSurface()
	go func() {
		defer c.set.running.Done()
		defer func() { <-c.keeper.saving }()
		c.writeSurface(c.set.ctx, row)
	}()
}

// lastSurface writes the row of a session that goes cold, unless nothing has changed since the last.
func (c *core) lastSurface() {
	if c.set.rows == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), surfaceWait)
	defer cancel()
	select {
	case c.keeper.saving <- struct{}{}:
		defer func() { <-c.keeper.saving }()
	case <-ctx.Done():
		return
	}
	if row := c.takeSurface(); row != nil {
		c.writeSurface(ctx, row)
	}
}

// takeSurface gives the row of now, without its anchor; nil when the last one still says all.
func (c *core) takeSurface() *surfaceRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeper.changes == 0 {
		return nil
	}
	c.keeper.changes = 0
	m := c.planner.m
	// What Nodes gives is never written to again.
	return &surfaceRow{nodes: m.Nodes(), generation: m.ReplaceGeneration(), next: m.Next()}
}

func (c *core) writeSurface(ctx context.Context, row *surfaceRow) {
	ctx, cancel := context.WithTimeout(ctx, surfaceWait)
	defer cancel()
	at, err := c.set.readOne(ctx, c.life(), row.next-1)
	if err == nil {
		row.anchor = event.Fingerprint(&at)
		stored := eventlog.Row{Key: eventlog.SurfaceKey, Cut: at.Seq, Seq: at.Seq, Data: row.encode()}
		crashpoint.Reach("session/surface-row")
		err = c.set.rows.SaveRows(ctx, c.life(), []eventlog.Row{stored})
	}
	var none *eventlog.NotFoundError
	var other *eventlog.IncarnationError
	if err == nil {
		c.set.stats.SurfaceRows.Add(1)
	}
	if err == nil || errors.As(err, &none) || errors.As(err, &other) || c.set.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.keeper.changes++ // so that it is tried again when the next is due, and not with every append
	c.mu.Unlock()
	c.set.stats.SurfaceFailed.Add(1)
	c.set.o.Logger.Warn("the surface of a session was not stored; opening it folds more of its log", "session", c.s.id, "seq", row.next-1, "error", err)
}
