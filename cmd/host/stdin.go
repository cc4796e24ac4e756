package main

import (
	"context"
	"io"
)

// interruptible reads from r until ctx ends. A read from a pipe or a terminal can not be taken back, so it happens on a goroutine, which at an interrupt
// stays behind in its read until the process ends, moments later. Belongs to one goroutine.
type interruptible struct {
	ctx context.Context
	r   io.Reader
	// buf belongs to the read under way; between reads rest lies in it.
	buf  []byte
	got  chan chunk
	idle bool
	rest chunk
}

type chunk struct {
	data []byte
	err  error
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	// 64 KiB is what a pipe holds.
	return &interruptible{ctx: ctx, r: r, buf: make([]byte, 64<<10), got: make(chan chunk, 1), idle: true}
}

func (i *interruptible) Read(p []byte) (int, error) {
	if len(i.rest.data) == 0 && i.rest.err == nil {
		if i.idle {
			i.idle = false
			go func() {
				n, err := i.r.Read(i.buf)
				i.got <- chunk{i.buf[:n], err}
			}()
		}
		select {
		case <-i.ctx.Done():
			return 0, i.ctx.Err()
		case i.rest = <-i.got:
			i.idle = true
		}
	}
	n := copy(p, i.rest.data)
	i.rest.data = i.rest.data[n:]
	if len(i.rest.data) > 0 {
		return n, nil
	}
	return n, i.rest.err
}
