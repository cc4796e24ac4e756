// Package spool is an eventlog.Store of one log that lives for one replay: what does not fit into a small buffer goes to a temporary file
// that has no name. It owns that file and nothing else.
//
// It keeps 12 bytes in memory per event and none of the events themselves, so that a log larger than memory can be replayed. It
// takes one Create and answers reads; everything else that a store can do is refused.
//
// State: written by Create alone; mu guards it against reads, which may run during Create (acceptance looks at earlier events)
// and concurrently afterwards.
package spool

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

const (
	// 8 MiB stay in memory before the file is made: the logs of ordinary sessions never touch the disk.
	bufferBytes = 8 << 20
	// 512 KiB are written and read at a time.
	blockBytes = 512 << 10
	// A page holds what a client of a store can expect to get at once; small, because replays walk through whole logs.
	pageEvents, pageBytes = 512, 1 << 20
)

// Store implements eventlog.Store for one log.
type Store struct {
	dir string

	mu     sync.RWMutex
	info   eventlog.Info
	made   bool
	closed bool
	// ends[i] is where event i ends in the spool; it begins where the one before it ends.
	ends  []int64
	types []uint32
	// names are the types in the order in which they came, ids the way back.
	names []string
	ids   map[string]uint32
	// file holds the bytes below base, tail those from base on.
	file *os.File
	base int64
	tail []byte
}

// New makes an empty store whose file, if it needs one, is made in dir; empty is the system's temporary directory.
func New(dir string) *Store { return &Store{dir: dir, ids: map[string]uint32{}} }

// Identity implements eventlog.Store.
func (s *Store) Identity() eventlog.Identity { return eventlog.Identity{StoreID: "replay", Boot: 1} }

// Create implements eventlog.Store: once.
func (s *Store) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return eventlog.Info{}, eventlog.ErrClosed
	}
	if s.made {
		s.mu.Unlock()
		return eventlog.Info{}, &eventlog.ExistsError{ID: s.info.Header.ID}
	}
	s.mu.Unlock()
	n := int64(0)
	if c.Events != nil {
		for ev, err := range c.Events {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = s.add(&ev)
			}
			if err != nil {
				s.reset()
				return eventlog.Info{}, err
			}
			n++
		}
	}
	if err := ctx.Err(); err != nil {
		s.reset()
		return eventlog.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = true
	s.info = eventlog.Info{Header: c.Header, Incarnation: "1", Seq: n, FirstLiveSeq: c.FirstLiveSeq, Position: 1, UpdatedAt: time.Now().UnixMilli()}
	return s.info, nil
}

// add puts one event at the end.
func (s *Store) add(ev *event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.ids[ev.Type]
	if !ok {
		id = uint32(len(s.names))
		s.names = append(s.names, ev.Type)
		s.ids[ev.Type] = id
	}
	s.tail = ev.AppendJSON(s.tail)
	s.ends = append(s.ends, s.base+int64(len(s.tail)))
	s.types = append(s.types, id)
	limit := bufferBytes
	if s.file != nil {
		limit = blockBytes
	}
	if len(s.tail) < limit {
		return nil
	}
	return s.flush()
}

// flush moves the tail to the file. The caller holds mu.
func (s *Store) flush() error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "foldhost-replay-*")
		if err != nil {
			return fmt.Errorf("making a temporary file for a long log (set TMPDIR to a directory with room): %w", err)
		}
		// Without a name nothing is left behind however the process ends. Windows keeps names of open files; Close removes it there.
		if runtime.GOOS != "windows" {
			os.Remove(f.Name())
		}
		s.file = f
	}
	if _, err := s.file.Write(s.tail); err != nil {
		return fmt.Errorf("spooling a long log to a temporary file (set TMPDIR to a directory with room): %w", err)
	}
	s.base += int64(len(s.tail))
	if cap(s.tail) > 2*blockBytes {
		s.tail = make([]byte, 0, 2*blockBytes)
	}
	s.tail = s.tail[:0]
	return nil
}

// Info implements eventlog.Store.
func (s *Store) Info(ctx context.Context, id string) (eventlog.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lookup(ctx, eventlog.Life{ID: id})
}

// lookup answers for the one life there is. The caller holds mu.
func (s *Store) lookup(ctx context.Context, l eventlog.Life) (eventlog.Info, error) {
	switch {
	case ctx.Err() != nil:
		return eventlog.Info{}, ctx.Err()
	case s.closed:
		return eventlog.Info{}, eventlog.ErrClosed
	case !s.made || l.ID != s.info.Header.ID:
		return eventlog.Info{}, &eventlog.NotFoundError{ID: l.ID}
	case l.Incarnation != "" && l.Incarnation != s.info.Incarnation:
		return eventlog.Info{}, &eventlog.IncarnationError{ID: l.ID, Have: s.info.Incarnation, Want: l.Incarnation}
	}
	return s.info, nil
}

// Read implements eventlog.Store.
func (s *Store) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	info, err := s.lookup(ctx, q.Life)
	if err != nil {
		return eventlog.Page{}, err
	}
	if q.From < 0 {
		return eventlog.Page{}, &eventlog.InvalidError{Reason: fmt.Sprintf("a query from seq %d: seqs count from 0", q.From)}
	}
	end := info.Seq
	if q.To > 0 {
		end = q.To
	}
	limit, bytes := pageEvents, int64(pageBytes)
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	if q.MaxBytes > 0 {
		bytes = min(bytes, int64(q.MaxBytes))
	}
	wanted := s.wanted(q.Types)
	page := eventlog.Page{Next: end, End: end}
	block := reader{store: s}
	for seq := q.From; seq < min(end, info.Seq); seq++ {
		if wanted != nil && !wanted[s.types[seq]] {
			continue
		}
		size := s.ends[seq] - s.start(seq)
		if len(page.Events) > 0 && (len(page.Events) == limit || size > bytes) {
			page.Next = seq
			break
		}
		bytes -= size
		ev, err := block.event(seq)
		if err != nil {
			return eventlog.Page{}, err
		}
		page.Events = append(page.Events, ev)
	}
	return page, nil
}

// wanted says by type id what a filter lets through; nil is everything.
func (s *Store) wanted(types []string) []bool {
	if types == nil {
		return nil
	}
	w := make([]bool, len(s.names))
	for _, t := range types {
		if id, ok := s.ids[t]; ok {
			w[id] = true
		}
	}
	return w
}

func (s *Store) start(seq int64) int64 {
	if seq == 0 {
		return 0
	}
	return s.ends[seq-1]
}

// reader reads events of rising seq through one block.
type reader struct {
	store *Store
	at    int64
	block []byte
}

func (r *reader) event(seq int64) (event.Event, error) {
	s := r.store
	from, to := s.start(seq), s.ends[seq]
	var line []byte
	switch {
	case from >= s.base:
		line = s.tail[from-s.base : to-s.base]
	case from >= r.at && to <= r.at+int64(len(r.block)):
		line = r.block[from-r.at : to-r.at]
	default:
		size := min(max(to-from, blockBytes), s.base-from)
		if int64(cap(r.block)) < size {
			r.block = make([]byte, size)
		}
		r.block, r.at = r.block[:size], from
		if _, err := s.file.ReadAt(r.block, from); err != nil {
			return event.Event{}, fmt.Errorf("reading event %d back from the temporary file: %w", seq, err)
		}
		line = r.block[:to-from]
	}
	// What was written here has been accepted, so only damage can be refused; the limit is no limit.
	d, err := event.DecodeDraft(line, len(line)+1)
	if err != nil {
		return event.Event{}, &eventlog.CorruptError{ID: s.info.Header.ID, Seq: seq, Reason: err.Error()}
	}
	return d.Event, nil
}

// Close implements eventlog.Store.
func (s *Store) Close() error {
	s.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// reset forgets everything, the file included.
func (s *Store) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.file.Close()
		if runtime.GOOS == "windows" {
			os.Remove(s.file.Name())
		}
	}
	s.file, s.base, s.tail, s.ends, s.types, s.made = nil, 0, nil, nil, nil, false
	s.names, s.ids = nil, map[string]uint32{}
}
