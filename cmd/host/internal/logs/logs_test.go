package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// lines logs in a format and gives the lines.
func lines(t *testing.T, format string, log func(*slog.Logger)) []string {
	t.Helper()
	var out bytes.Buffer
	log(New(&out, Options{Format: format, Level: "trace"}))
	if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("the last line has no end: %q", out.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// object reads a line of JSON, without its time.
func object(t *testing.T, line string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if _, err := time.Parse(time.RFC3339, fmt.Sprint(o["@timestamp"])); err != nil {
		t.Errorf("%q: %v", line, err)
	}
	delete(o, "@timestamp")
	return o
}

func TestARecordInBothForms(t *testing.T) {
	log := func(l *slog.Logger) {
		l.With("plugin", "todo").Warn("a unit failed", "session", "s 1", "seq", int64(7), "unit", "todos", "poison", true, "took", 1500*time.Millisecond, "error", errors.New("no"), "share", 0.5,
			slog.Group("fields", "a", 1, slog.Group("b", "c", uint64(2))))
	}
	want := map[string]any{"@level": "warn", "@message": "a unit failed", "plugin": "todo", "session": "s 1", "seq": 7.0, "unit": "todos", "poison": true, "took": "1.5s", "error": "no", "share": 0.5,
		"fields.a": 1.0, "fields.b.c": 2.0}
	if diff := cmp.Diff(want, object(t, lines(t, "json", log)[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := lines(t, "text", log)[0]
	_, text, _ = strings.Cut(text, " ")
	if text != `[WARN]  a unit failed: plugin=todo session="s 1" seq=7 unit=todos poison=true took=1.5s error=no share=0.5 fields.a=1 fields.b.c=2` {
		t.Errorf("%s", text)
	}
	if got := lines(t, "", log)[0]; !strings.HasPrefix(got, "{") {
		t.Errorf("to what is no terminal goes %s", got)
	}
	grouped := lines(t, "text", func(l *slog.Logger) { l.WithGroup("g").With("a", 1).Info("m", "b", 2) })[0]
	if !strings.HasSuffix(grouped, " m: g.a=1 g.b=2") {
		t.Errorf("%s", grouped)
	}
}

// Whatever stands in a record, of strangers or not: it is one line, nothing in it steers a terminal, and in JSON nothing takes the place of what is ours.
func TestWhatIsLoggedForgesNothing(t *testing.T) {
	evil := []string{
		"x\n2026-12-01T00:00:00.000Z [ERROR] all is lost: plugin=other", "\r[ERROR] over", "\x1b[2J\x1b[31mred", "\u009b31m", "\x00\x07\x7f", "\u202eright to left", "\xff\xfe", "a=b plugin=other",
		`" plugin="other`, "\u2028\u2029", "{}\n{\"@level\":\"error\"}", "  | ", "=\n  | x",
	}
	for _, text := range evil {
		log := func(l *slog.Logger) {
			l.With("plugin", "p", text, text).Error(text, "reason", text, "error", errors.New(text), slog.Group("fields", text, text, "@level", "info", "plugin", text), "any", []string{text})
			l.Info("next")
		}
		for _, format := range []string{"text", "json"} {
			got := lines(t, format, log)
			if len(got) != 2 {
				t.Errorf("%q makes %d lines in %s: %q", text, len(got)-1, format, got)
				continue
			}
			for _, r := range got[0] {
				if !unicode.IsPrint(r) {
					t.Errorf("%q leaves %q in %s: %q", text, r, format, got[0])
				}
			}
		}
		line := lines(t, "json", log)[0]
		o := object(t, line)
		if o["@level"] != "error" || o["plugin"] != "p" {
			t.Errorf("%q forges %s", text, line)
		}
		plain := lines(t, "text", log)[0]
		if _, rest, _ := strings.Cut(plain, " [ERROR] "); strings.HasPrefix(rest, "a=b") || strings.Contains(rest, " plugin=other ") && !strings.Contains(rest, `"`) {
			t.Errorf("%q forges fields in %s", text, plain)
		}
	}
}

// A stack is read by people: a line of it is a line, which nobody takes for a record.
func TestAStackKeepsItsLines(t *testing.T) {
	got := lines(t, "text", func(l *slog.Logger) { l.Error("contained a panic", "stack", "goroutine 1:\n\tmain.go:1\n\x1b[2J") })
	if len(got) < 4 {
		t.Fatalf("%q", got)
	}
	for _, line := range got[1:] {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "  ") || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
	if got := lines(t, "json", func(l *slog.Logger) { l.Error("m", "stack", "a\n\tb") }); len(got) != 1 || object(t, got[0])["stack"] != "a\n\tb" {
		t.Errorf("%q", got)
	}
}

func TestLevels(t *testing.T) {
	order := []slog.Level{slog.LevelDebug - 4, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for i, level := range Levels {
		var out bytes.Buffer
		l := New(&out, Options{Format: "json", Level: level})
		for _, one := range order {
			l.Log(t.Context(), one, "m")
		}
		got := strings.Count(out.String(), "\n")
		if got != len(order)-i {
			t.Errorf("%s lets %d through, want %d: %s", level, got, len(order)-i, out.String())
		}
		if !strings.Contains(out.String(), fmt.Sprintf(`"@level":%q`, level)) {
			t.Errorf("%s has not its name: %s", level, out.String())
		}
	}
	for _, bad := range []Options{{Format: "xml"}, {Level: "loud"}, {Level: "off"}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	for _, good := range []Options{{}, {Format: "auto", Level: "trace"}} {
		if err := good.Check(); err != nil {
			t.Error(err)
		}
	}
}

// The same of the same plugin and unit is written so often in a minute, and then told as a number. Others, what is no trouble, and what plugins write themselves are not held back.
func TestTroubleIsToldSoOften(t *testing.T) {
	got := lines(t, "json", func(l *slog.Logger) {
		for i := range 10 * limitMost {
			l.Warn("a unit failed", "session", fmt.Sprint("s", i), "plugin", "p", "unit", "a")
			l.With("plugin", "p").Warn("a unit failed", "unit", "b")
			l.Info("fine")
			l.With("plugin", "p").Error("its own", "stream", "stderr")
		}
	})
	n := map[string]int{}
	further := 0
	for _, line := range got {
		o := object(t, line)
		n[fmt.Sprint(o["@message"], o["unit"])]++
		if o["further"] != nil {
			further++
		}
	}
	want := map[string]int{"a unit faileda": limitMost, "a unit failedb": limitMost, "fine<nil>": 10 * limitMost, "its own<nil>": 10 * limitMost}
	if diff := cmp.Diff(want, n); diff != "" || further != 2 {
		t.Errorf("%d say that more are left out (-want +got):\n%s", further, diff)
	}
}

func TestAMinuteLaterItIsToldHowManyWereLeftOut(t *testing.T) {
	l, now := newLimit(), time.Unix(1, 0)
	of := subject{message: "m"}
	for range limitMost + 5 {
		l.take(of, now)
	}
	if written, _ := l.take(of, now.Add(limitTime-1)); written {
		t.Error("it was written within the minute")
	}
	written, more := l.take(of, now.Add(limitTime))
	if diff := cmp.Diff([]any{"leftOut", 6}, more); !written || diff != "" {
		t.Errorf("%v (-want +got):\n%s", written, diff)
	}
	if _, more := l.take(of, now.Add(limitTime)); more != nil {
		t.Errorf("the second says %v", more)
	}
	for i := range 3 * limitKinds {
		l.take(subject{message: fmt.Sprint(i)}, now.Add(time.Hour))
		if len(l.kinds) > limitKinds {
			t.Fatalf("%d kinds are remembered", len(l.kinds))
		}
	}
}
