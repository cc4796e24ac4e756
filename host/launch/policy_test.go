package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAHintComesFromFactsOrNotAtAll(t *testing.T) {
	native := parseFormat([]byte("#!/bin/sh\n"))
	for name, tt := range map[string]struct {
		facts facts
		want  string // a word of it; empty: no hint
	}{
		"a file rule":            {facts{phase: PhaseFile, err: &FileError{Remedy: "chmod"}}, "chmod"},
		"a socket directory":     {facts{phase: PhaseExec, err: &SocketDirError{Remedy: "in the error itself"}}, ""},
		"foreign":                {facts{phase: PhaseExec, err: syscall.ENOEXEC, format: Format{Kind: "elf", OS: "plan9", Archs: []string{"arm64"}}}, "plan9/arm64"},
		"no format":              {facts{phase: PhaseExec, err: syscall.ENOEXEC}, "#!"},
		"no interpreter":         {facts{phase: PhaseExec, err: syscall.ENOENT, format: native, needs: "/bin/zsh", lacks: fs.ErrNotExist}, "/bin/zsh"},
		"one that does not run":  {facts{phase: PhaseExec, err: syscall.EACCES, format: native, needs: "/bin/zsh", lacks: fs.ErrPermission}, "/bin/zsh"},
		"one by a DOS editor":    {facts{phase: PhaseExec, err: syscall.ENOENT, format: native, needs: "/bin/sh\r", lacks: fs.ErrNotExist}, `/bin/sh\r`},
		"one that is a text":     {facts{phase: PhaseExec, err: syscall.ENOEXEC, format: native, needs: "/bin/zsh"}, "/bin/zsh"},
		"none is named":          {facts{phase: PhaseExec, err: syscall.ENOEXEC, format: parseFormat([]byte("#! \n"))}, "interpreter"},
		"cut short":              {facts{phase: PhaseExec, err: syscall.ENOEXEC, format: Format{Kind: "elf", Truncated: true}}, "incomplete"},
		"cut short, and it ran":  {facts{phase: PhaseHandshake, err: &HandshakeError{}, exit: &Exit{Code: -1, Signal: "SIGSEGV"}, format: Format{Kind: "elf", Truncated: true}}, "incomplete"},
		"it crashed":             {facts{phase: PhaseHandshake, err: &HandshakeError{}, exit: &Exit{Code: -1, Signal: "SIGSEGV"}, format: native}, ""},
		"open for writing":       {facts{phase: PhaseExec, err: syscall.ETXTBSY, format: native}, "writing"},
		"too many arguments":     {facts{phase: PhaseExec, err: syscall.E2BIG, format: native}, "too long"},
		"exec, unknown":          {facts{phase: PhaseExec, err: syscall.EIO, format: native}, ""},
		"killed":                 {facts{phase: PhaseHandshake, err: &HandshakeError{}, exit: &Exit{Code: -1, Signal: "SIGKILL"}}, "out-of-memory"},
		"killed later":           {facts{phase: PhaseDescribe, err: errors.New("x"), exit: &Exit{Code: -1, Signal: "SIGKILL"}}, "out-of-memory"},
		"no plugin":              {facts{phase: PhaseHandshake, err: &HandshakeError{}, exit: &Exit{}, silent: true}, "no plugin"},
		"an exit says enough":    {facts{phase: PhaseHandshake, err: &HandshakeError{Remedy: "x"}, exit: &Exit{Code: 3}, silent: true}, ""},
		"slow":                   {facts{phase: PhaseHandshake, err: context.DeadlineExceeded, silent: true}, "timeouts.start"},
		"slow after a handshake": {facts{phase: PhaseHandshake, err: context.DeadlineExceeded}, ""},
		"a handshake rule":       {facts{phase: PhaseHandshake, err: &HandshakeError{Remedy: "upgrade"}}, "upgrade"},
		"anything else":          {facts{phase: PhaseConfigure, err: errors.New("x")}, ""},
	} {
		if got := hint(tt.facts); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tt.want)
		}
	}
}

func TestAVersionThatDoesNotFitSaysWhoHasToMove(t *testing.T) {
	for _, tt := range []struct {
		theirs int
		ours   []int
		remedy string
	}{
		{1, []int{1}, ""}, {2, []int{1, 2, 3}, ""},
		{7, []int{1}, "upgrade the host"}, {4, []int{2, 3}, "upgrade the host"},
		{0, []int{1}, "rebuild"}, {1, []int{2, 3}, "rebuild"},
	} {
		reason, remedy := wrongVersion(tt.theirs, tt.ours)
		if (reason == "") != (tt.remedy == "") || !strings.Contains(remedy, tt.remedy) {
			t.Errorf("%d against %v: %q, %q", tt.theirs, tt.ours, reason, remedy)
		}
	}
}

func TestALineOfStderrKeepsItsLevelAndItsFields(t *testing.T) {
	for line, want := range map[string]entry{
		`plain`: {slog.LevelInfo, "plain", nil},
		``:      {slog.LevelInfo, "", nil},
		`{"@level":"warn","@message":"m","@timestamp":"t","n":1,"a":"x"}`: {slog.LevelWarn, "m", []slog.Attr{slog.String("a", "x"), slog.String("n", "1")}},
		`{"time":"t","level":"ERROR+2","msg":"m","o":{"k":[1]}}`:          {slog.LevelError + 2, "m", []slog.Attr{slog.String("o", `{"k":[1]}`)}},
		`{"level":"dpanic","ts":1,"msg":"m"}`:                             {slog.LevelError, "m", nil},
		`{"level":"fatal","msg":"m"}`:                                     {slog.LevelError, "m", nil},
		`{"level":"warning","msg":"m"}`:                                   {slog.LevelWarn, "m", nil},
		`{"level":"trace","msg":"m"}`:                                     {levelTrace, "m", nil},
		`{"level":"debug","message":"zerolog"}`:                           {slog.LevelDebug, "zerolog", nil},
		`{"msg":"without a level"}`:                                       {slog.LevelInfo, "without a level", nil},
		`{"level":"error"}`:                                               {slog.LevelError, `{"level":"error"}`, nil},
		`{"level":30,"msg":"m"}`:                                          {slog.LevelInfo, "m", nil},
		`{"@message":5}`:                                                  {slog.LevelInfo, "5", nil},
		`{"@level":{},"@message":null}`:                                   {slog.LevelInfo, "null", nil},
		`{"some":"object"}`:                                               {slog.LevelInfo, `{"some":"object"}`, nil},
		`{"broken`:                                                        {slog.LevelInfo, `{"broken`, nil},
		`["msg"]`:                                                         {slog.LevelInfo, `["msg"]`, nil},
		"\x1b[31mred\x00":                                                 {slog.LevelInfo, "�[31mred�", nil},
		`{"level":"info","msg":"\u001b[2J"}`:                              {slog.LevelInfo, "�[2J", nil},
	} {
		got := parseStderr([]byte(line))
		if got.level != want.level || got.message != want.message || !slices.EqualFunc(got.fields, want.fields, slog.Attr.Equal) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	many := `{"msg":"m"`
	for i := range 100 {
		many += fmt.Sprintf(`,"k%d":%d`, i, i)
	}
	if got := parseStderr([]byte(many + "}")); len(got.fields) != maxFields {
		t.Errorf("%d fields of 100 are kept, want %d", len(got.fields), maxFields)
	}
}

func FuzzStderrLine(f *testing.F) {
	for _, seed := range []string{`{"@message":5}`, `{"@level":"warn","@message":"m","@timestamp":1}`, `{"level":"ERROR+2","msg":""}`, "panic: x", "\xff\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e := parseStderr(line)
		texts := []string{e.message}
		for _, field := range e.fields {
			texts = append(texts, field.Key, field.Value.String())
		}
		for _, s := range texts {
			if s != printable(s) {
				t.Errorf("%q reaches the log", s)
			}
		}
		if len(e.fields) > maxFields {
			t.Errorf("%d fields", len(e.fields))
		}
	})
}

func FuzzHandshakeLine(f *testing.F) {
	for _, seed := range []string{"1|1|unix|/d/s|grpc", "1|1|unix|/d/s|grpc|" + strings.Repeat("x", 60) + "|true", "1|1|tcp|127.0.0.1:80|grpc",
		"1|1|unix|/d/../s|grpc", "hello", "||||", "1|99999999999999999999|unix|/d/s|grpc", "1|1|tcp|[::1]:1|grpc"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, line []byte, mtls bool) {
		hs, refused := parseHandshake(line, handshakeRules{socketDir: "/d", mtls: mtls})
		if refused != nil {
			if refused.Rule == "" || refused.Reason == "" || hs != (handshake{}) {
				t.Errorf("refused with %+v and %+v", refused, hs)
			}
			return
		}
		if hs.version != 1 || mtls && !hs.certificate {
			t.Errorf("let through: %+v", hs)
		}
		switch hs.network {
		case "unix":
			if filepath.Dir(hs.address) != "/d" || strings.HasSuffix(hs.address, "..") {
				t.Errorf("a socket elsewhere: %q", hs.address)
			}
		case "tcp":
			if !mtls {
				t.Error("TCP without TLS")
			}
		default:
			t.Errorf("network %q", hs.network)
		}
	})
}

func FuzzFormat(f *testing.F) {
	for _, seed := range []string{"#!/bin/sh\n", "\x7fELF\x02\x01\x01", "MZ", "\xca\xfe\xba\xbe\x00\x00\x00\x02", "\xcf\xfa\xed\xfe\x07\x00\x00\x01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := readFormat(bytes.NewReader(b), int64(len(b))); got.Kind != "" && got.String() == "" {
			t.Errorf("%+v has no name", got)
		}
	})
}

func TestAFormatIsReadFromTheFirstBytes(t *testing.T) {
	elf := func(class, order, machine byte) []byte {
		b := make([]byte, 64)
		copy(b, "\x7fELF")
		b[4], b[5] = class, order
		if order == 2 {
			b[19] = machine
		} else {
			b[18] = machine
		}
		return b
	}
	pe := make([]byte, 0x100)
	copy(pe, "MZ")
	pe[0x3c] = 0x80
	copy(pe[0x80:], "PE\x00\x00\x64\xaa")
	fat := append([]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02\x01\x00\x00\x07"), make([]byte, 16)...)
	fat = append(fat, "\x01\x00\x00\x0c"...)
	for _, tt := range []struct {
		b    []byte
		want string
	}{
		{elf(2, 1, 62), "linux/amd64"}, {elf(2, 1, 183), "linux/arm64"}, {elf(1, 1, 3), "linux/386"},
		{elf(2, 1, 21), "linux/ppc64le"}, {elf(2, 2, 21), "linux/ppc64"}, {elf(1, 2, 8), "linux/mips"}, {elf(2, 1, 8), "linux/mips64le"},
		{elf(2, 2, 22), "linux/s390x"}, {elf(2, 1, 99), "linux/unknown"},
		{pe, "windows/arm64"}, {[]byte("\xcf\xfa\xed\xfe\x0c\x00\x00\x01"), "darwin/arm64"}, {fat, "darwin/amd64+arm64"},
		{[]byte("#! /usr/bin/env python3\n"), "a script for /usr/bin/env"}, {[]byte("#!\t/bin/sh"), "a script for /bin/sh"}, {[]byte("#!\n"), Format{Kind: "script"}.String()},
		{[]byte("\x7fELF"), "linux/unknown"},
		{[]byte("hello, I am text"), Format{}.String()}, {nil, Format{}.String()}, {[]byte("MZ"), Format{}.String()},
		{[]byte("\xca\xfe\xba\xbe\x00\x00\x00\x41"), Format{}.String()}, // a Java class
	} {
		if got := parseFormat(tt.b).String(); got != tt.want {
			t.Errorf("% x: %s, want %s", tt.b[:min(len(tt.b), 20)], got, tt.want)
		}
	}
}

func TestLinesComeWholeHoweverTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "hello world", strings.Repeat("x", maxLine), strings.Repeat("y", maxLine+7), "cr\r"}), 1, 6).Draw(t, "lines")
		text := strings.Join(want, "\n")
		var got []string
		l := &lines{emit: func(line []byte, cut int) { got = append(got, fmt.Sprintf("%s+%d", line, cut)) }}
		for len(text) > 0 {
			n := rapid.IntRange(1, min(len(text), 2*maxLine)).Draw(t, "chunk")
			l.Write([]byte(text[:n]))
			text = text[n:]
		}
		l.Close()
		if want[len(want)-1] == "" {
			want = want[:len(want)-1] // nothing came after the last line end
		}
		var expect []string
		for _, line := range want {
			line = strings.TrimSuffix(line, "\r")
			expect = append(expect, fmt.Sprintf("%s+%d", line[:min(len(line), maxLine)], max(0, len(line)-maxLine)))
		}
		if diff := cmp.Diff(expect, got); diff != "" {
			t.Fatal(diff[:min(len(diff), 500)])
		}
		if cap(l.part) > 2*maxLine {
			t.Fatalf("%d bytes are held", cap(l.part))
		}
	})
}

func TestTheTailIsTheEndAndNeverMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var tl tail
		for i := range rapid.IntRange(1, 12).Draw(t, "writes") {
			p := []byte(strings.Repeat(fmt.Sprintf("line %d\n", i), rapid.IntRange(0, tailBytes/4).Draw(t, "size")))
			all = append(all, p...)
			tl.Write(p)
			if cap(tl.buf) > 4*tailBytes {
				t.Fatalf("%d bytes are held", cap(tl.buf))
			}
		}
		got := tl.String()
		if !strings.HasSuffix(string(all), got) || len(got) > tailBytes {
			t.Fatalf("%d bytes that are not the end", len(got))
		}
		if len(got) < min(len(all), tailBytes-len("line 10\n")) {
			t.Fatalf("%d bytes of %d are kept", len(got), len(all))
		}
	})
}

func TestTheLogTakesSoManyLinesASecondAndSaysWhatItLeftOut(t *testing.T) {
	now := time.Unix(1000, 0)
	log := &counted{}
	o := &outputLog{logger: slog.New(log), stream: "stderr", now: func() time.Time { return now }}
	for range maxLinesPerSecond + 5 {
		o.line([]byte("x"), 0)
	}
	if log.infos != maxLinesPerSecond || log.warnings != 0 {
		t.Errorf("%d lines and %d warnings", log.infos, log.warnings)
	}
	now = now.Add(time.Second)
	o.line([]byte("x"), 0)
	if log.infos != maxLinesPerSecond+1 || log.warnings != 1 {
		t.Errorf("a second later: %d lines and %d warnings", log.infos, log.warnings)
	}
}

type counted struct{ infos, warnings int }

func (c *counted) Enabled(context.Context, slog.Level) bool { return true }
func (c *counted) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *counted) WithGroup(string) slog.Handler            { return c }
func (c *counted) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo {
		c.infos++
	} else {
		c.warnings++
	}
	return nil
}

func TestTheEnvironmentIsAllowedThenOwnThenProtocol(t *testing.T) {
	host := []string{"PATH=/bin", "SECRET=1", "LC_ALL=C", "AWS_KEY=2", "TZ=UTC", "malformed", "=x"}
	own := []string{"TZ=CET", "A=1", "A=2", "COOKIE=mine", "no-value", "NUL=\x00"}
	got := environment(host, own, []string{"COOKIE=host"}, "linux")
	if diff := cmp.Diff([]string{"PATH=/bin", "LC_ALL=C", "TZ=CET", "A=2", "COOKIE=host"}, got); diff != "" {
		t.Error(diff)
	}
	got = environment([]string{"SystemRoot=C", "Path=a", "SECRET=1"}, []string{"PATH=b"}, nil, "windows")
	if diff := cmp.Diff([]string{"SystemRoot=C", "PATH=b"}, got); diff != "" {
		t.Error("windows:", diff)
	}
}

func TestAnErrorSaysEverythingOnOneLine(t *testing.T) {
	e := &StartError{Plugin: "todo", File: "/p/todo", Phase: PhaseHandshake, Exit: &Exit{Code: 3},
		Stdout: "hello\nworld", Stderr: "first\nlast\n", Hint: "do this", Err: fs.ErrClosed}
	text := e.Error()
	for _, want := range []string{"todo", "/p/todo", string(PhaseHandshake), "code 3", "hello", "last", "do this", fs.ErrClosed.Error()} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "\n") || strings.Contains(text, "first") || !errors.Is(e, fs.ErrClosed) {
		t.Errorf("%q", text)
	}
}
