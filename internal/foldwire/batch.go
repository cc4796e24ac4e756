package foldwire

import (
	"fmt"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Batch makes the message of a batch. It shares the batch's slices and JSON; neither may be changed before it is sent.
func Batch(b *unit.Batch, number, generation uint64) *pluginproto.FoldBatch {
	m := &pluginproto.FoldBatch{
		Batch:      number,
		Generation: generation,
		Drop:       fromIDs(b.Drop),
		Cells:      fromIDs(b.Cells),
		Events:     events(b.Events),
		Through:    b.Through,
		States:     fromIDs(b.States),
	}
	if b.Mode == unit.LastOnly {
		m.Mode = pluginproto.Mode_MODE_LAST_ONLY
	}
	for _, o := range b.Open {
		m.Open = append(m.Open, &pluginproto.OpenCell{Cell: uint64(o.Cell), Key: o.Key, State: o.State, Seq: o.Seq})
	}
	return m
}

// ReadBatch reads the message of a batch. The error is a *ProtocolError.
func ReadBatch(m *pluginproto.FoldBatch) (unit.Batch, error) {
	refuse := func(field, format string, args ...any) (unit.Batch, error) {
		return unit.Batch{}, &ProtocolError{"FoldBatch", field, fmt.Sprintf(format, args...)}
	}
	b := unit.Batch{Drop: toIDs(m.Drop), Cells: toIDs(m.Cells), Through: m.Through, States: toIDs(m.States)}
	switch m.Mode {
	case pluginproto.Mode_MODE_EVERY_CHANGE:
		b.Mode = unit.EveryChange
	case pluginproto.Mode_MODE_LAST_ONLY:
		b.Mode = unit.LastOnly
	default:
		return refuse("mode", "%d is no mode", m.Mode)
	}
	if len(m.Open) > 0 {
		b.Open = make([]unit.Open, len(m.Open))
	}
	for i, o := range m.Open {
		field := fmt.Sprintf("open[%d]", i)
		switch {
		case o == nil:
			return refuse(field, "is null")
		case len(o.State) == 0 && o.Seq != -1:
			return refuse(field, "opens from init, which stands at −1, and says %d", o.Seq)
		case !inRange(o.Seq, -1):
			return refuse(field, "%s", notASeq(o.Seq, -1))
		}
		b.Open[i] = unit.Open{Cell: unit.CellID(o.Cell), Key: o.Key, State: o.State, Seq: o.Seq}
		if len(o.State) == 0 {
			b.Open[i].State = nil
		}
	}
	var err error
	if b.Events, err = readEvents(m.Events); err != nil {
		return unit.Batch{}, err
	}
	if !inRange(b.Through, -1) {
		return refuse("through", "%s", notASeq(b.Through, -1))
	}
	if n := len(b.Events); n > 0 && b.Events[n-1].Seq > b.Through {
		return refuse("through", "%d lies before the last event, %d", b.Through, b.Events[n-1].Seq)
	}
	return b, nil
}

func fromIDs(ids []unit.CellID) []uint64 {
	if len(ids) == 0 {
		return nil
	}
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i] = uint64(id)
	}
	return out
}

func toIDs(ids []uint64) []unit.CellID {
	if len(ids) == 0 {
		return nil
	}
	out := make([]unit.CellID, len(ids))
	for i, id := range ids {
		out[i] = unit.CellID(id)
	}
	return out
}
