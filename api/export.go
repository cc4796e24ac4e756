package api

import (
	"net/http"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// exportLog gives a log in the interchange form, as long as it is when the first page is read. It holds a small page, or one event that is larger, and a block of lines.
func (c *call) exportLog() error {
	q := c.query("pack")
	pack := q.flag("pack", true)
	if q.err != nil {
		return q.err
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	out, err := jsonl.NewWriter(&lines{c}, s.Header(), jsonl.WriterOptions{Verbatim: !pack})
	if err != nil {
		return err
	}
	for from, end := int64(0), int64(0); ; {
		page, err := s.Page(c.r.Context(), eventlog.Query{From: from, To: end, MaxBytes: pageBytes})
		if err != nil {
			return err
		}
		for _, ev := range page.Events {
			if err := out.Write(ev); err != nil {
				return err
			}
		}
		if from, end = page.Next, page.End; from >= end {
			return out.Close()
		}
	}
}

// lines is an answer of lines, which begins with the first of them: what fails before is a problem as any other.
type lines struct{ c *call }

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	if !l.c.begun {
		l.c.begin(http.StatusOK, ndjson)
	}
	if err := l.c.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}
