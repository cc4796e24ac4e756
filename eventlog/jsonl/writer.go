package jsonl

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/foldhost/foldhost/event"
)

// Compression is how a log is written.
type Compression string

// A log is plain text, or in zstd at its usual level with a checksum.
const (
	None Compression = "none"
	Zstd Compression = "zstd"
)

// WriterOptions say how to write. The zero value packs and does not compress.
type WriterOptions struct {
	// Verbatim writes one event a line; otherwise runs of three or more chunks are packed into rows.
	Verbatim bool
	// Compression is None when empty.
	Compression Compression
}

// Writer writes one log. It checks nothing about the events and their order: what it is given has been accepted.
type Writer struct {
	out      *bufio.Writer
	frames   *frameWriter
	verbatim bool
	packer   packer
	buf      []byte
	lines    int64
	err      error
}

// NewWriter writes the header. The log is complete only when Close has returned nil.
func NewWriter(out io.Writer, header event.Header, o WriterOptions) (*Writer, error) {
	w := &Writer{verbatim: o.Verbatim}
	switch o.Compression {
	case None, "":
	case Zstd:
		frames, err := newFrameWriter(out)
		if err != nil {
			return nil, fmt.Errorf("beginning a zstd stream: %w", err)
		}
		w.frames, out = frames, frames
	default:
		return nil, fmt.Errorf("jsonl: no compression is called %q: use none or zstd", o.Compression)
	}
	w.out = bufio.NewWriterSize(out, blockSize)
	w.buf = append(header.AppendJSON(w.buf[:0]), '\n')
	if err := w.put(1, 0); err != nil {
		return nil, err
	}
	return w, nil
}

var errEnded = errors.New("jsonl: the log has been ended by Close; what comes later needs another writer")

// Write writes an event, or keeps it until its run ends; what it keeps is bounded. The first error is given again by every later call.
func (w *Writer) Write(e event.Event) error {
	switch {
	case w.err != nil:
		return w.err
	case w.out == nil:
		return errEnded
	}
	w.buf = w.buf[:0]
	if w.verbatim {
		w.buf = append(e.AppendJSON(w.buf), '\n')
		return w.put(1, 0)
	}
	if w.packer.add(&e) {
		return nil
	}
	lines, row := w.flush()
	if !w.packer.add(&e) {
		w.buf = append(e.AppendJSON(w.buf), '\n')
		lines++
	}
	return w.put(lines, row)
}

// flush moves what the packer has to the buffer, and says how many lines that is and, of a row, the size of its events.
func (w *Writer) flush() (lines, row int64) {
	lines = int64(w.packer.n)
	if lines >= minRow {
		row = w.packer.run.size(lines, len(w.packer.members))
		lines = 1
	}
	w.buf = w.packer.flush(w.buf)
	return lines, row
}

func (w *Writer) put(lines, row int64) error {
	if w.frames != nil && w.err == nil {
		// No less than a reader makes of them.
		if w.err = w.frames.room(int64(len(w.buf))+lines*envelopeSize+row, w.out.Flush); w.err != nil {
			return w.err
		}
	}
	w.lines += lines
	if _, err := w.out.Write(w.buf); err != nil {
		w.err = fmt.Errorf("writing line %d of the log: %w", w.lines, err)
	}
	return w.err
}

// Lines is how many lines were written, the header included.
func (w *Writer) Lines() int64 { return w.lines }

// Close writes what is kept and ends the log. It does not close what the log is written to. A second Close does nothing.
func (w *Writer) Close() error {
	if w.out == nil {
		return w.err
	}
	if w.err == nil {
		w.buf = w.buf[:0]
		if lines, row := w.flush(); w.put(lines, row) == nil {
			if err := w.out.Flush(); err != nil {
				w.err = fmt.Errorf("writing the end of the log: %w", err)
			}
		}
	}
	// The encoder is closed after an error too, as it holds buffers; what it says then does not matter.
	if w.frames != nil {
		if err := w.frames.Close(); err != nil && w.err == nil {
			w.err = fmt.Errorf("ending the zstd stream: %w", err)
		}
	}
	w.out = nil
	return w.err
}
