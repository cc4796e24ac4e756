package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/foldhost/foldhost/event"
)

var jsonSeeds = []string{
	`null`, `[1,2.50,-3e-7,"\ud800\u0061"]`, ` {"a" : [ {} , [ ] ] , "b":"x\\\"y"}`, `{"a":1,"\u0061":2}`, `-0.0`, `1e400`, `[[[[`, "\"\xed\xa0\x80\"",
	`{"type":"user/message","seq":1,"time":2,"data":{"id":"m1"},"surfaceOp":"append","sourceEventSeqs":[0]}`,
	`{"type":"x","seq":1.0,"time":-2e0,"data":null,"surfaceOp":{"op":"replace","start":0,"end":1},"ignorable":true}`,
	`{"type":"session","version":0,"id":"s","createdAt":1,"cwd":"/w","x":[1]}`,
	`0.1e309`, `{"":{"":{"":[0,0.0,0e1]}}}`,
}

// FuzzCompact holds the scanner against encoding/json: what we take, it takes; what it takes and we refuse breaks one of the
// further rules.
func FuzzCompact(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		raw, err := event.Compact(text, "$")
		if !bytes.Equal(before, text) {
			t.Fatal("the source was written to")
		}
		if err != nil {
			var e *event.Error
			if !errors.As(err, &e) || e.Code != event.DataNotLossless || !strings.HasPrefix(e.Path, "$") || !utf8.ValidString(e.Error()) {
				t.Fatalf("refused with %#v", err)
			}
			if (e.Rule == "json-syntax" || e.Rule == "trailing-data") && json.Valid(text) {
				t.Fatalf("valid JSON refused: %v", e)
			}
			return
		}
		var std bytes.Buffer
		if err := json.Compact(&std, text); err != nil {
			t.Fatalf("taken, but not JSON: %v", err)
		}
		if !bytes.Equal(raw, std.Bytes()) {
			t.Fatalf("got %s, want %s", raw, std.Bytes())
		}
		again, err := event.Compact(raw, "$")
		if err != nil || !bytes.Equal(raw, again) {
			t.Fatalf("compacting again: %s, %v", again, err)
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("a reader cannot read it: %v", err)
		}
		if !event.Equal(raw, text) {
			t.Fatal("not equal to itself")
		}
		walk(t, raw)
	})
}

// walk reads all of a value through the functions for reading values, and requires that they see what is there.
func walk(t *testing.T, raw json.RawMessage) {
	switch raw[0] {
	case '{':
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		event.Members(raw, func(key string, value json.RawMessage) bool {
			n++
			if got := event.Lookup(raw, key); !bytes.Equal(got, value) {
				t.Fatalf("looking up %q: %s, want %s", key, got, value)
			}
			walk(t, value)
			return true
		})
		// Keys with lone surrogates fall together in the standard library.
		if n < len(want) {
			t.Fatalf("%d members, want %d", n, len(want))
		}
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		event.Elements(raw, func(elem json.RawMessage) bool {
			if n >= len(want) || !bytes.Equal(elem, want[n]) {
				t.Fatalf("element %d is %s", n, elem)
			}
			n++
			walk(t, elem)
			return true
		})
		if n != len(want) {
			t.Fatalf("%d elements, want %d", n, len(want))
		}
	case '"':
		s, ok := event.String(raw)
		if !ok {
			t.Fatalf("%s is a string", raw)
		}
		if again, ok := event.String(event.AppendString(nil, s)); !ok || again != s {
			t.Fatalf("%q came back as %q", s, again)
		}
		var std string
		if err := json.Unmarshal(raw, &std); err != nil || utf8.ValidString(s) && std != s {
			t.Fatalf("%s: got %q, want %q (%v)", raw, s, std, err)
		}
	}
}

func FuzzDecodeDraft(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		d, err := event.DecodeDraft(line, 1<<16)
		if err != nil {
			var e *event.Error
			if !errors.As(err, &e) {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		_ = event.CheckShape(&d.Event)
		_ = event.MessageOf(&d.Event)
		out := d.AppendJSON(nil)
		if len(out) != d.EncodedSize() {
			t.Fatalf("EncodedSize is %d, of %d bytes", d.EncodedSize(), len(out))
		}
		again, err := event.DecodeDraft(out, 0)
		if err != nil {
			t.Fatalf("%s does not come in again: %v", out, err)
		}
		if !bytes.Equal(again.AppendJSON(nil), out) || !bytes.Equal(again.Data, d.Data) || event.Fingerprint(&again.Event) != event.Fingerprint(&d.Event) {
			t.Fatalf("%s came back as %s", out, again.AppendJSON(nil))
		}
		if d.OpFault == "" && d.SourcesFault == "" && !event.Equal(line, out) {
			// Only the spelling of seqs and the type may change.
			t.Fatalf("%s went out as %s", line, out)
		}
	})
}

func FuzzDecodeHeader(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		h, err := event.DecodeHeader(line)
		if err != nil {
			var e *event.Error
			if !errors.As(err, &e) || e.Code != event.HeaderInvalid {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		out := h.AppendJSON(nil)
		if !event.Equal(out, line) {
			t.Fatalf("%s went out as %s", line, out)
		}
		h.CreatedAt ^= 1
		changed, err := event.DecodeHeader(h.AppendJSON(nil))
		if err != nil || changed.CreatedAt != h.CreatedAt {
			t.Fatalf("after a change: %v, %v", changed, err)
		}
	})
}

func FuzzEqual(f *testing.F) {
	for _, a := range jsonSeeds {
		for _, b := range jsonSeeds[:4] {
			f.Add([]byte(a), []byte(b))
		}
	}
	f.Add([]byte(`{"`), []byte(`{"00000"000000 0`))
	f.Add([]byte(`{"a":1,"b":[1.0,{"c":2,"d":3}]}`), []byte(`{"b":[1,{"d":3,"c":2}],"\u0061":10e-1}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		// Whatever comes, no panic and an end.
		equal := event.Equal(a, b)
		if event.CheckLossless(a, "$") != nil || event.CheckLossless(b, "$") != nil {
			return
		}
		if event.Equal(b, a) != equal || !event.Equal(a, a) {
			t.Fatalf("%s and %s: not symmetric or not reflexive", a, b)
		}
		x, y := canonical(t, a), canonical(t, b)
		if x == nil || y == nil {
			return
		}
		if want := bytes.Equal(x, y); want != equal {
			// Doubles make equal what differs beyond their precision.
			if !want || !hasNumber(a) {
				t.Fatalf("%s and %s: got %v, want %v", a, b, equal, want)
			}
		}
	})
}

// canonical is the value as encoding/json writes it; nil where that loses lone surrogates.
func canonical(t *testing.T, raw []byte) []byte {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("\ufffd")) {
		return nil
	}
	return out
}

func hasNumber(raw []byte) bool { return bytes.ContainsAny(raw, "0123456789") }
