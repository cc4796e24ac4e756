package foldwire

import (
	"fmt"
	"unicode/utf8"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
)

// events makes the messages of a batch's events in two allocations, and one more where an event is on the surface.
func events(evs []event.Event) []*pluginproto.Event {
	if len(evs) == 0 {
		return nil
	}
	slab := make([]pluginproto.Event, len(evs))
	out := make([]*pluginproto.Event, len(evs))
	var ops []pluginproto.SurfaceOp
	for i := range evs {
		e, m := &evs[i], &slab[i]
		out[i] = m
		if utf8.ValidString(e.Type) {
			m.Type = e.Type
		} else {
			m.TypeWtf8 = []byte(e.Type)
		}
		m.Seq, m.Time, m.Data, m.Ignorable = e.Seq, e.Time, e.Data, e.Ignorable
		if e.Op.Kind != event.OpNone {
			if len(ops) == 0 {
				ops = make([]pluginproto.SurfaceOp, len(evs)-i)
			}
			m.SurfaceOp, ops = &ops[0], ops[1:]
			m.SurfaceOp.Kind = pluginproto.SurfaceOp_KIND_APPEND
			if e.Op.Kind == event.OpReplace {
				m.SurfaceOp.Kind = pluginproto.SurfaceOp_KIND_REPLACE
				m.SurfaceOp.Start, m.SurfaceOp.End = e.Op.Start, e.Op.End
			}
		}
		if e.Sources != nil {
			m.Sources = &pluginproto.Sources{Seqs: e.Sources}
		}
	}
	return out
}

func readEvents(ms []*pluginproto.Event) ([]event.Event, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	evs := make([]event.Event, len(ms))
	last := int64(-1)
	for i, m := range ms {
		field, reason := readEvent(m, &evs[i])
		if reason == "" && evs[i].Seq <= last {
			field, reason = ".seq", fmt.Sprintf("%d does not come after %d", evs[i].Seq, last)
		}
		if reason != "" {
			return nil, &ProtocolError{"FoldBatch", fmt.Sprintf("events[%d]%s", i, field), reason}
		}
		last = evs[i].Seq
	}
	return evs, nil
}

func readEvent(m *pluginproto.Event, e *event.Event) (field, reason string) {
	if m == nil {
		return "", "is null"
	}
	e.Type, e.Seq, e.Time, e.Data, e.Ignorable = m.Type, m.Seq, m.Time, m.Data, m.Ignorable
	if len(m.TypeWtf8) > 0 {
		if e.Type = string(m.TypeWtf8); m.Type != "" || event.CheckType(e.Type) != nil {
			return ".type_wtf8", "is neither UTF-8 with halves of surrogate pairs nor alone"
		}
	}
	if !inRange(e.Seq, 0) {
		return ".seq", notASeq(e.Seq, 0)
	}
	if !inRange(e.Time, -event.MaxInteger) {
		return ".time", fmt.Sprintf("%d is beyond 2^53−1 in size", e.Time)
	}
	if len(e.Data) == 0 {
		return ".data", "is absent; an event without content carries null"
	}
	if op := m.SurfaceOp; op != nil {
		switch op.Kind {
		case pluginproto.SurfaceOp_KIND_APPEND:
			if op.Start != 0 || op.End != 0 {
				return ".surface_op", "an append has neither start nor end"
			}
			e.Op = event.Append()
		case pluginproto.SurfaceOp_KIND_REPLACE:
			if !inRange(op.Start, 0) || !inRange(op.End, 0) {
				return ".surface_op", fmt.Sprintf("%d to %d are not seqs", op.Start, op.End)
			}
			e.Op = event.Replace(op.Start, op.End)
		default:
			return ".surface_op.kind", fmt.Sprintf("%d is no kind of surface operation", op.Kind)
		}
	}
	if m.Sources != nil {
		e.Sources = m.Sources.Seqs
		if e.Sources == nil {
			e.Sources = []int64{}
		}
		for _, seq := range e.Sources {
			if !inRange(seq, 0) {
				return ".sources", notASeq(seq, 0)
			}
		}
	}
	return "", ""
}

func inRange(n, from int64) bool { return from <= n && n <= event.MaxInteger }

func notASeq(n, from int64) string { return fmt.Sprintf("%d is not from %d to 2^53−1", n, from) }
