package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

const header = `{"type":"session","version":0,"id":"s","createdAt":1}` + "\n"

// taken is what a reader made of a text.
type taken struct {
	header   event.Header
	events   []event.Event
	warnings []jsonl.Warning
	err      error
}

func take(in io.Reader, o jsonl.Options) (t taken) {
	r, err := jsonl.NewReader(in, o)
	if err != nil {
		t.err = err
		return t
	}
	t.header = r.Header()
	for draft, err := range r.Events() {
		if err != nil {
			t.err = err
			break
		}
		t.events = append(t.events, draft.Event)
	}
	t.warnings = r.Warnings()
	if err := r.Close(); err != nil && t.err == nil {
		t.err = err
	}
	return t
}

func takeText(text string, o jsonl.Options) taken { return take(strings.NewReader(text), o) }

// index and code of an error; index −2 when it names none.
func place(err error) (int64, event.Code) {
	index := int64(-2)
	if at, ok := errors.AsType[*event.IndexError](err); ok {
		index = at.Index
	}
	if fault, ok := errors.AsType[*event.Error](err); ok {
		return index, fault.Code
	}
	return index, ""
}

func write(t tb, h event.Header, events []event.Event, o jsonl.WriterOptions) string {
	t.Helper()
	var out bytes.Buffer
	w, err := jsonl.NewWriter(&out, h, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func sameEvents(t tb, got, want []event.Event) {
	t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("event %d:\n got %s\nwant %s", i, got[i].AppendJSON(nil), want[i].AppendJSON(nil))
		}
	}
}

func compress(t tb, text string) string {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return string(enc.EncodeAll([]byte(text), nil))
}

// tb is what a *testing.T and a *rapid.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
