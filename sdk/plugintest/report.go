package plugintest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Law is one rule that every unit keeps.
type Law string

// The laws, in the order in which they are looked at.
const (
	// ValidDefinition: key, version, schemas, event types and fold are as the host wants them.
	ValidDefinition Law = "valid-definition"
	// NoFault: no function fails. A case that expects a fault says so with ThenFault.
	NoFault          Law = "no-fault"
	MatchesSchema    Law = "matches-schema"
	RepeatableView   Law = "repeatable-view"
	KeepsOldState    Law = "keeps-old-state"
	Deterministic    Law = "deterministic"
	SurvivesJSON     Law = "survives-json"
	ResumesAnywhere  Law = "resumes-anywhere"
	IgnoresUnrelated Law = "ignores-unrelated"
)

// Violation is one broken law, at the first event where it shows.
type Violation struct {
	Law Law
	// Seq is the event after which it shows; −1 is the empty log.
	Seq int64
	// Detail says what was seen, and what to do where that is known.
	Detail string
}

func (v Violation) String() string {
	at := fmt.Sprintf("after event %d", v.Seq)
	if v.Seq < 0 {
		at = "on the empty log"
	}
	return fmt.Sprintf("%s, %s: %s", v.Law, at, v.Detail)
}

// Step is a unit after one event that it folds, or (Seq −1) after none.
type Step struct {
	Seq   int64
	State json.RawMessage
	// View is nil for a host-only unit.
	View json.RawMessage
	// Sent says that a client would be sent the view: it differs from the one before.
	Sent bool
}

// Report is what Check found.
type Report struct {
	Key string
	// Violations has at most one entry for each law; it is empty for a unit that keeps them all.
	Violations []Violation
	// Steps are the empty log and then each event that changed the state, up to a fault.
	Steps []Step
}

// OK says that no law is broken.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// Broken returns the violation of a law, or nil.
func (r *Report) Broken(law Law) *Violation {
	for i := range r.Violations {
		if r.Violations[i].Law == law {
			return &r.Violations[i]
		}
	}
	return nil
}

// String is the report for a reader, one line for each broken law.
func (r *Report) String() string {
	if r.OK() {
		return fmt.Sprintf("unit %q keeps the contract", r.Key)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "unit %q breaks the contract:", r.Key)
	for _, v := range r.Violations {
		b.WriteString("\n  ")
		b.WriteString(v.String())
	}
	return b.String()
}

// breaks notes a violation; the first of each law counts.
func (r *Report) breaks(law Law, seq int64, format string, args ...any) {
	if r.Broken(law) == nil {
		r.Violations = append(r.Violations, Violation{Law: law, Seq: seq, Detail: fmt.Sprintf(format, args...)})
	}
}
