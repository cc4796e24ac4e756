package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// key puts a prefix before a key, so that several of these plugins can stand side by side.
func (s *server) key(name string) string { return s.modes["prefix"] + name }

func (s *server) definitions() []unit.Definition {
	version, _ := strconv.ParseInt(s.modes["version"], 10, 64)
	var defs []unit.Definition
	limit, bound := int64(0), s.is("bound") // then sum counts the limit with each step
	if bound {
		limit = s.limit
	}
	for name, fold := range map[string]func(n, d int64) int64{
		"count": func(n, _ int64) int64 { return n + 1 },
		"sum":   func(n, d int64) int64 { return n + d + limit },
		"last":  func(_, d int64) int64 { return d },
	} {
		if only := s.modes["only"]; only != "" && only != name {
			continue
		}
		schema := json.RawMessage(`{"type":"integer"}`)
		defs = append(defs, unit.Definition{Key: s.key(name), StateVersion: version, StateSchema: schema, ViewSchema: schema,
			Events: []string{"step", "poison"}, Inline: number{fold, name == "count"}, ConfigBound: bound, ConfigDigest: fmt.Sprint(limit)})
	}
	return defs
}

// number folds {"n":…} of step events. At a poison event {"how":"exit"|"hang"|"panic"|"error"} the one that is poisonous does so.
type number struct {
	fold      func(n, d int64) int64
	poisonous bool
}

func (number) Init() (unit.State, error) { return int64(0), nil }

func (u number) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if ev.Type == "poison" {
		if u.poisonous {
			switch string(event.Lookup(ev.Data, "how")) {
			case `"exit"`:
				os.Exit(7)
			case `"hang"`:
				select {}
			case `"panic"`:
				panic("poisoned")
			case `"goroutine"`:
				go panic("poisoned in a goroutine")
				time.Sleep(time.Hour)
			case `"error"`:
				return nil, false, fmt.Errorf("poisoned")
			case `"evil"`:
				return nil, false, fmt.Errorf("%s", evil)
			}
		}
		return s, false, nil
	}
	d, _ := event.Integer(event.Lookup(ev.Data, "n"))
	next := u.fold(s.(int64), d)
	return next, next != s.(int64), nil
}

func (number) View(s unit.State) (json.RawMessage, error)   { return fmt.Appendf(nil, "%d", s), nil }
func (number) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }
func (number) Decode(raw json.RawMessage) (unit.State, error) {
	n, ok := event.Integer(raw)
	if !ok {
		return nil, fmt.Errorf("%s is not a number", raw)
	}
	return n, nil
}
