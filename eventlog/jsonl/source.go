package jsonl

import (
	"bufio"
	"errors"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window that is read: 32 MiB. Levels up to 19 use at most 8 MiB; what is above 32 MiB is made with
// options that trade the reader's memory, and a hostile file could ask for gigabytes.
const maxWindow = 32 << 20

const (
	// maxGrowth is how many times its own length a log may come to, and a row in it. Events of a row repeat what they have in common, so a line of 16 MiB with a long id and empty texts could
	// stand for terabytes; and zstd writes 128 KiB in four bytes. Logs as they are recorded come to 20 or 50 times their length, chunks in rows in zstd; a row has
	// ids of a thousand bytes and nothing but empty texts and stays below. A log without zstd comes to no more than its rows do.
	maxGrowth = 256
	// freeGrowth is what any log may come to besides: 64 MiB are read in a fraction of a second, whatever is in them.
	freeGrowth = 64 << 20
)

// source gives the text of a log, decompressed where it has to be, and counts what was read of the file.
type source struct {
	count   *counter
	text    *bufio.Reader
	decoder *zstd.Decoder
	// torn says that the text ended inside a zstd frame.
	torn bool
	// size is what the file has come to: the length of its lines, of which each counts as one event at least, and of rows that of the events that they stand for.
	size int64
}

// grow takes so much more into account, and says whether the log is as large as its file may make it.
func (s *source) grow(more int64) error {
	s.size += more
	read := s.count.n.Load()
	if limit := growth(read); s.size > limit {
		return &GrowthError{Size: s.size, Limit: limit, Read: read}
	}
	return nil
}

// growth is what a file of which so much was read may have come to.
func growth(read int64) int64 { return freeGrowth + maxGrowth*read }

type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// blockSize is what is read at once: 64 KiB, some hundred lines of an ordinary log.
const blockSize = 64 << 10

// newSource tells zstd by its first bytes and not by a file's name.
func newSource(r io.Reader) (*source, error) {
	s := &source{count: &counter{r: r}}
	raw := bufio.NewReaderSize(s.count, blockSize)
	s.text = raw
	magic, err := raw.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !isZstd(magic) {
		return s, nil
	}
	// One goroutine, the caller's: a log is read in order.
	s.decoder, err = zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	s.text = bufio.NewReaderSize(frames{s}, blockSize)
	return s, nil
}

// isZstd knows a frame and a skippable frame.
func isZstd(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	return string(magic) == "\x28\xb5\x2f\xfd" || magic[0]&0xf0 == 0x50 && string(magic[1:]) == "\x2a\x4d\x18"
}

// frames reads the text of all frames. A frame that is cut off ends the text, as a line that is cut off does; any other damage is an error.
type frames struct{ s *source }

func (f frames) Read(p []byte) (int, error) {
	if f.s.torn {
		return 0, io.EOF
	}
	n, err := f.s.decoder.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		f.s.torn, err = true, io.EOF
	}
	return n, err
}

func (s *source) close() {
	if s.decoder != nil {
		s.decoder.Close()
	}
}

// line is one line of the text without its newline.
type line struct {
	// text is good until the next line is read; nil when the line is longer than the limit.
	text []byte
	// size is the length of the text whether it was kept or not.
	size int64
	// whole says that the newline was there.
	whole bool
}

// bytes is how much of the file's text the line is.
func (l line) bytes() int64 {
	if l.whole {
		return l.size + 1
	}
	return l.size
}

// next reads a line of at most limit bytes into buf and reports io.EOF when there is none. A longer line is read to its end, to
// know whether it has one, and not kept.
func (s *source) next(buf *[]byte, limit int) (line, error) {
	var l line
	kept := (*buf)[:0]
	for {
		part, err := s.text.ReadSlice('\n')
		if err == nil {
			l.whole = true
			part = part[:len(part)-1]
		}
		more := int64(len(part))
		if l.size += more; err == nil {
			more += max(1, envelopeSize-l.size)
		}
		if err := s.grow(more); err != nil {
			return line{}, err
		}
		if l.size <= int64(limit) {
			if l.whole && len(kept) == 0 {
				l.text = part // the usual case: the line lies in the block
				return l, nil
			}
			kept = append(kept, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return line{}, err
		case err != nil && l.size == 0:
			return line{}, io.EOF
		}
		*buf = kept
		if l.size <= int64(limit) {
			l.text = kept
		}
		return l, nil
	}
}
