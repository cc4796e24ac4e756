package api_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/api"
)

// tokenFile writes one that only its owner can read.
func tokenFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one":                  {"s3cret read\n", []string{"s3cret"}},
		"without an end":       {"s3cret read", []string{"s3cret"}},
		"all scopes":           {"s3cret read,append,admin\n", []string{"s3cret"}},
		"comments and nothing": {"# s3cret read\n\n  \n\t# more\ns3cret admin\nother read\n", []string{"s3cret", "other"}},
		"of another system":    {"s3cret\tread\r\n", []string{"s3cret"}},
		"odd characters":       {`!"$%&/()=?#'+*~,;.:-_<>|@{[]}\ read`, []string{`!"$%&/()=?#'+*~,;.:-_<>|@{[]}\`}},
	} {
		if got, err := api.ParseTokens([]byte(c.text)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"empty":                   {"", 0},
		"comments alone":          {"# nothing\n", 0},
		"no scope":                {"# mine\ns3cret\n", 2},
		"no scope behind a comma": {"s3cret read,\n", 1},
		"a scope that is none":    {"ok read\ns3cret write\n", 2},
		"scopes in other letters": {"s3cret Read\n", 1},
		"fields swapped":          {"read s3cret\n", 1},
		"scopes with spaces":      {"s3cret read, append\n", 1},
		"a comment behind":        {"s3cret read # mine\n", 1},
		"a token twice":           {"s3cret read\n\ns3cret append\n", 3},
		"other letters":           {"s3crét read\n", 1},
		"a zero byte":             {"s3cret\x00 read\n", 1},
		"a mark of byte order":    {"\ufeffs3cret read\n", 1},
	} {
		got, err := api.ParseTokens([]byte(c.text))
		if err == nil || got != nil || err.Line != c.line || err.Reason == "" {
			t.Errorf("%s: %q, %+v", name, got, err)
			continue
		}
		if strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%s: it tells the token: %v", name, err)
		}
	}
}

func TestATokenFileThatOthersCanReadIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skipped: there are no such bits here")
	}
	path := tokenFile(t, "s3cret read\n")
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false, 0o644: false, 0o777: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := api.ReadTokens(path)
		_, first := api.FirstToken(path)
		if (err == nil) != fine || (first == nil) != fine {
			t.Errorf("%04o: %v, %v", mode, err, first)
		}
		if e, ok := errors.AsType[*api.TokenFileError](err); !fine && (!ok || e.File != path || !strings.Contains(e.Reason, "chmod 600")) {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	for name, path := range map[string]string{"none": filepath.Join(t.TempDir(), "none"), "a directory": t.TempDir(), "a large one": tokenFile(t, strings.Repeat("#", 2<<20))} {
		if _, err := api.ReadTokens(path); !isTokenFileError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func isTokenFileError(err error) bool {
	_, ok := errors.AsType[*api.TokenFileError](err)
	return ok
}

// The first token is that of a client, and tokens are not printed in whatever way.
func TestTokensAreNotPrinted(t *testing.T) {
	path := tokenFile(t, "# mine\ns3cret read\nother admin\n")
	first, err := api.FirstToken(path)
	if err != nil || first != "s3cret" {
		t.Errorf("%q, %v", first, err)
	}
	tokens, err := api.ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(format, tokens); strings.Contains(text, "s3cret") || strings.Contains(text, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

// Whatever the file, it is refused with a reason, or each of its tokens can go into a header.
func FuzzTokenFile(f *testing.F) {
	for _, text := range []string{"", "a read", "# c\n\na read,append\nb admin\r\n", "a read,", "a b c", "é read", "a read\na read", "\xff read"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, err := api.ParseTokens(text)
		if err != nil {
			if tokens != nil || err.Reason == "" || err.Line < 0 || err.Line > strings.Count(string(text), "\n")+1 {
				t.Errorf("%q, %+v", tokens, err)
			}
			return
		}
		if len(tokens) == 0 {
			t.Error("no token, and no error")
		}
		for _, token := range tokens {
			if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) || strings.HasPrefix(token, "#") {
				t.Errorf("a token is %q", token)
			}
		}
	})
}
