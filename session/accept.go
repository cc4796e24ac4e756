package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/foldhost/foldhost/event"
)

// unstamped is the time of a draft that gets the time of its commit. No event can carry it.
const unstamped = math.MinInt64

// Intent is what an event does besides being logged.
type Intent struct {
	Op      event.Op
	Sources []int64
}

// admit applies the checks that need no session, once data is known to be lossless: envelope, shapes, retired encodings, intent.
// A fault that the surface rules have a place for is left in the draft for them, so that the first broken rule is the one reported.
func admit(d *event.Draft, in Intent) error {
	if err := checkEnvelope(&d.Event); err != nil {
		return err
	}
	if d.Type == event.EndSeed {
		return &event.Error{Code: event.EnvelopeInvalid, Rule: "end-seed-reserved", Path: "$.type",
			Reason: "session/end-seed marks the end of a seed and is written by the host alone"}
	}
	if err := event.CheckShape(&d.Event); err != nil {
		return err
	}
	return setIntent(d, in)
}

// checkEnvelope checks what a Go caller can get wrong about an envelope and JSON text cannot.
func checkEnvelope(e *event.Event) error {
	if err := event.CheckType(e.Type); err != nil {
		return err
	}
	if e.Time > event.MaxInteger || e.Time < -event.MaxInteger {
		return &event.Error{Code: event.EnvelopeInvalid, Rule: "time-range", Path: "$.time",
			Reason: fmt.Sprintf("time %d is larger than 2^53−1 in size", e.Time)}
	}
	return nil
}

// setIntent puts the intent into the draft, detached from the caller. What no JSON could have said is refused here; what else may be wrong with it
// the surface says in its turn.
func setIntent(d *event.Draft, in Intent) error {
	d.Op = event.Op{Kind: in.Op.Kind}
	if in.Op.Kind == event.OpReplace {
		d.Op = in.Op
		if in.Op.Start > event.MaxInteger || in.Op.End > event.MaxInteger {
			return &event.Error{Code: event.SurfaceOpInvalid, Rule: "op-not-lossless", Path: "$.surfaceOp",
				Reason: fmt.Sprintf("start %d or end %d is larger than 2^53−1", in.Op.Start, in.Op.End)}
		}
	}
	if slices.ContainsFunc(in.Sources, func(n int64) bool { return n > event.MaxInteger }) {
		return &event.Error{Code: event.SourcesInvalid, Rule: "sources-not-lossless", Path: "$.sourceEventSeqs",
			Reason: "a source is larger than 2^53−1"}
	}
	if in.Sources != nil { // an empty list is not an absent one
		d.Sources = append(make([]int64, 0, len(in.Sources)), in.Sources...)
	}
	return nil
}
