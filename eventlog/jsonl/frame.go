package jsonl

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

// frameWriter compresses the text of a log, and keeps the file as large as a reader wants it for what it comes to: see maxGrowth. A log of events that are large and nearly the same, as
// states are, would else be refused as a bomb is.
type frameWriter struct {
	*zstd.Encoder
	count countingWriter
	// size is what the text has come to.
	size int64
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func newFrameWriter(out io.Writer) (f *frameWriter, err error) {
	f = &frameWriter{count: countingWriter{w: out}}
	// One goroutine, the caller's. The checksum finds damage that still decompresses.
	f.Encoder, err = zstd.NewWriter(&f.count, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	return f, err
}

// room is called before text that comes to so much more; flush has what was written before given to the encoder. When the file is too small for it a frame is ended, and one follows that readers
// skip, as long as is missing. What the encoder still holds counts for nothing, so that it is never too little; half of what is free to all stays free, so that it is not done all the time.
func (f *frameWriter) room(more int64, flush func() error) error {
	f.size += more
	if f.size <= growth(f.count.n)-freeGrowth/2 {
		return nil
	}
	if err := flush(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if missing := f.size/maxGrowth - f.count.n; missing > 0 {
		// What one row or event comes to, over maxGrowth: some MiB at most.
		skipped := binary.LittleEndian.AppendUint32([]byte(skippableMagic), uint32(missing))
		if _, err := f.count.Write(append(skipped, make([]byte, missing)...)); err != nil {
			return err
		}
	}
	f.Reset(&f.count)
	return nil
}

// skippableMagic begins a frame that every reader of zstd passes over.
const skippableMagic = "\x50\x2a\x4d\x18"
