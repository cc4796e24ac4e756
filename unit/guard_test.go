package unit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

type panicking struct{ value any }

func (p panicking) Init() (unit.State, error) { panic(p.value) }
func (p panicking) Apply(unit.State, *event.Event) (unit.State, bool, error) {
	panic(p.value)
}
func (p panicking) View(unit.State) (json.RawMessage, error)   { panic(p.value) }
func (p panicking) Encode(unit.State) (json.RawMessage, error) { panic(p.value) }
func (p panicking) Decode(json.RawMessage) (unit.State, error) { panic(p.value) }

// angry panics when somebody asks what it is.
type angry struct{}

func (angry) Error() string { panic("again") }

func TestAPanicOfAnyKindInAnyCallIsAnError(t *testing.T) {
	for _, value := range []any{
		"text", errors.New("an error"), 42, 3.5, true, struct{ A, B int }{1, 2}, []string{"x"}, map[string]int{"a": 1},
		nil, (*int)(nil), fmt.Stringer(nil), angry{}, strings.Repeat("ü", 100_000), func() {},
	} {
		in := unit.Guard(panicking{value})
		for call, do := range map[string]func() error{
			"init":   func() error { _, err := in.Init(); return err },
			"apply":  func() error { _, _, err := in.Apply(nil, nil); return err },
			"view":   func() error { _, err := in.View(nil); return err },
			"encode": func() error { _, err := in.Encode(nil); return err },
			"decode": func() error { _, err := in.Decode(nil); return err },
		} {
			var p *unit.PanicError
			if err := do(); !errors.As(err, &p) {
				t.Errorf("%s with panic(%T) gives %v, want a *PanicError", call, value, err)
			} else if p.Call != call || p.Value == "" || len(p.Error()) > 1000 || len(p.Stack) == 0 {
				t.Errorf("%s with panic(%T) gives call %q, %d bytes of text, %d of stack", call, value, p.Call, len(p.Error()), len(p.Stack))
			}
		}
	}
}

func TestGuardingTwiceIsGuardingOnce(t *testing.T) {
	if once := unit.Guard(rawFold{init: "1"}); fmt.Sprintf("%T", once) != fmt.Sprintf("%T", unit.Guard(once)) {
		t.Error("it is another type")
	} else if s, err := unit.Guard(once).Init(); s != "1" || err != nil {
		t.Errorf("init gives %v, %v", s, err)
	}
	if once := unit.Guard(panicking{}); unit.Guard(once) != once {
		t.Error("it is another one")
	}
}

func TestCompileGuardsTheFold(t *testing.T) {
	d := marks()
	d.Inline = panicking{"boom"}
	u, err := unit.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	var p *unit.PanicError
	if _, err := u.Inline.Init(); !errors.As(err, &p) {
		t.Errorf("init gives %v, want a *PanicError", err)
	}
}
