package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// How many messages a page of history has, by itself and at most: a screenful or two, and more than anybody scrolls through at once.
const (
	historyMessages    = 50
	historyMaxMessages = 1000
)

// historyBytes bounds a page of history that has more than one message: 4 MiB, the limit on one event.
const historyBytes = 4 << 20

// historyLookBack is how many events before the end the search for messages begins with, for each that is wanted: a message of an agent that streams has some dozens of chunks.
const historyLookBack = 32

// readHistory gives a page of the log that ends before beforeSeq, or at the values that come with it, and begins with a message.
func (c *call) readHistory() error {
	q := c.query("beforeSeq", "maxMessages", "keys")
	before := q.integer("beforeSeq", 0, 0, event.MaxInteger)
	most, keys := int(q.integer("maxMessages", historyMessages, 1, historyMaxMessages)), q.list("keys")
	if q.err != nil {
		return q.err
	}
	s, info, err := c.find()
	if err != nil {
		return err
	}
	end := min(before, info.Seq)
	tail := !q.has("beforeSeq")
	var block registry.Block
	if tail {
		// The values first: the page then ends with the last event that is in them, whatever is appended meanwhile.
		if block, err = c.api.host.Values(c.r.Context(), s.ID(), narrow(keys)...); err != nil {
			return err
		}
		end = block.AsOfSeq + 1
	}
	start, err := historyStart(c.r.Context(), s, end, most)
	if err != nil {
		return err
	}
	begin := func() {
		c.begin(http.StatusOK, "application/json")
		c.write([]byte(`{"events":[`))
	}
	if start == end {
		begin()
	} else if _, err := c.pages(s, start, end, end-start, nil, listed, begin); err != nil {
		return err
	}
	out := strconv.AppendBool([]byte(`],"hasMore":`), start > 0)
	if tail {
		out = block.AppendJSON(append(out, `,"projections":`...))
	}
	return c.write(append(out, "}\n"...))
}

// historyStart finds where a page begins that ends before a seq: with the first event that its oldest message stands on, or with the log where there are fewer messages than
// wanted. It has as many of them as are wanted and fit, one at least; where there is none, as many events as fit.
func historyStart(ctx context.Context, s *session.Session, end int64, most int) (start int64, err error) {
	older := messagesBack{ctx: ctx, s: s, to: end, width: historyLookBack * int64(most)}
	weigh := weighing{ctx: ctx, s: s, low: end, room: historyBytes}
	start = end
	for n := range most {
		at, found, err := older.next()
		if err != nil {
			return 0, err
		}
		if err := weigh.downTo(at); err != nil {
			return 0, err
		}
		switch {
		case weigh.low <= at || found && n == 0:
			start = at
		case n == 0:
			return min(weigh.low, end-1), nil // An event always fits.
		default:
			return start, nil
		}
		if !found {
			break
		}
	}
	return start, nil
}

// messagesBack walks back over the messages before a seq that were appended, in ranges that double, so that it costs what it finds and not what the log holds.
type messagesBack struct {
	ctx       context.Context
	s         *session.Session
	to, width int64
	// starts are of those messages that were found and not yet given, the oldest first.
	starts []int64
}

// next gives the first event that the next older message stands on: itself, or the earliest of its sources. Without one it is the beginning of the log.
func (m *messagesBack) next() (start int64, found bool, err error) {
	for len(m.starts) == 0 {
		if m.to == 0 {
			return 0, false, nil
		}
		from := max(0, m.to-m.width)
		for ev, err := range m.s.Scan(m.ctx, from, m.to, []string{event.UserMessage, event.AssistantMessage}) {
			if err != nil {
				return 0, false, err
			}
			if ev.Op.Kind == event.OpAppend {
				m.starts = append(m.starts, slices.Min(append([]int64{ev.Seq}, ev.Sources...)))
			}
		}
		m.to, m.width = from, 2*m.width
	}
	last := len(m.starts) - 1
	start, m.starts = m.starts[last], m.starts[:last]
	return start, true, nil
}

// weighing walks back over events as long as there is room for them: all from low on are weighed. When there is no more it stays where it is.
type weighing struct {
	ctx  context.Context
	s    *session.Session
	low  int64
	room int
	full bool
}

// Events are weighed in slices, forward within each as logs are read: from 16, which may be 64 MiB where each is as large as it can be, to 512.
const (
	leastSlice = 16
	mostSlice  = 512
)

// downTo goes on down to a seq, if there is room.
func (w *weighing) downTo(seq int64) error {
	var sizes []int
	for slice := int64(leastSlice); w.low > seq && !w.full; slice = min(2*slice, mostSlice) {
		sizes = sizes[:0]
		for ev, err := range w.s.Scan(w.ctx, max(seq, w.low-slice), w.low, nil) {
			if err != nil {
				return err
			}
			sizes = append(sizes, ev.EncodedSize())
		}
		for i := len(sizes) - 1; i >= 0 && !w.full; i-- {
			if w.full = sizes[i] > w.room; !w.full {
				w.room -= sizes[i]
				w.low--
			}
		}
	}
	return nil
}
