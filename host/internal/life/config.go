package life

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/foldhost/foldhost/pluginproto"
)

// ConfigError is a config that the plugin's schema or the plugin itself refuses.
type ConfigError struct {
	// Problems are in the order of their paths, at least one.
	Problems []ConfigProblem
	// Place is where the config stands in the configuration; empty where nobody has to be told.
	Place string
}

// ConfigProblem is one place in a config, such as "$.limits.maxImages", and what is wrong there.
type ConfigProblem struct{ Path, Reason string }

func (e *ConfigError) Error() string {
	if len(e.Problems) == 1 && e.Problems[0].Path == "$" && e.Place == "" {
		return "it cannot be configured: " + e.Problems[0].Reason // As often a fault of the program as of its config.
	}
	var b strings.Builder
	b.WriteString("its config is refused: ")
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		path := p.Path
		if below, is := strings.CutPrefix(path, "$"); is && e.Place != "" {
			path = e.Place + below
		}
		fmt.Fprintf(&b, "%s: %s", path, p.Reason)
	}
	return b.String()
}

// placed says where the config stands that an error is about.
func placed(err error, place string) error {
	var config *ConfigError
	if errors.As(err, &config) {
		config.Place = place
	}
	return err
}

// CheckConfig checks a config against the description's schema. Whoever gives none gives an empty one, unless the plugin wants something else
// than an object; then it is the plugin's to say.
func (d *Description) CheckConfig(config json.RawMessage) error {
	if d.Config == nil {
		if config == nil {
			return nil
		}
		return &ConfigError{Problems: []ConfigProblem{{"$", "the plugin takes no config; remove it"}}}
	}
	given := config
	if given == nil {
		given = json.RawMessage("{}")
	}
	var problems []ConfigProblem
	for _, m := range d.Config.Check(given) {
		if config == nil && m.Path == "$" {
			return nil
		}
		problems = append(problems, ConfigProblem{m.Path, m.Reason})
	}
	if len(problems) == 0 {
		return nil
	}
	return &ConfigError{Problems: problems}
}

// configProblems reads the plugin's own answer.
func configProblems(m *pluginproto.ConfigureResponse) error {
	if len(m.Problems) == 0 {
		return nil
	}
	e := &ConfigError{}
	for _, p := range m.Problems[:min(len(m.Problems), 20)] {
		e.Problems = append(e.Problems, ConfigProblem{line(p.GetPath()), line(p.GetMessage())})
	}
	return e
}

// ConfigDigest is the same for configs that mean the same: the order of keys does not count. It names the variant of a plugin.
func ConfigDigest(config json.RawMessage) string {
	canonical := []byte("none")
	if config != nil {
		canonical = config
		var v any
		d := json.NewDecoder(strings.NewReader(string(config)))
		d.UseNumber()
		if d.Decode(&v) == nil {
			if sorted, err := json.Marshal(v); err == nil {
				canonical = sorted
			}
		}
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}
