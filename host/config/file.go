package config

import (
	"encoding/json"
	"time"
)

// DefaultName is the file that is read when none is named, if it is there.
const DefaultName = "foldhost.yaml"

// Where plugins and data lie, and where the server listens, when nobody says otherwise.
const (
	DefaultPluginDir = "./plugins"
	DefaultData      = "./foldhost-data"
	DefaultListen    = "127.0.0.1:7420"
)

// File is one configuration. The zero File is that of no file at all.
type File struct {
	// Path is where it was read from, absolute; empty for none.
	Path string
	// Data, PluginDir and TokenFile are absolute, resolved from the file's directory; empty where the file does not say.
	Data, PluginDir, TokenFile string
	// Listen is host:port, Durability is "full" or "relaxed"; empty where the file does not say.
	Listen, Durability string
	// LogFormat is "auto", "json" or "text", LogLevel "trace", "debug", "info", "warn" or "error"; empty where the file does not say.
	LogFormat, LogLevel string
	// AllowedOrigins are origins of pages, such as https://app.example.com.
	AllowedOrigins []string
	// Plugins by name, and Presets by name.
	Plugins map[string]Plugin
	Presets map[string]Preset
}

// Plugin is what an operator says about one plugin. The zero Plugin says nothing.
type Plugin struct {
	// Config is the plugin's own configuration as JSON, nil where there is none.
	Config json.RawMessage
	// Env are extra variables, "NAME=value", sorted by name.
	Env  []string
	Args []string
	// Disabled plugins are listed and not started.
	Disabled bool
	// MemoryLimit is in bytes; 0 is none.
	MemoryLimit int64
	Timeouts    Timeouts
	MTLS        bool
	// Command is a program outside the plugin directory, absolute; empty for a file in it.
	Command string
}

// Timeouts of one plugin; zero is the default.
type Timeouts struct {
	// Start bounds a start until the connection stands; Describe, Configure and Register one call each of those that follow.
	Start, Describe, Configure, Register time.Duration
	// Batch bounds the answer to one batch of events, Tool one tool call, Health one health check.
	Batch, Tool, Health time.Duration
	// Drain and Exit bound the two halves of a stop.
	Drain, Exit time.Duration
}

// Preset is a set of plugins, each with a config that replaces its own; nil is no config.
type Preset map[string]json.RawMessage
