package launch

import (
	"strings"
	"testing"
)

func TestLastWords(t *testing.T) {
	for name, c := range map[string]struct{ stderr, want string }{
		"nothing":                    {"", ""},
		"the last line":              {"one\ntwo\n\n", "two"},
		"a panic before its stacks":  {"starting\npanic: no such row\n\ngoroutine 7 [running]:\nmain.main()\n\t/x.go:3 +0x1d\nexit status 2\n", "panic: no such row"},
		"a fatal error":              {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select (no cases)]:\nmain.main()\n", "fatal error: all goroutines are asleep - deadlock!"},
		"the last of two panics":     {"panic: a\n\ngoroutine 1 [running]:\nx\npanic: b\n\ngoroutine 1 [running]:\ny\n", "panic: b"},
		"a line that says panic":     {"panic: it says, and goes on\nbye\n", "bye"},
		"hclog":                      {`{"@level":"error","@message":"cannot go on","@module":"p","stack":"a\n\tb\n\tc"}` + "\n", "cannot go on"},
		"slog, with its error":       {`{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"cannot go on","error":"disk full"}` + "\n", "cannot go on: disk full"},
		"a long line":                {strings.Repeat("x", 1000), strings.Repeat("x", quoteBytes) + " …"},
		"a traceback":                {"Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'n'\n", "KeyError: 'n'"},
		"JSON that nobody logged":    {`{"a":1}`, `{"a":1}`},
		"a message beside long rest": {`{"level":"ERROR","msg":"short","stack":"` + strings.Repeat("y", 1000) + `"}`, "short"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LastWords(c.stderr); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
