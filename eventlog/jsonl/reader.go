// Package jsonl owns the interchange format of logs: a header line, then one record a line, an event or a packed run of
// assistant/chunk events; plain or in zstd.
//
// It never holds more than a line of a log, never re-encodes an event's data, and never skips a line to go on behind it. Whether the
// events fit into a log beyond their seqs, by shape and surface, is decided by whoever takes them.
//
// A Reader and a Writer belong to one goroutine each; only Reader.Progress may be called from others.
package jsonl

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"

	"github.com/foldhost/foldhost/event"
)

// lineFactor is how much longer than the limit on an event a line may be: 4 times, 16 MiB by default. That is what event.DecodeDraft
// takes for an event with white space, and room for a row of hundreds of thousands of chunks, far more than one message has.
const lineFactor = 4

// Options say how to read.
type Options struct {
	// Strict forgives only a last line without newline, and leaves the seqs to the taker. Otherwise a torn tail is dropped with a
	// warning.
	Strict bool
	// MaxEventBytes is the limit on one event; 0 is event.DefaultMaxBytes. A line may have four times that.
	MaxEventBytes int
	// Size is the length of the input in bytes, for Progress; Open sets it. 0 is unknown.
	Size int64
}

// Reader reads one log once.
type Reader struct {
	options Options
	limit   int // of a line
	path    string
	file    *os.File
	source  *source
	buf     []byte

	header event.Header
	begun  bool
	// lines counts what was read, index the events given: it is the seq that the next one should have.
	lines, index int64
	warnings     []Warning
}

// Open reads the header of a file. A file that cannot be read gives a *ReadError, a bad header an *event.IndexError with
// event.HeaderIndex. Close the reader when done.
func Open(path string, o Options) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &ReadError{Path: path, Err: err}
	}
	r, err := open(f, path, o)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, err
	}
	return r, nil
}

func open(f *os.File, path string, o Options) (*Reader, error) {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		return nil, &ReadError{Path: path, Err: err}
	}
	if info.Mode().IsRegular() {
		o.Size = info.Size()
	}
	r, err := newReader(f, path, o)
	if err != nil {
		return nil, err
	}
	r.file = f
	return r, nil
}

// NewReader reads the header from a stream. Errors are those of Open.
func NewReader(in io.Reader, o Options) (*Reader, error) { return newReader(in, "", o) }

func newReader(in io.Reader, path string, o Options) (*Reader, error) {
	if o.MaxEventBytes <= 0 {
		o.MaxEventBytes = event.DefaultMaxBytes
	}
	r := &Reader{options: o, limit: lineFactor * o.MaxEventBytes, path: path}
	var err error
	if r.source, err = newSource(in); err != nil {
		return nil, &ReadError{Path: path, Err: err}
	}
	if err := r.readHeader(); err != nil {
		r.source.close()
		return nil, err
	}
	return r, nil
}

// foreign are what files begin with that people try and that are not read. A log may not begin with a byte order mark, as every line of it is JSON.
var foreign = []struct{ magic, rule, reason string }{
	{"\x1f\x8b", "gzip", "this is gzip, which is not read: unpack it first, or pack it with zstd"},
	{"\xef\xbb\xbf", "byte-order-mark", "the text begins with a byte order mark: save it as UTF-8 without one"},
	{"\xff\xfe", "utf-16", "this is UTF-16: save it as UTF-8 without a byte order mark"},
	{"\xfe\xff", "utf-16", "this is UTF-16: save it as UTF-8 without a byte order mark"},
}

func (r *Reader) readHeader() error {
	refuse := func(err error) error {
		return &event.IndexError{Index: event.HeaderIndex, Err: &LineError{Path: r.path, Line: 1, Err: err}}
	}
	l, err := r.source.next(&r.buf, r.limit)
	switch {
	case err == io.EOF && r.source.torn, err == nil && !l.whole && r.source.torn:
		return &ReadError{Path: r.path, Err: errors.New("the zstd frame ends before the header does: take the file from its source again")}
	case err == io.EOF:
		return refuse(&event.Error{Code: event.HeaderInvalid, Rule: "empty", Reason: "the log is empty; its first line is the header"})
	case err != nil:
		if e, ok := errors.AsType[*GrowthError](err); ok {
			return refuse(e)
		}
		return &ReadError{Path: r.path, Err: err}
	case l.text == nil:
		return refuse(&LineTooLongError{Size: l.size, Limit: int64(r.limit)})
	}
	r.lines = 1
	header, err := event.DecodeHeader(l.text)
	if err != nil {
		for _, f := range foreign {
			if bytes.HasPrefix(l.text, []byte(f.magic)) {
				err = &event.Error{Code: event.HeaderInvalid, Rule: f.rule, Reason: f.reason}
			}
		}
		return refuse(err)
	}
	if !l.whole {
		return refuse(&event.Error{Code: event.HeaderInvalid, Rule: "torn",
			Reason: "the header has no newline, so its writer died before there was a log"})
	}
	r.header = header
	return nil
}

// Header is line 1.
func (r *Reader) Header() event.Header { return r.header }

// Events gives the events in order, packed rows expanded, and ends at the first error. Events can be ranged over once.
//
// A refused line gives an *event.IndexError around a *LineError; the code is that of the *event.Error inside. A file that cannot be
// read to its end gives a *ReadError. What was dropped is in Warnings when the sequence has ended.
func (r *Reader) Events() iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		if r.begun {
			yield(event.Draft{}, ErrRead)
			return
		}
		r.begun = true
		if err := r.run(yield); err != nil {
			yield(event.Draft{}, err)
		}
	}
}

// run gives events until the text ends or is refused. It returns nil when yield had enough.
func (r *Reader) run(yield func(event.Draft, error) bool) error {
	for {
		l, err := r.next()
		if err == io.EOF {
			return r.endOfText(line{})
		}
		if err != nil {
			return err
		}
		if !l.whole {
			return r.endOfText(l)
		}
		record, err := r.decode(l)
		if err == nil && !r.options.Strict && record.seq() != r.index {
			err = &GapError{Seq: record.seq(), Expected: r.index}
		}
		if err != nil {
			return r.refuse(l, err)
		}
		if record.row != nil {
			if err := r.source.grow(max(0, record.row.size-l.size)); err != nil {
				return r.at(r.lines, r.index, err)
			}
		}
		for draft, err := range record.drafts(r.options.MaxEventBytes) {
			if err != nil {
				return r.at(r.lines, r.index, err)
			}
			r.index++
			if !yield(draft, nil) {
				return nil
			}
		}
	}
}

// next reads a line and counts it. io.EOF is the end.
func (r *Reader) next() (line, error) {
	l, err := r.source.next(&r.buf, r.limit)
	if err == io.EOF {
		return l, err
	}
	if e, ok := errors.AsType[*GrowthError](err); ok {
		return l, r.at(r.lines+1, r.index, e)
	}
	if err != nil {
		return l, &ReadError{Path: r.path, Err: err}
	}
	r.lines++
	return l, nil
}

// at names the place of an error.
func (r *Reader) at(line, index int64, err error) error {
	return &event.IndexError{Index: index, Err: &LineError{Path: r.path, Line: line, Err: err}}
}

// Warnings says what was dropped, once Events has ended.
func (r *Reader) Warnings() []Warning { return r.warnings }

// Progress is how many bytes of the input were read, compressed ones for zstd, and how many there are; 0 is unknown. It may be called
// from any goroutine.
func (r *Reader) Progress() (done, total int64) { return r.source.count.n.Load(), r.options.Size }

// Close lets go of the input, and closes the file when Open opened it.
func (r *Reader) Close() error {
	r.source.close()
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
