package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// flight is the restoring of one session that several reads may wait for. What it has found it shows key by key, so that whoever does not wait to the
// end has the rest.
type flight struct {
	cancel context.CancelFunc
	// waiting counts the reads that have not left. building: it goes on without any. Reader.mu guards both.
	waiting  int
	building bool
	// begun is closed when it is known which keys are to come, done at the end; err is there then.
	begun, done chan struct{}
	err         error

	// mu guards what follows.
	mu    sync.Mutex
	block registry.Block
	// trailing are the keys to come that have a value, and how far each has got.
	trailing map[string]int64
}

// shared gives a read its part in the flight that it shares with others of the same session, head, registrations and keys.
func (r *Reader) shared(ctx context.Context, set eventlog.RowSet, keys []string) (registry.Block, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	blank := r.units.ViewRows(r.logs.Set(set.Info.Header), registry.Rows{})
	name := fmt.Sprintf("%s\x00%s\x00%d\x00%d\x00%s", set.Info.Header.ID, set.Info.Incarnation, set.Info.Seq, blank.Gen, strings.Join(keys, "\x00"))
	f, err := r.board(name, set, blank, keys)
	if err != nil {
		return registry.Block{}, err
	}
	patience := time.NewTimer(r.o.ReadWait)
	defer patience.Stop()
	late := false
	defer func() { r.leave(name, f, late) }()
	select {
	case <-f.done:
	case <-patience.C:
		late = true
	case <-ctx.Done():
		return registry.Block{}, ctx.Err()
	}
	switch {
	case late || f.err == nil || errors.Is(f.err, context.DeadlineExceeded):
		return r.show(f), nil
	case r.ctx.Err() != nil:
		return registry.Block{}, ErrClosed
	}
	return registry.Block{}, fmt.Errorf("read the values of session %q: %w", set.Info.Header.ID, f.err)
}

// board gives the flight of a name, and starts it if there is none.
func (r *Reader) board(name string, set eventlog.RowSet, blank registry.Block, keys []string) (*flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	f := r.flights[name]
	if f == nil {
		f = &flight{begun: make(chan struct{}), done: make(chan struct{}), block: blank, trailing: map[string]int64{}}
		f.block.AsOfSeq = set.Info.Seq - 1
		var ctx context.Context
		ctx, f.cancel = context.WithTimeout(r.ctx, r.o.BuildWait)
		r.flights[name] = f
		r.wg.Go(func() {
			f.err = r.restore(ctx, f, set, keys)
			r.land(name, f)
		})
	}
	f.waiting++
	return f, nil
}

// land gives the result to those who wait. Who comes later reads anew.
func (r *Reader) land(name string, f *flight) {
	f.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flights[name] == f {
		delete(r.flights, name)
	}
	if f.building {
		r.building--
	}
	close(f.done)
}

// leave is a read that has its answer, or goes without. Nobody being left, the work is called off, and who comes later begins anew; but work that takes
// longer than its readers wait goes on, where there is room: else no reader would ever see its end.
func (r *Reader) leave(name string, f *flight, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.waiting--
	landed := r.flights[name] != f
	if late && !f.building && !landed && r.building < r.o.Builders {
		f.building = true
		r.building++
	}
	if f.waiting == 0 && !f.building {
		f.cancel()
		if !landed {
			delete(r.flights, name)
		}
	}
}

// show gives what there is, in maps of the caller's own.
func (r *Reader) show(f *flight) registry.Block {
	<-f.begun // soon, whatever is to be read
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.block
	b.Values, b.Revs, b.Unavailable = maps.Clone(b.Values), maps.Clone(b.Revs), maps.Clone(b.Unavailable)
	for key, seq := range f.trailing {
		b.Unavailable[key] = registry.Unavailable{Code: registry.Behind, Seq: seq, Message: "the value is being built from the log"}
	}
	if len(f.trailing) > 0 {
		r.stats.Late.Add(1)
	}
	return b
}

// expect says which keys are to come.
func (f *flight) expect(groups [][]registry.Need) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, group := range groups {
		for _, n := range group {
			if !n.HostOnly {
				f.trailing[n.Key] = n.From - 1
			}
		}
	}
	close(f.begun)
}

// reached says how far a key has come.
func (f *flight) reached(n registry.Need) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !n.HostOnly {
		f.trailing[n.Key] = n.From - 1
	}
}

// arrived says what came of a key: its value, why it has none, or neither when nobody registers it any more.
func (f *flight) arrived(n registry.Need, b *registry.Block) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.trailing, n.Key)
	if value, ok := b.Values[n.Key]; ok {
		f.block.Values[n.Key], f.block.Revs[n.Key] = value, b.Revs[n.Key]
	}
	if down, ok := b.Unavailable[n.Key]; ok {
		if down.Code != registry.Faulted {
			down.Seq = max(down.Seq, n.From-1) // its row says more than a plugin that is not there
		}
		f.block.Unavailable[n.Key] = down
	}
}
