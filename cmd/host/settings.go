package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// settings are what holds for a server: a flag wins, then the environment, then the file.
type settings struct {
	plugins *host.PluginOptions
	// data and pluginDir are absolute; tokenFile, tlsCert and tlsKey are too, and empty for none.
	data, pluginDir, tokenFile, tlsCert, tlsKey string
	listen, durability, logFormat, logLevel     string
	// all are told to who asks, in this order.
	all []setting
}

// setting is one of them and where it comes from, for people.
type setting struct{ name, value, from string }

// masked stands for what may be a secret.
const masked = "***"

// choice is where a setting may come from. The first place that says something wins.
type choice struct {
	name, flag, given, variable, file, otherwise string
	// path: it is a path, which is made absolute: from the file it is so already.
	path bool
}

// settle finds out what holds. It reads the configuration and nothing else, and makes nothing.
func (s *server) settle() (*settings, error) {
	plugins, err := s.plugins.options()
	if err != nil {
		return nil, err
	}
	file := plugins.Config
	h := &settings{plugins: plugins}
	level, levelFlag := s.logLevel, "log-level"
	if level == "" && s.plugins.verbose {
		level, levelFlag = "debug", "verbose"
	}
	for _, c := range []struct {
		into *string
		choice
	}{
		// What is read may be none, so that the file is named and not what was asked for.
		{new(string), choice{name: "config", flag: "config", given: s.plugins.config, variable: "FOLDHOST_CONFIG", otherwise: file.Path, path: true}},
		{&h.data, choice{name: "data", flag: "data", given: s.data, variable: "FOLDHOST_DATA", file: file.Data, otherwise: config.DefaultData, path: true}},
		{&h.listen, choice{name: "listen", flag: "listen", given: s.listen, variable: "FOLDHOST_LISTEN", file: file.Listen, otherwise: config.DefaultListen}},
		{&h.pluginDir, choice{name: "pluginDir", flag: "plugins", given: s.plugins.dir, variable: "FOLDHOST_PLUGIN_DIR", file: file.PluginDir, otherwise: config.DefaultPluginDir, path: true}},
		{&h.tokenFile, choice{name: "tokenFile", flag: "token-file", given: s.tokenFile, variable: "FOLDHOST_TOKEN_FILE", file: file.TokenFile, path: true}},
		{&h.durability, choice{name: "durability", flag: "durability", given: s.durability, variable: "FOLDHOST_DURABILITY", file: file.Durability, otherwise: "full"}},
		{&h.tlsCert, choice{name: "tls-cert", flag: "tls-cert", given: s.tlsCert, path: true}},
		{&h.tlsKey, choice{name: "tls-key", flag: "tls-key", given: s.tlsKey, path: true}},
		{&h.logFormat, choice{name: "logFormat", flag: "log-format", given: s.logFormat, variable: "FOLDHOST_LOG_FORMAT", file: file.LogFormat, otherwise: "auto"}},
		{&h.logLevel, choice{name: "logLevel", flag: levelFlag, given: level, variable: "FOLDHOST_LOG_LEVEL", file: file.LogLevel, otherwise: "warn"}},
		{new(string), choice{name: "allowedOrigins", file: strings.Join(file.AllowedOrigins, ", ")}},
	} {
		if *c.into, err = h.choose(file, c.choice); err != nil {
			return nil, err
		}
	}
	h.tellPlugins(file)
	return h, nil
}

// choose takes the first place that says something.
func (h *settings) choose(file *config.File, c choice) (value string, err error) {
	from, ofVariable := "default", ""
	if c.variable != "" {
		ofVariable = os.Getenv(c.variable)
	}
	switch value = cmp.Or(c.given, ofVariable, c.file, c.otherwise); {
	case c.given != "":
		from = "flag --" + c.flag
	case ofVariable != "":
		from = "environment " + c.variable
	case c.file != "":
		from = "file " + file.Path
	}
	if c.path && value != "" {
		if value, err = filepath.Abs(value); err != nil {
			return "", fmt.Errorf("find %s: %w", c.name, err)
		}
	}
	h.all = append(h.all, setting{c.name, cmp.Or(value, "none"), from})
	return value, nil
}

// tellPlugins adds what the file says about plugins. Their configs, arguments and variables are theirs, and may hold secrets.
func (h *settings) tellPlugins(file *config.File) {
	for _, name := range slices.Sorted(maps.Keys(file.Plugins)) {
		p := file.Plugins[name]
		tell := func(what, value string, said bool) {
			if said {
				h.all = append(h.all, setting{"plugins." + name + "." + what, value, "file " + file.Path})
			}
		}
		tell("command", p.Command, p.Command != "")
		tell("disabled", "true", p.Disabled)
		tell("args", masked, len(p.Args) > 0)
		for _, variable := range p.Env {
			variable, _, _ = strings.Cut(variable, "=")
			tell("env."+variable, masked, true)
		}
		tell("config", masked, p.Config != nil)
		tell("memoryLimit", fmt.Sprintf("%d bytes", p.MemoryLimit), p.MemoryLimit > 0)
		tell("mtls", "true", p.MTLS)
		t := p.Timeouts
		tell("timeouts", fmt.Sprintf("%+v", t), t != config.Timeouts{})
	}
	for _, preset := range slices.Sorted(maps.Keys(file.Presets)) {
		for _, name := range slices.Sorted(maps.Keys(file.Presets[preset])) {
			value := "none"
			if file.Presets[preset][name] != nil {
				value = masked
			}
			h.all = append(h.all, setting{"presets." + preset + "." + name + ".config", value, "file " + file.Path})
		}
	}
}

// print prints a line for each: its name, what it is, and where that comes from.
func (h *settings) print(w io.Writer) error {
	name, value := 0, 0
	for _, s := range h.all {
		name, value = max(name, len(s.name)), max(value, len(s.value))
	}
	for _, s := range h.all {
		if err := render.Printf(w, "%-*s  %-*s  (%s)\n", name, s.name, value, s.value, s.from); err != nil {
			return err
		}
	}
	return nil
}
