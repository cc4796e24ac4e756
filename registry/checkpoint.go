package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/foldhost/foldhost/event"
)

// Row is a checkpoint row: a state, what it was folded by, and which event it stands on.
type Row struct {
	Ver int64 `json:"ver"`
	// Def is the digest of the definition that made it.
	Def string `json:"def"`
	// Seq is the last event contained, −1 for none.
	Seq int64           `json:"seq"`
	Val json.RawMessage `json:"val"`
	// View is the value as it was served; absent for host-only units and where no value of that seq is known. Config is the digest of the config that it was
	// made with, empty where the plugin has none: another config may show the same state in another way.
	View   json.RawMessage `json:"view,omitempty"`
	Config string          `json:"config,omitempty"`
	// Anchor is the fingerprint of the event at Seq, empty for −1.
	Anchor string `json:"anchor"`
}

// Rows are the rows of one session by key, of one life of its log.
type Rows struct {
	Session, Incarnation string
	// Cut is the last event of the log at the moment that the rows are from, −1 for the empty log. A row may stand below it.
	Cut  int64
	Rows map[string]Row
}

// Checkpoint gives a row per registered unit, detached from the live state, at one cut. Faulted cells are left out, and so is a state or
// value that does not pass its schema. A key whose plugin does not answer in time gives its last row, of a lower seq, where there is
// one. Only taking the states happens under the session's lock. The error is ctx's, ErrDetached, or one of reading the log.
func (s *Session) Checkpoint(ctx context.Context) (Rows, error) {
	return s.CheckpointWithin(ctx, s.r.o.ReadWait)
}

// CheckpointWithin is Checkpoint with a wait of its own for the keys that trail.
func (s *Session) CheckpointWithin(ctx context.Context, wait time.Duration) (Rows, error) {
	at, _, cuts, err := s.cut(ctx, ask{wait: wait, hostOnly: true, states: true})
	if err != nil {
		return Rows{}, err
	}
	rows := Rows{Session: s.id, Incarnation: s.log.Incarnation(), Cut: at, Rows: make(map[string]Row, len(cuts))}
	anchors := map[int64]string{-1: ""}
	for i := range cuts {
		c := &cuts[i]
		row := Row{Ver: c.b.StateVersion, Def: c.b.Digest, Seq: at, Config: c.b.ConfigDigest}
		if c.down != nil {
			if c.down.Code == Faulted || c.row == nil {
				continue
			}
			row.Seq, row.View, row.Config = c.row.Seq, c.row.View, c.row.Config
		} else if c.val != nil {
			if row.View, err = c.val.leave(s.r.o.MaxViewBytes); err != nil {
				s.condemn(c.k, c.val, err)
				continue
			}
		}
		if row.Val, err = c.encode(s.r.o.MaxStateBytes); err != nil {
			s.r.o.Logger.Warn("no row is kept of a state", "session", s.id, "plugin", c.b.by.Plugin, "unit", c.b.Key, "seq", row.Seq, "error", err)
			continue
		}
		anchor, ok := anchors[row.Seq]
		if !ok {
			if anchor, err = s.anchor(ctx, row.Seq); err != nil {
				return Rows{}, err
			}
			anchors[row.Seq] = anchor
		}
		row.Anchor = anchor
		rows.Rows[c.b.Key] = row
	}
	return rows, nil
}

// anchor is the fingerprint of one event, read from the log.
func (s *Session) anchor(ctx context.Context, seq int64) (string, error) {
	events, _, err := s.read(ctx, seq, seq+1, nil)
	if err != nil {
		return "", err
	}
	if len(events) != 1 {
		return "", fmt.Errorf("reading event %d of session %s: the log does not have it", seq, s.id)
	}
	return event.Fingerprint(&events[0]), nil
}
