package surface

import (
	"fmt"

	"github.com/foldhost/foldhost/event"
)

// Plan is a checked change to one manager at one moment; the zero Plan is none. It is bound to the manager that made it,
// and to the state that the manager was in.
type Plan struct {
	manager  *Manager
	seq      int64
	kind     event.OpKind
	from, to place
}

// Plan checks whether d may be the next event, in the order of the specification: seq, eligibility, the form of the
// surfaceOp, the range, the sources, the rewriting of tool results. It changes nothing. Errors of the rules are *event.Error;
// what the reader says comes wrapped. Planning allocates nothing but for long sources that do not rise, rewritten tool results and
// errors.
func (m *Manager) Plan(d *event.Draft) (Plan, error) {
	if d.Seq != m.next {
		return Plan{}, fault(event.SeqNotContiguous, "seq-not-contiguous", "$.seq",
			fmt.Sprintf("seq %d is not contiguous; expected %d", d.Seq, m.next))
	}
	if err := checkForm(d); err != nil {
		return Plan{}, err
	}
	p := Plan{manager: m, seq: d.Seq, kind: d.Op.Kind}
	if d.Op.Kind != event.OpReplace {
		if d.Op.Kind == event.OpAppend {
			if err := checkSources(d); err != nil {
				return Plan{}, err
			}
		}
		return p, nil
	}
	var err *event.Error
	if p.from, p.to, err = m.locate(d.Op.Start, d.Op.End); err != nil {
		return Plan{}, err
	}
	if err := m.checkReplacementSources(d, p.from, p.to); err != nil {
		return Plan{}, err
	}
	if d.Type == event.ToolResult {
		if err := m.checkRewrite(d, p.from, p.to); err != nil {
			return Plan{}, err
		}
	}
	return p, nil
}

func fault(code event.Code, rule, path, reason string) *event.Error {
	return &event.Error{Code: code, Rule: rule, Path: path, Reason: reason}
}

// checkForm checks which surface fields the event may and must carry, and the form of its surfaceOp.
func checkForm(d *event.Draft) error {
	if !event.Eligible(d.Type) {
		switch {
		case d.HasOp():
			return fault(event.SurfaceIneligible, "surface-op-on-ineligible", "$.surfaceOp",
				fmt.Sprintf("events of type %q are not surface-eligible and cannot carry surfaceOp", d.Type))
		case d.HasSources():
			return fault(event.SurfaceIneligible, "sources-on-ineligible", "$.sourceEventSeqs",
				fmt.Sprintf("events of type %q are not surface-eligible and cannot carry sourceEventSeqs", d.Type))
		}
		return nil
	}
	op := d.Op
	switch {
	case !d.HasOp():
		return fault(event.SurfaceOpMissing, "surface-op-missing", "$.surfaceOp",
			fmt.Sprintf(`events of type %q are surface-eligible and must carry a surfaceOp; "append" puts them at the end`, d.Type))
	case d.OpFault != "":
		return fault(event.SurfaceOpInvalid, "surface-op-invalid", "$.surfaceOp", d.OpFault)
	case op.Kind > event.OpReplace:
		return fault(event.SurfaceOpInvalid, "surface-op-invalid", "$.surfaceOp", fmt.Sprintf("there is no surfaceOp of kind %d", op.Kind))
	case op.Kind == event.OpReplace && !(isSeq(op.Start) && isSeq(op.End)):
		return fault(event.SurfaceOpInvalid, "surface-op-invalid", "$.surfaceOp", "start and end of a replacement must be integers from 0 to 2^53-1")
	}
	return nil
}

func isSeq(n int64) bool { return n >= 0 && n <= event.MaxInteger }

// locate finds the range of a replacement: start, then end, then their order by position.
func (m *Manager) locate(start, end int64) (from, to place, err *event.Error) {
	from, ok := m.nodes.find(start)
	if !ok {
		return from, to, fault(event.SurfaceRangeInvalid, "start-not-found", "$.surfaceOp.start",
			fmt.Sprintf("start seq %d not found in surface; it must be a current node", start))
	}
	to = from
	if end != start { // most replace one node
		to, ok = m.nodes.find(end)
	}
	if !ok {
		return from, to, fault(event.SurfaceRangeInvalid, "end-not-found", "$.surfaceOp.end",
			fmt.Sprintf("end seq %d not found in surface; it must be a current node", end))
	}
	if from.after(to) {
		return from, to, fault(event.SurfaceRangeInvalid, "start-after-end", "$.surfaceOp",
			fmt.Sprintf("start seq %d (position %d) is after end seq %d (position %d); ranges go by position in the surface",
				start, m.nodes.position(from), end, m.nodes.position(to)))
	}
	return from, to, nil
}
