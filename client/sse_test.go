package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func parse(r io.Reader, max int) (all []message, err error) {
	in := messages{lines: lineReader{r: bufio.NewReaderSize(r, 16), max: max}}
	for {
		m, err := in.next()
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

func TestMessages(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []message
		err  error
	}{
		"nothing":               {"", nil, io.EOF},
		"one":                   {"event: k\nid: 1\ndata: d\n\n", []message{{"k", []byte("d")}}, io.EOF},
		"CRLF":                  {"event: k\r\ndata: d\r\n\r\n", []message{{"k", []byte("d")}}, io.EOF},
		"no space":              {"event:k\ndata:  d\n\n", []message{{"k", []byte(" d")}}, io.EOF},
		"several lines of data": {"data: a\ndata\ndata: b\n\n", []message{{"", []byte("a\n\nb")}}, io.EOF},
		"comments":              {": c\n\n:\ndata: d\n: c\n\n", []message{{"", []byte("d")}}, io.EOF},
		"without data":          {"event: k\nid: 5\n\ndata: d\n\n", []message{{"", []byte("d")}}, io.EOF},
		"ids":                   {"id: 5\ndata: a\n\ndata: b\n\n", []message{{"", []byte("a")}, {"", []byte("b")}}, io.EOF},
		"a byte order mark":     {"\ufeffdata: d\n\n", []message{{"", []byte("d")}}, io.EOF},
		"a rest":                {"data: a\n\ndata: b\n", []message{{"", []byte("a")}}, io.EOF},
		"a rest of a line":      {"data: a\n\ndata: b", []message{{"", []byte("a")}}, io.ErrUnexpectedEOF},
		"a long line":           {"data: " + strings.Repeat("x", 95) + "\n\n", nil, errTooLong},
		"the longest line":      {"data: " + strings.Repeat("x", 94) + "\n\n", []message{{"", bytes.Repeat([]byte("x"), 94)}}, io.EOF},
		"many lines":            {strings.Repeat("data: xxxx\n", 11), nil, errTooLong},
		"many messages":         {strings.Repeat("data: xxxx\n\n", 2), []message{{"", []byte("xxxx")}, {"", []byte("xxxx")}}, io.EOF},
	} {
		got, err := parse(iotest.OneByteReader(strings.NewReader(c.text)), 100)
		if !errors.Is(err, c.err) || len(got) != len(c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		for i := range got {
			if got[i].kind != c.want[i].kind || !bytes.Equal(got[i].data, c.want[i].data) {
				t.Errorf("%s: message %d is %q", name, i, got[i])
			}
		}
	}
}

// Whatever is written as messages is read as the same, however it is cut into reads.
func TestMessagesComeAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z:/ ]{0,40}`)
		var text strings.Builder
		var want []message
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			kind, data := rapid.StringMatching(`[a-z/]{1,20}`).Draw(t, "kind"), rapid.SliceOfN(word, 1, 4).Draw(t, "data")
			if rapid.Bool().Draw(t, "moves") {
				text.WriteString("id: " + rapid.StringMatching(`[A-Z]+:[0-9]+`).Draw(t, "id") + "\n")
			}
			text.WriteString("event: " + kind + "\n")
			for _, d := range data {
				text.WriteString("data: " + d + "\n")
			}
			text.WriteString("\n")
			want = append(want, message{kind, []byte(strings.Join(data, "\n"))})
		}
		r := io.Reader(strings.NewReader(text.String()))
		if rapid.Bool().Draw(t, "byte by byte") {
			r = iotest.OneByteReader(r)
		}
		got, err := parse(r, 1<<20)
		if err != io.EOF || len(got) != len(want) {
			t.Fatalf("%q gives %q, %v", text.String(), got, err)
		}
		for i := range got {
			if got[i].kind != want[i].kind || string(got[i].data) != string(want[i].data) {
				t.Fatalf("message %d is %q, want %q", i, got[i], want[i])
			}
		}
	})
}

// Whatever comes, reading ends, holds no more than the bound and finds no frame that panics.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("event: session/event\nid: I:1\ndata: {\"event\":{\"type\":\"x\",\"seq\":1,\"time\":0,\"data\":null}}\n\n"))
	f.Add([]byte("event: session/baseline\ndata: {\"values\":{\"a\":1},\"revs\":{}}\n\n: c\r\n\r\n"))
	f.Add([]byte("data\ndata:\n\nid:\x00\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(bytes.NewReader(text), 200)
		if err == nil {
			t.Fatal("it ends without an error")
		}
		for _, m := range all {
			if len(m.data) > 200 || len(m.kind) > 200 {
				t.Errorf("a message of %d bytes", len(m.data))
			}
			if fr, err := readFrame(m); err == nil && fr != nil && fr.JSON() == nil {
				t.Error("a frame without its text")
			}
		}
	})
}

// The waits grow, never beyond the most, and never to nothing.
func TestBackoff(t *testing.T) {
	for n, want := range map[int][2]int{1: {50, 100}, 2: {100, 200}, 3: {200, 400}, 6: {1600, 3200}, 7: {2500, 5000}, 1000: {2500, 5000}} {
		least, most := backoff(n, 0).Milliseconds(), backoff(n, 1).Milliseconds()
		if least != int64(want[0]) || most != int64(want[1]) {
			t.Errorf("after %d failures %d to %d ms, want %v", n, least, most, want)
		}
	}
}
