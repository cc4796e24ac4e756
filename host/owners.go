package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/session"
)

// CodeEventSchema is the code of an event whose data is not what the plugin that owns its type wants.
const CodeEventSchema event.Code = "event-schema"

// owners says who owns which event type. Immutable.
type owners struct {
	byType map[string]owner
	// refused are claims to types that another plugin has, by the name of the plugin.
	refused map[string][]refusal
}

type refusal = life.Refusal

type owner struct {
	plugin string
	schema *life.Schema
}

// OwnedError: the event type belongs to another plugin.
type OwnedError struct{ Type, Owner string }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%q belongs to plugin %q, which comes first; nobody else can own it", e.Type, e.Owner)
}

// add gives each type to the first plugin that claims it, whether it runs or not. Instances of one plugin claim the same, and are refused it once.
func (o *owners) add(all []serving) {
	for _, s := range all {
		if s.Description == nil {
			continue
		}
		for _, owned := range s.Description.Owned {
			first, taken := o.byType[owned.Type]
			switch {
			case !taken:
				o.byType[owned.Type] = owner{s.Name, owned.Schema}
			case first.plugin != s.Name && !slices.ContainsFunc(o.refused[s.Name], func(r refusal) bool { return r.Name == owned.Type }):
				o.refused[s.Name] = append(o.refused[s.Name], refusal{What: "event type", Name: owned.Type, Err: &OwnedError{owned.Type, first.plugin}})
			}
		}
	}
}

// check says what is wrong with the data of an event. An event of a type that nobody owns costs one lookup.
func (o *owners) check(ev *event.Event) error {
	owner, owned := o.byType[ev.Type]
	if !owned || owner.schema == nil {
		return nil
	}
	wrong := owner.schema.Check(ev.Data)
	if len(wrong) == 0 {
		return nil
	}
	reason := fmt.Sprintf("%s (the type %s belongs to plugin %s)", wrong[0].Reason, ev.Type, owner.plugin)
	if more := len(wrong) - 1; more > 0 {
		reason += fmt.Sprintf(", and %d more places", more)
	}
	return &event.Error{Code: CodeEventSchema, Rule: "owned-event", Path: "$.data" + wrong[0].Path[1:], Reason: reason}
}

// guard is the hook on appends. Imports, seeds and forks do not pass it: what was accepted once stays readable.
func (p *plugins) guard(ctx context.Context, s *session.Session, events []event.Event) error {
	owners := p.tableOf(s).owners
	for i := range events {
		if err := owners.check(&events[i]); err != nil {
			if len(events) > 1 {
				return &event.IndexError{Index: int64(i), Err: err}
			}
			return err
		}
	}
	return checkCut(ctx, s, events)
}
