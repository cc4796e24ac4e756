package registry

import (
	"context"

	"github.com/foldhost/foldhost/event"
)

// usableRow gives the stored row that a cell of the binding may start from, nil where it must fold from init. No lock is held. The
// error is one of reading the log; any doubt about the row is no error but a nil row.
func (s *Session) usableRow(ctx context.Context, b *binding) (*Row, error) {
	row, ok := s.rows.Rows[b.Key]
	if !ok || s.rows.Session != s.id || s.rows.Incarnation != s.log.Incarnation() {
		return nil, nil
	}
	s.mu.Lock()
	head := s.head
	s.mu.Unlock()
	if row.Ver != b.StateVersion || row.Def != b.Digest || row.Seq < 0 || row.Seq > head {
		return nil, nil
	}
	events, _, err := s.read(ctx, row.Seq, row.Seq+1, nil)
	if err != nil {
		return nil, err
	}
	if len(events) != 1 || event.Fingerprint(&events[0]) != row.Anchor {
		return nil, nil
	}
	if b.CheckState(row.Val, s.r.o.MaxStateBytes) != nil {
		return nil, nil
	}
	return &row, nil
}
