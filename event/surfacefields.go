package event

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// DecodeSurfaceOp reads a surfaceOp. fault says why it is neither "append" nor a well-formed replacement.
func DecodeSurfaceOp(raw []byte) (op Op, fault string) { return decodeOp(trim(raw)) }

// DecodeSources reads sourceEventSeqs. fault says why they are not an array of integers ≥ 0. An empty array is not nil.
func DecodeSources(raw []byte) (sources []int64, fault string) { return decodeSources(trim(raw)) }

func decodeOp(raw []byte) (op Op, fault string) {
	if len(raw) > 0 && raw[0] == '"' {
		if textIs(raw, "append") {
			return Append(), ""
		}
		return Op{}, `surfaceOp is a string other than "append"`
	}
	var replaces, start, end bool
	if !eachMember(raw, func(key, value []byte) bool {
		switch {
		case keyIs(key, "op"):
			if replaces = textIs(value, "replace"); !replaces {
				fault = `surfaceOp.op must be "replace"`
			}
		case keyIs(key, "start"):
			if op.Start, start = Integer(value); !start || op.Start < 0 {
				fault = "surfaceOp.start must be an integer from 0"
			}
		case keyIs(key, "end"):
			if op.End, end = Integer(value); !end || op.End < 0 {
				fault = "surfaceOp.end must be an integer from 0"
			}
		default:
			fault = "surfaceOp has a key other than op, start and end"
		}
		return fault == ""
	}) {
		return Op{}, `surfaceOp must be "append" or {"op":"replace","start":…,"end":…}`
	}
	if fault == "" && !(replaces && start && end) {
		fault = "a surfaceOp that is an object must have op, start and end"
	}
	if fault != "" {
		return Op{}, fault
	}
	op.Kind = OpReplace
	return op, ""
}

func decodeSources(raw []byte) (sources []int64, fault string) {
	// Sized by the commas, so that the 128,000 sources of a long message cost one allocation.
	if len(raw) > 0 && raw[0] == '[' {
		sources = make([]int64, 0, bytes.Count(raw, []byte{','})+1)
	}
	if !Elements(raw, func(elem json.RawMessage) bool {
		seq, ok := Integer(elem)
		if !ok || seq < 0 {
			fault = fmt.Sprintf("sourceEventSeqs[%d] is not an integer from 0 to 2^53-1", len(sources))
			return false
		}
		sources = append(sources, seq)
		return true
	}) {
		return nil, "sourceEventSeqs must be an array of seqs"
	}
	if fault != "" {
		return nil, fault
	}
	return sources, ""
}
