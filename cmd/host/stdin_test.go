package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestAnInterruptibleReaderReadsEverything(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 20_000) // More than one block.
	for name, r := range map[string]io.Reader{
		"as it comes":     bytes.NewReader(text),
		"byte by byte":    iotest.OneByteReader(bytes.NewReader(text[:1000])),
		"with its end":    iotest.DataErrReader(bytes.NewReader(text)),
		"in small halves": iotest.HalfReader(bytes.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			want := text
			if name == "byte by byte" {
				want = text[:1000]
			}
			if err := iotest.TestReader(newInterruptible(t.Context(), r), want); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnInterruptibleReaderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer out.Close() // Lets the read end that stays behind.
	r := newInterruptible(ctx, in)
	go out.Write([]byte("first"))
	buf := make([]byte, 10)
	if n, err := r.Read(buf); n != 5 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	cancel()
	if _, err := r.Read(buf); !errors.Is(err, context.Canceled) {
		t.Errorf("it waits for more: %v", err)
	}
}
