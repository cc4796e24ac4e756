package api

import (
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
)

// readLimit is how many events a page has, by itself and at most.
const readLimit = 1000

// ndjson is the form in which a log goes out as a stream of lines.
const ndjson = "application/x-ndjson"

// readEvents gives events forward. It holds a small page at a time, or one event that is larger.
func (c *call) readEvents() error {
	lines := accepts(c.r, ndjson)
	q := c.query("from", "limit", "types")
	from, types := q.integer("from", 0, 0, event.MaxInteger), q.list("types")
	limit := q.integer("limit", readLimit, 1, readLimit)
	if lines && !q.has("limit") {
		limit = math.MaxInt64
	}
	if q.err != nil {
		return q.err
	}
	s, _, err := c.find()
	if err != nil {
		return err
	}
	if lines {
		_, err := c.pages(s, from, 0, limit, types, func(n int64, ev *event.Event, dst []byte) []byte { return append(ev.AppendJSON(dst), '\n') },
			func() { c.begin(http.StatusOK, ndjson) })
		return err
	}
	end, err := c.pages(s, from, 0, limit, types, listed, func() {
		c.begin(http.StatusOK, "application/json")
		c.write([]byte(`{"events":[`))
	})
	if err != nil {
		return err
	}
	return c.write(append(strconv.AppendInt([]byte(`],"seq":`), end, 10), "}\n"...))
}

// listed writes events as the elements of an array.
func listed(n int64, ev *event.Event, dst []byte) []byte {
	if n > 0 {
		dst = append(dst, ',')
	}
	return ev.AppendJSON(dst)
}

// pages writes events page by page, up to seq to, exclusive, or for 0 to the end that the log has when the first is read, and gives that end. begin is called once the first has been read.
func (c *call) pages(s *session.Session, from, to, limit int64, types []string, write func(n int64, ev *event.Event, dst []byte) []byte, begin func()) (end int64, err error) {
	var out []byte
	end = to
	for n := int64(0); ; {
		page, err := s.Page(c.r.Context(), eventlog.Query{From: from, To: end, Types: types, MaxBytes: pageBytes})
		if err != nil {
			return 0, err
		}
		if !c.begun {
			end = page.End
			begin()
		}
		out = out[:0]
		for i := range page.Events {
			if n == limit {
				break
			}
			out = write(n, &page.Events[i], out)
			n++
		}
		clear(page.Events) // They are in what is written, which a slow reader may take for long.
		if err := c.write(out); err != nil {
			return 0, err
		}
		if from = page.Next; n == limit || from >= end {
			return end, nil
		}
	}
}

// accepts says whether a request asks for a form by name.
func accepts(r *http.Request, kind string) bool {
	for _, line := range r.Header.Values("Accept") {
		for _, one := range strings.Split(line, ",") {
			if name, params, err := mime.ParseMediaType(one); err == nil && name == kind && params["q"] != "0" {
				return true
			}
		}
	}
	return false
}
