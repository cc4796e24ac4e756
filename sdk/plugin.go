package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/foldhost/foldhost/unit"
)

// Plugin is a whole plugin as a value. Nothing happens until it is started: by Serve in a process of its own, by Start in a program
// that hosts it, or by plugintest.
//
//	func main() {
//		sdk.Serve(sdk.Plugin{
//			Name:  "goal",
//			Owns:  []sdk.OwnedEvent{sdk.Owns[Set]("goal/set")},
//			Units: []sdk.Unit{Goal},
//		})
//	}
//
// Only Name is needed; a plugin offers what it lists, and what Configure registers.
type Plugin struct {
	// Name is the plugin's name for itself, 1 to 64 characters out of [A-Za-z0-9._-]. Where the operator's name of the file differs,
	// the file's counts.
	Name string
	// Version is shown to operators, in any form. Empty takes what the Go toolchain knows: the module's version, or the commit.
	Version string
	// Summary is one line for operators.
	Summary string
	// Owns are the event types that belong to this plugin: nobody else may own them, its tools alone may append them, and every
	// append is checked.
	Owns []OwnedEvent
	// Units and Tools are offered whatever the config says, in this order, before those that Configure registers.
	Units []Unit
	Tools []AnyTool
	// Configure takes the config; see Configured. The zero Configuration is a plugin that takes none.
	Configure Configuration
}

// OwnedEvent is an event type that belongs to a plugin. Owns makes it.
type OwnedEvent struct {
	// Type is the event's type.
	Type string
	// Schema is the JSON Schema (2020-12) of its data; nil allows any.
	Schema json.RawMessage

	err error
}

// Owns is an event type whose data is a Payload. The schema is made of the Go type and refuses unknown keys. A type of which no
// schema can be made is an error when the plugin starts.
func Owns[Payload any](typ string) OwnedEvent {
	raw, err := schemaOf[Payload]("", "payload of "+typ)
	return OwnedEvent{Type: typ, Schema: raw, err: err}
}

// checked is what is known of a plugin before it has a config.
type checked struct {
	version string
	// owned has a nil schema where any data is allowed.
	owned map[string]*unit.Schema
}

// check finds everything that is wrong with a plugin and does not depend on its config.
func (p *Plugin) check() (*checked, error) {
	c := &checked{version: p.Version, owned: map[string]*unit.Schema{}}
	var wrong []error
	if reason := wrongName(p.Name); reason != "" {
		wrong = append(wrong, errors.New(reason))
	}
	if c.version == "" {
		c.version = builtVersion()
	}
	for _, o := range p.Owns {
		schema, err := o.compile()
		if _, twice := c.owned[o.Type]; twice {
			err = errors.New("it is owned twice; list it once")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("owned event %q: %w", o.Type, err))
			continue
		}
		c.owned[o.Type] = schema
	}
	if p.Configure.err != nil {
		wrong = append(wrong, fmt.Errorf("config: %w", p.Configure.err))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("plugin %q: %w", p.Name, errors.Join(wrong...))
	}
	return c, nil
}

func (o *OwnedEvent) compile() (*unit.Schema, error) {
	switch {
	case o.err != nil:
		return nil, o.err
	case o.Type == "":
		return nil, errors.New("it has no type")
	case o.Schema == nil:
		return nil, nil
	}
	return unit.CompileSchema(o.Schema)
}

func wrongName(name string) string {
	if len(name) == 0 || len(name) > unit.MaxKeyBytes {
		return fmt.Sprintf("the name has %d bytes; it must be 1 to %d characters out of [A-Za-z0-9._-]", len(name), unit.MaxKeyBytes)
	}
	for i, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
		default:
			return fmt.Sprintf("the name has %q at byte %d; only [A-Za-z0-9._-] are allowed", r, i)
		}
	}
	return ""
}

const modulePath = "github.com/foldhost/foldhost"

// builtVersion is what the toolchain knows about the program: the version of its module, or the commit that it was built from.
func builtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "commit-" + s.Value[:12]
		}
	}
	return "unknown"
}

// builtWith names the SDK and its version.
func builtWith() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
				version = m.Version
			}
		}
	}
	return "foldhost sdk " + version
}
