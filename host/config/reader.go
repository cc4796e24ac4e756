package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/foldhost/foldhost/event"
)

// reader turns nodes into a File and collects what is wrong. It walks the nodes itself, because a decoder into structs knows no
// columns and cannot tell an absent value from an empty one.
type reader struct {
	dir      string
	problems []Problem
	// seen counts nodes, aliases followed; see maxNodes.
	seen int
}

// maxNodes bounds what aliases can make of a small file: a file of the largest size without any has fewer.
const maxNodes = 1 << 20

// maxProblems is how many are told; after that they are one mistake seen many times.
const maxProblems = 20

func (r *reader) fail(n *yaml.Node, path, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{Line: n.Line, Column: n.Column, Path: path, Reason: fmt.Sprintf(format, args...)})
	}
}

func (r *reader) file(n *yaml.Node, f *File) {
	r.object(n, "", map[string]func(*yaml.Node, string){
		"data":      func(n *yaml.Node, p string) { f.Data = r.path(n, p) },
		"pluginDir": func(n *yaml.Node, p string) { f.PluginDir = r.path(n, p) },
		"tokenFile": func(n *yaml.Node, p string) { f.TokenFile = r.path(n, p) },
		"listen":    func(n *yaml.Node, p string) { f.Listen = r.address(n, p) },
		"durability": func(n *yaml.Node, p string) {
			f.Durability = r.choice(n, p, "full", "relaxed")
		},
		"logFormat":      func(n *yaml.Node, p string) { f.LogFormat = r.choice(n, p, "auto", "json", "text") },
		"logLevel":       func(n *yaml.Node, p string) { f.LogLevel = r.choice(n, p, "trace", "debug", "info", "warn", "error") },
		"allowedOrigins": func(n *yaml.Node, p string) { f.AllowedOrigins = r.origins(n, p) },
		"plugins": func(n *yaml.Node, p string) {
			r.named(n, p, func(name string, n *yaml.Node, p string) { f.Plugins[name] = r.plugin(n, p) })
		},
		"presets": func(n *yaml.Node, p string) {
			r.named(n, p, func(name string, n *yaml.Node, p string) { f.Presets[name] = r.preset(n, p) })
		},
	})
}

// choice reads one of some words.
func (r *reader) choice(n *yaml.Node, path string, words ...string) string {
	word := r.text(n, path)
	if word != "" && !slices.Contains(words, word) {
		last := len(words) - 1
		r.fail(n, path, "is %q; it must be %s or %s", word, strings.Join(words[:last], ", "), words[last])
	}
	return word
}

func (r *reader) plugin(n *yaml.Node, path string) (pl Plugin) {
	r.object(n, path, map[string]func(*yaml.Node, string){
		"config":      func(n *yaml.Node, p string) { pl.Config = r.json(n, p) },
		"env":         func(n *yaml.Node, p string) { pl.Env = r.env(n, p) },
		"args":        func(n *yaml.Node, p string) { pl.Args = r.texts(n, p) },
		"disabled":    func(n *yaml.Node, p string) { pl.Disabled = r.bool(n, p) },
		"memoryLimit": func(n *yaml.Node, p string) { pl.MemoryLimit = r.bytes(n, p) },
		"mtls":        func(n *yaml.Node, p string) { pl.MTLS = r.bool(n, p) },
		"command":     func(n *yaml.Node, p string) { pl.Command = r.path(n, p) },
		"timeouts": func(n *yaml.Node, p string) {
			t := &pl.Timeouts
			members := map[string]func(*yaml.Node, string){}
			for name, d := range map[string]*time.Duration{"start": &t.Start, "describe": &t.Describe, "configure": &t.Configure, "register": &t.Register,
				"batch": &t.Batch, "tool": &t.Tool, "health": &t.Health, "drain": &t.Drain, "exit": &t.Exit} {
				members[name] = func(n *yaml.Node, p string) { *d = r.duration(n, p) }
			}
			r.object(n, p, members)
		},
	})
	return pl
}

func (r *reader) preset(n *yaml.Node, path string) Preset {
	preset := Preset{}
	r.named(n, path, func(name string, n *yaml.Node, p string) {
		preset[name] = nil
		r.object(n, p, map[string]func(*yaml.Node, string){
			"config": func(n *yaml.Node, p string) { preset[name] = r.json(n, p) },
		})
	})
	return preset
}

// object reads a mapping with these members and no others. An absent value counts as an empty mapping: "title:" alone names a plugin.
func (r *reader) object(n *yaml.Node, path string, members map[string]func(*yaml.Node, string)) {
	r.mapping(n, path, func(key string, k, v *yaml.Node, p string) {
		read, known := members[key]
		if !known {
			names := make([]string, 0, len(members))
			for name := range members {
				names = append(names, name)
			}
			slices.Sort(names)
			r.fail(k, p, "is not known here; known are %s", strings.Join(names, ", "))
			return
		}
		if !absent(v) {
			read(v, p)
		}
	})
}

// named reads a mapping whose keys are names of plugins or presets.
func (r *reader) named(n *yaml.Node, path string, each func(name string, n *yaml.Node, path string)) {
	r.mapping(n, path, func(name string, k, v *yaml.Node, p string) {
		if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\\x00") {
			r.fail(k, p, "is no name: it must not be empty, begin with a dot or hold a slash")
			return
		}
		each(name, v, p)
	})
}

func (r *reader) mapping(n *yaml.Node, path string, each func(key string, k, v *yaml.Node, path string)) {
	n = r.resolve(n, path)
	if n == nil || absent(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, path, "must be a mapping of names to values")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], r.resolve(n.Content[i+1], path)
		if v == nil {
			return
		}
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			r.fail(k, path, "has a key that is no plain text")
			continue
		}
		at := join(path, k.Value)
		if line, twice := seen[k.Value]; twice {
			r.fail(k, at, "is there twice, first in line %d", line)
			continue
		}
		seen[k.Value] = k.Line
		each(k.Value, k, v, at)
	}
}

// resolve follows an alias. nil: the file means more than it may.
func (r *reader) resolve(n *yaml.Node, path string) *yaml.Node {
	if r.seen++; r.seen > maxNodes {
		if r.seen == maxNodes+1 {
			r.fail(n, path, "repeats so much by aliases that it would not fit into memory")
		}
		return nil
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func absent(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// text reads a scalar that is text, or is meant as it: a version 1.10 is not the number 1.1.
func (r *reader) text(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || absent(n) {
		r.fail(n, path, "must be text")
		return ""
	}
	if strings.ContainsRune(n.Value, 0) {
		r.fail(n, path, "holds a zero byte")
		return ""
	}
	return n.Value
}

func (r *reader) texts(n *yaml.Node, path string) (all []string) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, path, "must be a list")
		return nil
	}
	for i, e := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		if e = r.resolve(e, at); e == nil {
			return nil
		}
		all = append(all, r.text(e, at))
	}
	return all
}

// origins reads a list of what browsers send as the Origin of a page.
func (r *reader) origins(n *yaml.Node, path string) []string {
	all := r.texts(n, path)
	for i, origin := range all {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			r.fail(n, fmt.Sprintf("%s[%d]", path, i), "is %q; an origin is a scheme, a host and perhaps a port, such as https://app.example.com, without a slash at its end", origin)
		}
	}
	return all
}

func (r *reader) bool(n *yaml.Node, path string) (v bool) {
	if n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		r.fail(n, path, "must be true or false")
	}
	return v
}

func (r *reader) path(n *yaml.Node, path string) string {
	p := r.text(n, path)
	if p == "" {
		if n.Kind == yaml.ScalarNode {
			r.fail(n, path, "is empty; name a path")
		}
		return ""
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(r.dir, p)
	}
	return filepath.Clean(p)
}

func (r *reader) address(n *yaml.Node, path string) string {
	a := r.text(n, path)
	if _, _, err := net.SplitHostPort(a); err != nil {
		r.fail(n, path, "is %q; it must be host:port, such as 127.0.0.1:7420", a)
	}
	return a
}

func (r *reader) duration(n *yaml.Node, path string) time.Duration {
	d, err := time.ParseDuration(r.text(n, path))
	if err != nil || d <= 0 {
		r.fail(n, path, "is %q; it must be a time above zero with its unit, such as 5s or 300ms", n.Value)
	}
	return d
}

// sizeUnits are longest first, so that MiB is not read as B.
var sizeUnits = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

func (r *reader) bytes(n *yaml.Node, path string) int64 {
	text := strings.TrimSpace(r.text(n, path))
	number, factor := text, 1.0
	for _, u := range sizeUnits {
		if strings.HasSuffix(text, u.suffix) {
			number, factor = strings.TrimSpace(strings.TrimSuffix(text, u.suffix)), u.factor
			break
		}
	}
	size, err := strconv.ParseFloat(number, 64)
	if size *= factor; err != nil || !(size >= 1 && size < 1<<60) {
		r.fail(n, path, "is %q; it must be a size above zero, such as 256MiB", n.Value)
		return 0
	}
	return int64(size)
}

func (r *reader) env(n *yaml.Node, path string) (env []string) {
	r.mapping(n, path, func(name string, k, v *yaml.Node, p string) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			r.fail(k, p, "is no name of a variable")
			return
		}
		value := ""
		if !absent(v) {
			value = r.text(v, p)
		}
		env = append(env, name+"="+value)
	})
	slices.SortFunc(env, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return cmp.Compare(a, b)
	})
	return env
}

// json makes JSON of free YAML.
func (r *reader) json(n *yaml.Node, path string) json.RawMessage {
	before := len(r.problems)
	text := r.appendJSON(nil, n, path, 0)
	if len(r.problems) > before {
		return nil
	}
	if err := event.CheckLossless(text, path); err != nil {
		r.fail(n, path, "%v", err)
		return nil
	}
	return text
}

func (r *reader) appendJSON(dst []byte, n *yaml.Node, path string, depth int) []byte {
	if n = r.resolve(n, path); n == nil {
		return dst
	}
	if depth > event.MaxDepth {
		r.fail(n, path, "nests deeper than %d levels", event.MaxDepth)
		return dst
	}
	switch n.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		first := true
		r.mapping(n, path, func(key string, _, v *yaml.Node, p string) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(event.AppendString(dst, key), ':')
			dst = r.appendJSON(dst, v, p, depth+1)
		})
		return append(dst, '}')
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, e := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.appendJSON(dst, e, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
		return append(dst, ']')
	}
	return r.appendScalar(dst, n, path)
}

func (r *reader) appendScalar(dst []byte, n *yaml.Node, path string) []byte {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return append(dst, "null"...)
	case "!!bool":
		return strconv.AppendBool(dst, r.bool(n, path))
	case "!!str":
		// A number that no Go type holds is text to the parser, unless somebody said so by quotes or a tag.
		if n.Style == 0 && isNumber(n.Value) {
			return r.appendNumber(dst, n, path)
		}
		return event.AppendString(dst, n.Value)
	case "!!timestamp": // A date is text: JSON has no other form for it.
		return event.AppendString(dst, n.Value)
	case "!!int", "!!float":
		return r.appendNumber(dst, n, path)
	default:
		r.fail(n, path, "has the tag %s, which has no form in JSON", tag)
		return dst
	}
}
