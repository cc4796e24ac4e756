package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/host"
)

func TestATextBecomesOnePrintableLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"  two\n\n\tlines  ":      "two lines",
		"\x1b[2Jcleared":          `\x1b[2Jcleared`,
		"bell\a":                  `bell\a`,
		"deleted\x7f":             `deleted\x7f`,
		"right\u202eto left":      `right\u202eto left`,
		"\u009b31m":               `\u009b31m`,
		"\x9b31m":                 "\ufffd31m",
		"over\rwritten":           "over written",
		"修复 🚀 café":               "修复 🚀 café",
		"👩\u200d💻":                "👩\u200d💻",
		string([]byte{0xff, 'a'}): "\ufffda",
	} {
		if got := line(text); got != want {
			t.Errorf("line(%q) is %q, want %q", text, got, want)
		}
		if got := line(harmless(text)); got != want {
			t.Errorf("harmless(%q) is %q", text, harmless(text))
		}
	}
}

func TestWhatIsPrintedIsHarmlessWhateverItIs(t *testing.T) {
	evil := "a\x1b[2J\nb\u009b\xff"
	safe := `a\x1b[2J b\u009b` + "\ufffd"
	for name, arg := range map[string]any{
		"text":           evil,
		"an error":       errors.New(evil),
		"a kind of text": host.PluginState(evil),
		"JSON":           json.RawMessage(evil),
		"what prints":    host.RefusedOffer{What: evil, Name: "n", Err: errors.New("e")},
	} {
		var b bytes.Buffer
		if err := Printf(&b, "«%s» %d\n", arg, 7); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), safe) || strings.Count(b.String(), "\n") != 1 || !strings.HasSuffix(b.String(), "» 7\n") {
			t.Errorf("%s: %q", name, b.String())
		}
	}
	var b bytes.Buffer
	Printf(&b, "%s %s\n", Style{Color: true}.paint(red, evil), Style{}.label("", evil, 3))
	if want := red + safe + reset + " " + safe + " \n"; b.String() != want {
		t.Errorf("painted: %q, want %q", b.String(), want)
	}
}

func TestABlockKeepsItsLinesAndNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"one":              "  one\n",
		"one\n\ttwo  x\n":  "  one\n  \ttwo  x\n",
		"a\n\nb":           "  a\n  \n  b\n",
		"\x1b[2J\rx\u009b": `  \x1b[2J x\u009b` + "\n",
	} {
		var b bytes.Buffer
		if err := Block(&b, text); err != nil || b.String() != want {
			t.Errorf("%q is %q, want %q (%v)", text, b.String(), want, err)
		}
	}
}

// TestTextForPeopleGoesOutInOnePlace: nothing in the program prints with package fmt but Printf.
func TestTextForPeopleGoesOutInOnePlace(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "../../*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); !ok || pkg.Name != "fmt" && pkg.Name != "io" {
				return true
			}
			if name := sel.Sel.Name; strings.HasPrefix(name, "Fprint") || strings.HasPrefix(name, "Print") || name == "WriteString" {
				if seen++; file != "out.go" {
					t.Errorf("%v prints past Printf: %s", set.Position(sel.Pos()), name)
				}
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("not even Printf was seen to print")
	}
}
