package client

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Store holds the latest values of one session, whatever order they come in: from a stream, from reads, from appends. The package comment has its rules. Safe for concurrent use.
//
// mu guards everything. Listeners are called without it, by the goroutine whose call changed something.
type Store struct {
	mu   sync.Mutex
	rows map[string]*row
	// epoch is the newest that anything is of, gen the highest generation of it.
	epoch string
	gen   int64
	// connected and incarnation are those of the last connection; lastSeq is what it said.
	connected, incarnation string
	lastSeq                int64
	// values is what Values gives, nil once it is not true any more.
	values map[string]json.RawMessage
	// batch counts the calls of Batch under way, and changed the keys that changed within them.
	batch     int
	changed   map[string]bool
	listeners []*listener
}

// Entry is what is known of a key.
type Entry struct {
	// Value is nil while there is none.
	Value    json.RawMessage
	Seq, Rev int64
	// Stale: there may be a newer value, which cannot be had at the moment. Why is the reason, where it was given.
	Stale bool
	Why   *Unavailable
}

// row is an entry with its rank. A gone row is a tombstone.
type row struct {
	Entry
	epoch string
	gone  bool
}

// listener is one call of OnChange.
type listener struct{ told func(keys []string) }

// NewStore makes an empty store.
func NewStore() *Store {
	return &Store{rows: map[string]*row{}, gen: -1, changed: map[string]bool{}}
}

// Get gives what is known of a key; ok is false when there is no such key.
func (s *Store) Get(key string) (e Entry, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[key]
	if r == nil || r.gone {
		return Entry{}, false
	}
	return r.Entry, true
}

// Values are all values, stale ones too. Until something changes it is the same map; do not change it.
func (s *Store) Values() map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]json.RawMessage{}
		for key, r := range s.rows {
			if !r.gone && r.Value != nil {
				s.values[key] = r.Value
			}
		}
	}
	return s.values
}

// OnChange has f called with the keys, sorted, that a call has changed, once for each call, or for each Batch. It says that they changed and not to what: that is to be read, and may be newer by
// then. stop ends it.
func (s *Store) OnChange(f func(keys []string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &listener{f}
	s.listeners = append(s.listeners, l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners = slices.DeleteFunc(s.listeners, func(other *listener) bool { return other == l })
	}
}

// Batch runs f and tells listeners once of all that changed within it.
func (s *Store) Batch(f func()) {
	s.mu.Lock()
	s.batch++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.batch--
		s.tell()
	}()
	f()
}

// do runs a change, and tells of it.
func (s *Store) do(change func()) {
	s.mu.Lock()
	change()
	s.tell()
}

// tell lets go of mu and calls the listeners, unless a batch is under way.
func (s *Store) tell() {
	if s.batch > 0 || len(s.changed) == 0 {
		s.mu.Unlock()
		return
	}
	var keys []string
	for key := range s.changed {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	clear(s.changed)
	all := slices.Clone(s.listeners)
	s.mu.Unlock()
	for _, l := range all {
		l.told(keys)
	}
}

func (s *Store) note(key string) {
	s.values = nil
	s.changed[key] = true
}

// compareEpochs says whether b is newer than a (1), the same (0) or older (−1).
func (s *Store) compareEpochs(a, b string) int {
	if a == b {
		return 0
	}
	storeA, bootA, _ := strings.Cut(a, ".")
	storeB, bootB, _ := strings.Cut(b, ".")
	if storeA == storeB {
		nA, _ := strconv.ParseInt(bootA, 10, 64)
		nB, _ := strconv.ParseInt(bootB, 10, 64)
		if nB > nA {
			return 1
		}
		return -1
	}
	// Starts of different stores have no order but that in which they were connected to. Who never connected takes what comes.
	now, _, _ := strings.Cut(s.connected, ".")
	if s.connected == "" || storeB == now || a == "" {
		return 1
	}
	return -1
}

// newer says whether a value of this rank takes the place of a row. One of the same rank is the same value: there is news in it only where the row is stale.
func (s *Store) newer(r *row, epoch string, rev, seq int64) bool {
	if r == nil {
		return true
	}
	switch s.compareEpochs(r.epoch, epoch) {
	case 1:
		return true
	case -1:
		return false
	}
	return rev > r.Rev || rev == r.Rev && (seq > r.Seq || seq == r.Seq && r.Stale)
}

// Connect begins a connection, as a SubscribedFrame says it. A new life of the session voids everything; a new start of the server what is above its log's end, because it may have been lost.
func (s *Store) Connect(epoch, incarnation string, lastSeq int64) {
	s.do(func() {
		another := s.incarnation != "" && s.incarnation != incarnation
		restarted := s.connected != "" && s.connected != epoch || s.epoch != "" && s.epoch != epoch
		s.connected, s.incarnation, s.lastSeq = epoch, incarnation, lastSeq
		switch {
		case another:
			s.clear()
		case restarted:
			s.truncate(lastSeq)
		}
	})
}

func (s *Store) clear() {
	for key, r := range s.rows {
		if !r.gone {
			s.note(key)
		}
	}
	clear(s.rows)
	s.gen = -1
}

// truncate drops what is above a seq.
func (s *Store) truncate(lastSeq int64) {
	for key, r := range s.rows {
		if !r.gone && r.Seq > lastSeq {
			delete(s.rows, key)
			s.note(key)
		}
	}
}

// Apply takes a value, if it is newer.
func (s *Store) Apply(epoch, key string, value json.RawMessage, seq, rev int64) {
	s.do(func() {
		s.reach(epoch, -1)
		s.apply(epoch, key, value, seq, rev)
	})
}

func (s *Store) apply(epoch, key string, value json.RawMessage, seq, rev int64) {
	if s.newer(s.rows[key], epoch, rev, seq) {
		s.rows[key] = &row{Entry: Entry{Value: value, Seq: seq, Rev: rev}, epoch: epoch}
		s.note(key)
	}
}

// reach notes a newer epoch, in which nothing is known yet of what is there: it is stale.
func (s *Store) reach(epoch string, gen int64) {
	if s.compareEpochs(s.epoch, epoch) <= 0 {
		return
	}
	s.epoch, s.gen = epoch, gen
	for key, r := range s.rows {
		if !r.gone && !r.Stale {
			s.replace(key, r, true, nil)
		}
	}
}

// replace makes a row stale or not, with the reason.
func (s *Store) replace(key string, r *row, stale bool, why *Unavailable) {
	next := *r
	next.Stale, next.Why = stale, why
	s.rows[key] = &next
	s.note(key)
}

// Seed takes all values at once: a block of all keys, as a baseline or a read without keys gives it. What is of another time is left alone.
func (s *Store) Seed(b *Block) {
	if b.Historical {
		return
	}
	s.do(func() {
		switch s.compareEpochs(s.epoch, b.Epoch) {
		case 1:
			s.renew(b)
		case 0:
			s.merge(b, false)
		}
	})
}

// SeedPartial takes some values: a block of a list, of an append, or of chosen keys. It removes none.
func (s *Store) SeedPartial(b *Block) {
	if b.Historical {
		return
	}
	s.do(func() {
		s.reach(b.Epoch, b.Gen)
		if s.compareEpochs(s.epoch, b.Epoch) == 0 {
			s.merge(b, true)
		}
	})
}

// renew puts a block of a newer epoch in the place of everything.
func (s *Store) renew(b *Block) {
	old := s.rows
	s.rows, s.epoch, s.gen = map[string]*row{}, b.Epoch, b.Gen
	for key, value := range b.Values {
		s.rows[key] = &row{Entry: Entry{Value: value, Seq: b.AsOfSeq, Rev: b.Revs[key]}, epoch: b.Epoch}
		s.note(key)
	}
	for key, why := range b.Unavailable {
		s.rows[key] = &row{Entry: Entry{Seq: -1, Stale: true, Why: &why}, epoch: b.Epoch}
		s.note(key)
	}
	for key, r := range old {
		if !r.gone {
			s.note(key)
		}
	}
}

// merge takes a block of the same epoch.
func (s *Store) merge(b *Block, partial bool) {
	old := b.Gen < s.gen
	s.gen = max(s.gen, b.Gen)
	there := func(key string) bool { return s.rows[key] != nil && !s.rows[key].gone }
	for key, value := range b.Values {
		if !old || there(key) {
			s.apply(b.Epoch, key, value, b.AsOfSeq, b.Revs[key])
		}
	}
	for key, why := range b.Unavailable {
		r := s.rows[key]
		switch {
		case r == nil && !old:
			s.rows[key] = &row{Entry: Entry{Seq: -1, Stale: true, Why: &why}, epoch: b.Epoch}
			s.note(key)
		case there(key) && !s.beyond(r, b):
			s.stale(key, r, &why)
		}
	}
	if partial || old {
		return
	}
	for key, r := range s.rows {
		_, up := b.Values[key]
		_, down := b.Unavailable[key]
		if !up && !down && !r.gone && !s.beyond(r, b) {
			// What the block is older than may come still, and may bring it back; what is older than the block may not.
			s.rows[key] = &row{Entry: Entry{Seq: b.AsOfSeq, Rev: r.Rev}, epoch: b.Epoch, gone: true}
			s.note(key)
		}
	}
}

// beyond says that a row is newer than a block, which has no revision for it.
func (s *Store) beyond(r *row, b *Block) bool { return r.epoch == b.Epoch && r.Seq > b.AsOfSeq }

// stale marks a row, unless it is marked like that already.
func (s *Store) stale(key string, r *row, why *Unavailable) {
	if !r.Stale || r.Why == nil || *r.Why != *why {
		s.replace(key, r, true, why)
	}
}

// Unavailable marks a value stale, unless it is newer than that.
func (s *Store) Unavailable(epoch, key string, why Unavailable, rev int64) {
	s.do(func() {
		s.reach(epoch, -1)
		r := s.rows[key]
		switch {
		case s.compareEpochs(s.epoch, epoch) != 0:
		case r == nil:
			s.rows[key] = &row{Entry: Entry{Seq: -1, Rev: rev, Stale: true, Why: &why}, epoch: epoch}
			s.note(key)
		case r.gone || r.epoch == epoch && (r.Rev > rev || r.Rev == rev && r.Seq > why.Seq):
		default:
			s.stale(key, r, &why)
		}
	})
}

// Remove takes a key away whose unit is gone. It leaves a mark, so that what is older does not bring it back.
func (s *Store) Remove(epoch, key string, rev int64) {
	s.do(func() {
		s.reach(epoch, -1)
		r := s.rows[key]
		if s.compareEpochs(s.epoch, epoch) != 0 || r != nil && r.epoch == epoch && r.Rev > rev {
			return
		}
		if r != nil && !r.gone {
			s.note(key)
		}
		s.rows[key] = &row{Entry: Entry{Seq: math.MaxInt64, Rev: rev}, epoch: epoch, gone: true}
	})
}

// Take takes what a frame of a stream says. partial says that the stream is one of chosen keys, so that its baselines are not all there is. Events say nothing about values.
func (s *Store) Take(f Frame, partial bool) {
	s.mu.Lock()
	epoch := s.connected
	s.mu.Unlock()
	switch f := f.(type) {
	case *SubscribedFrame:
		s.Connect(f.Epoch, f.Incarnation, f.LastSeq)
	case *ResetFrame:
		switch f.Reason {
		case "damaged": // What is only not to be read at the moment is as it was.
		case "incarnation": // Also where this store was never connected to the life before.
			s.do(s.clear)
		default:
			s.do(func() { s.truncate(s.lastSeq) })
		}
	case *BaselineFrame:
		if partial {
			s.SeedPartial(&f.Block)
		} else {
			s.Seed(&f.Block)
		}
	case *ProjectionFrame:
		s.Apply(epoch, f.Key, f.Value, f.Seq, f.Rev)
	case *UnavailableFrame:
		s.Unavailable(epoch, f.Key, f.Unavailable, f.Rev)
	case *RemovedFrame:
		s.Remove(epoch, f.Key, f.Rev)
	case *DeletedFrame:
		s.do(s.clear)
	}
}
