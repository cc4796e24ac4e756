package event_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/corpus"
)

// accept reads one line as a log is read: lossless JSON, envelope, shape.
func accept(line []byte) (event.Draft, error) {
	d, err := event.DecodeDraft(line, 0)
	if err != nil {
		return d, err
	}
	return d, event.CheckShape(&d.Event)
}

func TestRecordedEventsGoOutByteForByte(t *testing.T) {
	for _, log := range corpus.Logs(t) {
		h, err := event.DecodeHeader(log.Header)
		if err != nil {
			t.Fatalf("%s: header: %v", log.Name, err)
		}
		if got := h.AppendJSON(nil); !bytes.Equal(got, log.Header) {
			t.Errorf("%s: header\n got %s\nwant %s", log.Name, got, log.Header)
		}
		for i, line := range log.Events {
			d, err := accept(line)
			if err != nil {
				t.Fatalf("%s: event %d: %v", log.Name, i, err)
			}
			if d.OpFault != "" || d.SourcesFault != "" {
				t.Fatalf("%s: event %d: faults %q, %q", log.Name, i, d.OpFault, d.SourcesFault)
			}
			got := d.AppendJSON(nil)
			if d.EncodedSize() != len(got) {
				t.Errorf("%s: event %d: EncodedSize is %d, of %d bytes", log.Name, i, d.EncodedSize(), len(got))
			}
			if !event.Equal(got, line) {
				t.Errorf("%s: event %d\n got %s\nwant %s", log.Name, i, got, line)
			}
			if want := event.Lookup(line, "data"); !bytes.Equal(d.Data, want) {
				t.Errorf("%s: event %d: data changed", log.Name, i)
			}
		}
	}
}

// surfaceCodes are decided by the surface, above this package.
var surfaceCodes = map[string]bool{
	"seq-not-contiguous": true, "surface-ineligible": true, "surface-op-missing": true, "surface-op-invalid": true,
	"surface-range-invalid": true, "sources-invalid": true, "sources-incomplete": true, "tool-result-rewrite": true,
}

func TestInvalidLogsAreRefusedAtTheirEventWithTheirCode(t *testing.T) {
	for _, log := range corpus.Invalid(t) {
		t.Run(log.File, func(t *testing.T) {
			index, err := int64(event.HeaderIndex), error(nil)
			if _, err = event.DecodeHeader(log.Header); err == nil {
				for i, line := range log.Events {
					if _, err = accept(line); err != nil {
						index = int64(i)
						break
					}
				}
			}
			if log.Valid || surfaceCodes[log.Code] {
				if err != nil {
					t.Fatalf("refused at %d: %v", index, err)
				}
				return
			}
			want := int64(event.HeaderIndex)
			if log.Index != nil {
				want = *log.Index
			}
			var refusal *event.Error
			if !errors.As(err, &refusal) || string(refusal.Code) != log.Code || index != want {
				t.Fatalf("got %v at %d, want %s at %d", err, index, log.Code, want)
			}
		})
	}
}
