package schema

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzTags: what is taken for a well-formed tag, reflect reads in the same way.
func FuzzTags(f *testing.F) {
	for _, s := range []string{``, `json:"a"`, `json:"a,omitempty" jsonschema:"enum=a\\,b,minimum=1"`, `json:a`, `json:"a"x:"b"`, ` json:"a" `,
		`json:"a" json:"b"`, `:"x"`, "json:`a`", `a b:"c"`, `json:"\x"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		tags, err := parseTags(tag)
		if err != nil {
			return
		}
		for key, want := range tags {
			if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				continue // reflect stops at control characters
			}
			if got := reflect.StructTag(tag).Get(key); got != want && !strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q: %s is %q, reflect says %q", tag, key, want, got)
			}
			splitTag(want)
		}
	})
}

func TestCommasInTags(t *testing.T) {
	for tag, want := range map[string][]string{
		"":             {""},
		"a":            {"a"},
		"a,b":          {"a", "b"},
		`a\,b,c`:       {"a,b", "c"},
		`a\,b\,c`:      {"a,b,c"},
		"a,":           {"a", ""},
		",a":           {"", "a"},
		`pattern=^,$`:  {"pattern=^", "$"},
		`pattern=^\,$`: {"pattern=^,$"},
	} {
		if got := splitTag(tag); !reflect.DeepEqual(got, want) {
			t.Errorf("%q splits into %q, want %q", tag, got, want)
		}
	}
}
