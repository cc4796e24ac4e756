package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
)

// fields builds one JSON object, field by field.
type fields []byte

// field begins a field.
func (f *fields) field(name string) {
	sep := byte(',')
	if len(*f) == 0 {
		sep = '{'
	}
	*f = append(event.AppendString(append(*f, sep), name), ':')
}

func (f *fields) text(name, value string) {
	f.field(name)
	*f = event.AppendString(*f, value)
}

// some is text, left out where there is none.
func (f *fields) some(name, value string) {
	if value != "" {
		f.text(name, value)
	}
}

func (f *fields) number(name string, value int64) {
	f.field(name)
	*f = strconv.AppendInt(*f, value, 10)
}

// yes is true, left out for false.
func (f *fields) yes(name string, value bool) {
	if value {
		f.raw(name, []byte("true"))
	}
}

// raw is JSON, left out where there is none.
func (f *fields) raw(name string, value []byte) {
	if value != nil {
		f.field(name)
		*f = append(*f, value...)
	}
}

// at is a time in milliseconds since the epoch, left out where there is none.
func (f *fields) at(name string, value time.Time) {
	if !value.IsZero() {
		f.number(name, value.UnixMilli())
	}
}

func (f *fields) texts(name string, values []string) {
	if values != nil {
		f.raw(name, array(values, event.AppendString))
	}
}

func (f *fields) end() []byte {
	if len(*f) == 0 {
		return []byte("{}")
	}
	return append(*f, '}')
}

// array is a JSON array of what each gives.
func array[T any](all []T, each func(dst []byte, one T) []byte) []byte {
	dst := []byte{'['}
	for i, one := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(dst, one)
	}
	return append(dst, ']')
}

// preset reads which set is asked about; empty is the default set.
func (c *call) preset() (string, error) {
	q := c.query("preset")
	name := q.text("preset")
	if q.err != nil {
		return "", q.err
	}
	if err := c.api.host.CheckPreset(name); err != nil {
		return "", unknownPreset(err, "") // It stands in no body.
	}
	return name, nil
}

func unknownPreset(err error, path string) *Problem {
	return &Problem{Status: http.StatusUnprocessableEntity, Code: CodePresetUnknown, Path: path, Detail: err.Error()}
}

func (c *call) listProjections() error {
	preset, err := c.preset()
	if err != nil {
		return err
	}
	var f fields
	f.raw("projections", array(c.api.host.Registry().Offers(preset), func(dst []byte, o registry.Offer) []byte {
		var f fields
		f.text("key", o.Key)
		f.text("plugin", o.By.Plugin)
		f.number("stateVersion", o.StateVersion)
		f.texts("events", o.Events)
		f.raw("viewSchema", o.ViewSchema)
		return append(dst, f.end()...)
	}))
	return c.json(http.StatusOK, f.end())
}

// plugins are those of a set, without the digests of files that were not read yet.
func (c *call) plugins(preset string) ([]host.Plugin, error) {
	none, cancel := context.WithCancel(c.r.Context())
	cancel()
	return c.api.host.PresetPlugins(none, preset)
}

// presetPlugins are those of the set that is asked about.
func (c *call) presetPlugins() ([]host.Plugin, error) {
	preset, err := c.preset()
	if err != nil {
		return nil, err
	}
	return c.plugins(preset)
}

func (c *call) listTools() error {
	plugins, err := c.presetPlugins()
	if err != nil {
		return err
	}
	type offered struct {
		plugin string
		host.PluginTool
	}
	var tools []offered
	for _, p := range plugins {
		for _, t := range p.Tools {
			if t.ShadowedBy == "" {
				tools = append(tools, offered{p.Name, t})
			}
		}
	}
	slices.SortFunc(tools, func(a, b offered) int { return strings.Compare(a.Name, b.Name) })
	var f fields
	f.raw("tools", array(tools, func(dst []byte, t offered) []byte {
		var f fields
		f.text("name", t.Name)
		f.text("plugin", t.plugin)
		f.text("description", t.Description)
		f.texts("reads", t.Reads)
		f.yes("retryNever", t.RetryNever)
		f.raw("argumentSchema", t.ArgumentSchema)
		f.raw("resultSchema", t.ResultSchema)
		return append(dst, f.end()...)
	}))
	return c.json(http.StatusOK, f.end())
}

func (c *call) listPlugins() error {
	plugins, err := c.presetPlugins()
	if err != nil {
		return err
	}
	var f fields
	f.raw("plugins", array(plugins, func(dst []byte, p host.Plugin) []byte { return append(dst, pluginJSON(&p)...) }))
	return c.json(http.StatusOK, f.end())
}

// restartPlugin asks for a new process for each config that the plugin has in some set, and does not wait for it. What is answered is that of the default set.
func (c *call) restartPlugin() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	if _, err := c.object(true); err != nil {
		return err
	}
	name := c.r.PathValue("name")
	err := c.api.host.RestartPlugin(name)
	if is[*host.UnknownPluginError](err) {
		return &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: err.Error()}
	}
	if err != nil {
		return err
	}
	plugins, err := c.plugins("")
	if err != nil {
		return err
	}
	for _, p := range plugins {
		if p.Name == name {
			return c.json(http.StatusOK, pluginJSON(&p))
		}
	}
	return errors.New("a plugin that was restarted is not listed")
}

// pluginJSON is a plugin as it goes out, without what it wrote: that is in the log of the server.
func pluginJSON(p *host.Plugin) []byte {
	var f fields
	f.text("name", p.Name)
	f.some("path", p.Path)
	f.text("state", string(p.State))
	f.at("since", p.Since)
	f.at("until", p.Until)
	f.some("reason", p.Reason)
	f.some("title", p.Title)
	f.some("version", p.Version)
	f.some("summary", p.Summary)
	f.some("builtWith", p.BuiltWith)
	f.some("sha256", p.Digest)
	if p.Pid > 0 {
		f.number("pid", int64(p.Pid))
	}
	f.number("restarts", int64(p.Restarts))
	f.some("lastError", p.LastError)
	some := func(name string, n int, list []byte) {
		if n > 0 {
			f.raw(name, list)
		}
	}
	some("ownedEvents", len(p.Events), array(p.Events, func(dst []byte, e host.OwnedEvent) []byte {
		var f fields
		f.text("type", e.Type)
		f.raw("schema", schema(e.Schema))
		return append(dst, f.end()...)
	}))
	some("units", len(p.Units), array(p.Units, func(dst []byte, u host.PluginUnit) []byte {
		var f fields
		f.text("key", u.Key)
		f.number("stateVersion", u.StateVersion)
		f.texts("events", u.Events)
		f.yes("configBound", u.ConfigBound)
		f.yes("hostOnly", u.ViewSchema == nil)
		return append(dst, f.end()...)
	}))
	some("tools", len(p.Tools), array(p.Tools, func(dst []byte, t host.PluginTool) []byte {
		var f fields
		f.text("name", t.Name)
		f.some("shadowedBy", t.ShadowedBy)
		return append(dst, f.end()...)
	}))
	some("presets", len(p.Presets), array(p.Presets, event.AppendString))
	f.yes("presetOnly", p.PresetOnly)
	some("refused", len(p.Refused), array(p.Refused, func(dst []byte, r host.RefusedOffer) []byte { return event.AppendString(dst, r.String()) }))
	some("warnings", len(p.Warnings), array(p.Warnings, event.AppendString))
	return f.end()
}

// schema is a schema that may be missing.
func schema(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
