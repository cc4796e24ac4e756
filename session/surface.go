package session

import "context"

// Surface is a read-only face. Its methods touch the session: a cold one is opened. They never wait for an append.
type Surface struct{ s *Session }

// Surface is the read-only face of the session's one surface manager: the same object for the life of the handle.
func (s *Session) Surface() *Surface { return &s.surface }

// SurfaceState is one consistent look at a surface.
type SurfaceState struct {
	// Nodes are the seqs of what a model would see, in order. The slice never changes and must not be written to.
	Nodes             []int64
	ReplaceGeneration int64
	// AsOfSeq is the seq of the last event that counts, −1 when there is none.
	AsOfSeq int64
}

// State is the surface as it is now.
func (f *Surface) State(ctx context.Context) (SurfaceState, error) {
	c, err := f.s.touch(ctx)
	if err != nil {
		return SurfaceState{}, err
	}
	defer c.slot.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	return SurfaceState{
		Nodes:             c.planner.m.Nodes(),
		ReplaceGeneration: c.planner.m.ReplaceGeneration(),
		AsOfSeq:           c.planner.m.Next() - 1,
	}, nil
}

// Contains says whether seq is a node now: whether a model would see that event as it was logged.
func (f *Surface) Contains(ctx context.Context, seq int64) (bool, error) {
	c, err := f.s.touch(ctx)
	if err != nil {
		return false, err
	}
	defer c.slot.release()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planner.m.Contains(seq), nil
}
