package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// Given a log, then its messages are those of the nodes, verbatim and in their order.
func TestMessages(t *testing.T) {
	tests := []struct {
		name string
		log  []step
		want []string
	}{
		{"none", []step{turnStart(1), stepStart(1, 1), stepEnd(1, 1), turnEnd(1)}, nil},
		{"a turn", one(), []string{"u-hi", "a-hello"}},
		{"chunks and notes do not count", []step{user("a"), note("x"), step{typ: event.AssistantChunk, data: `{}`}, assistant("b")}, []string{"u-a", "a-b"}},
		{"empty content is a node and no message", []step{user("a"), assistant(""), user("b")}, []string{"u-a", "u-b"}},
		{"a call and its result", []step{user("a"), assistant("b", "c"), toolResult("c", "ok")}, []string{"u-a", "a-b", "r-c"}},
		{"a replacement", []step{user("original"), assistant("compacted").replacing(0, 0, 0)}, []string{"a-compacted"}},
		{"in the order of nodes", []step{user("a"), user("b"), user("c"), assistant("d").replacing(1, 1, 1)}, []string{"u-a", "a-d", "u-c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, logtest.Short(memory.New(), 9), quiet())
			whole, stepwise := create(t, set, session.New{}), create(t, set, session.New{})
			appendAll(t, whole, tt.log...)
			for _, st := range tt.log {
				messages(t, stepwise)
				appendAll(t, stepwise, st)
			}
			wantEqual(t, "messages", messageIDs(messages(t, whole)), tt.want)
			wantEqual(t, "messages read after each append", messageIDs(messages(t, stepwise)), tt.want)
		})
	}
	s := fresh(t)
	data := `{"extra":1.0,"id":"m","role":"user","content":[{"type":"odd","x":"<&>"}],"source":{"kind":"plugin","plugin":"p"}}`
	appendAll(t, s, step{event.UserMessage, data, appended})
	wantEqual(t, "verbatim", string(messages(t, s)[0]), data)
}

// Given a list of messages, when the session goes on, then the list stays as it was, and elements that both have are the same bytes.
func TestMessageListsNeverChange(t *testing.T) {
	s := fresh(t)
	appendAll(t, s, user("a"), user("b"))
	first := messages(t, s)
	appendAll(t, s, user("c"))
	second := messages(t, s)
	appendAll(t, s, user("d"))
	third := messages(t, s)
	_ = append(second, json.RawMessage("written behind the end by its holder"))
	appendAll(t, s, user("e").replacing(0, 3, 0, 1, 2, 3))
	wantEqual(t, "first", messageIDs(first), []string{"u-a", "u-b"})
	wantEqual(t, "second", messageIDs(second), []string{"u-a", "u-b", "u-c"})
	wantEqual(t, "third", messageIDs(third), []string{"u-a", "u-b", "u-c", "u-d"})
	wantEqual(t, "after the replacement", messageIDs(messages(t, s)), []string{"u-e"})
	if &first[0][0] != &second[0][0] || &second[2][0] != &third[2][0] {
		t.Error("messages were made anew by an append")
	}
}

// Given messages that were read, then they are kept: reading again and appending reads nothing from the store, and a replacement reads the surface once.
func TestMessagesAreKept(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	appendAll(t, s, user("a"), user("b"), note("x"))
	messages(t, s)
	store.Counts()
	appendAll(t, s, user("c"), note("y"))
	messages(t, s)
	wantEqual(t, "events read", store.Counts().Read, 0)
	appendAll(t, s, user("d").replacing(0, 1, 0, 1))
	messages(t, s)
	messages(t, s)
	if n := store.Counts().Read; n == 0 || n > 4 {
		t.Errorf("%d events read after a replacement", n)
	}
}

// Given a surface with far-off nodes and much between them that was replaced, then reading its messages passes over most of that.
func TestMessagesPassOverWhatWasReplaced(t *testing.T) {
	const replaced = 5000
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	steps := []step{user("first")}
	sources := make([]int64, replaced)
	for i := range sources {
		steps = append(steps, user("x"))
		sources[i] = int64(i) + 1
	}
	steps = append(steps, user("summary").replacing(1, replaced, sources...))
	if _, _, err := batch(s, steps...); err != nil {
		t.Fatal(err)
	}
	store.Counts()
	wantEqual(t, "messages", messageIDs(messages(t, s)), []string{"u-first", "u-summary"})
	if n := store.Counts().Read; n > replaced/2 {
		t.Errorf("%d events read for two messages", n)
	}
}

// lossy answers without the events that it has lost.
type lossy struct {
	eventlog.Store
	lost func(seq int64) bool
	end  int64 // of what it says is there; 0 is all
}

func (l *lossy) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if l.end > 0 && (q.To <= 0 || q.To > l.end) {
		q.To = l.end
	}
	page, err := l.Store.Read(ctx, q)
	page.Events = slices.DeleteFunc(page.Events, func(e event.Event) bool { return l.lost != nil && l.lost(e.Seq) })
	return page, err
}

// Given a store that has lost an event of the surface, in the middle or at the end, then reading the messages says where.
func TestMessagesThatAreLost(t *testing.T) {
	for _, damage := range []lossy{{lost: func(seq int64) bool { return seq == 1 }}, {end: 1}} {
		store := &lossy{Store: memory.New()}
		s := create(t, newSet(t, store, quiet()), session.New{})
		appendAll(t, s, user("a"), user("b"))
		store.lost, store.end = damage.lost, damage.end
		_, err := s.Messages(context.Background())
		if c := wantErr[*eventlog.CorruptError](t, err); c != nil && c.Seq != 1 {
			t.Errorf("lost at seq %d, want 1", c.Seq)
		}
	}
}

// Given a message that is a small part of its event, then it is served without the rest in memory; one that is most of it is not copied.
func TestMessagesDoNotHoldWhatIsAroundThem(t *testing.T) {
	for _, tt := range []struct {
		meta   int
		copied bool
	}{{10, false}, {10_000, true}} {
		s := fresh(t)
		big := toolResult("c", "x")
		big.data = strings.Replace(big.data, `{"turn":1,`, `{"meta":"`+string(filler(tt.meta))+`","turn":1,`, 1)
		appendAll(t, s, big)
		built := messages(t, s)[0]
		appendAll(t, s, big)
		added := messages(t, s)[1]
		for i, ev := range logOf(t, s) { // the store hands out what it keeps
			piece := event.MessageOf(&ev)
			got := [][]byte{built, added}[i]
			if !bytes.Equal(got, piece) || (&got[0] != &piece[0]) != tt.copied {
				t.Errorf("meta of %d bytes, message %d: copied is %v", tt.meta, i, &got[0] != &piece[0])
			}
		}
	}
}

// Given more messages than may be kept, then they are read again, and right.
func TestMessagesBeyondTheirBoundAreNotKept(t *testing.T) {
	store := logtest.Slow(memory.New())
	o := quiet()
	o.MaxMessageBytes = 2 * len(userData("a"))
	s := create(t, newSet(t, store, o), session.New{})
	appendAll(t, s, user("a"), user("b"))
	messages(t, s)
	store.Counts()
	messages(t, s)
	wantEqual(t, "events read within the bound", store.Counts().Read, 0)
	appendAll(t, s, user("c"))
	for range 2 {
		wantEqual(t, "messages", messageIDs(messages(t, s)), []string{"u-a", "u-b", "u-c"})
		wantEqual(t, "events read beyond the bound", store.Counts().Read, 3)
	}
}

// Given more messages than may be kept, when they are given one by one, then they are those of the list, in its order, and the first comes before most of them have been read.
func TestMessagesOneByOne(t *testing.T) {
	many := []step{user("m0")}
	for i := 1; i < 20; i++ {
		many = append(many, user(fmt.Sprint("m", i)))
	}
	for name, steps := range map[string][]step{
		"none":           nil,
		"many":           many,
		"replaced":       append(many[:20:20], user("x").replacing(3, 5, 3, 4, 5), note("n"), user("y").replacing(0, 1, 0, 1)),
		"replaced again": append(many[:20:20], user("x").replacing(3, 5, 3, 4, 5), user("y").replacing(20, 6, 20, 6), user("z").replacing(2, 2, 2), user("end")),
	} {
		for _, most := range []int{1, 0} {
			t.Run(fmt.Sprintf("%s, of %d bytes", name, most), func(t *testing.T) {
				store := logtest.Slow(logtest.Short(memory.New(), 2))
				o := quiet()
				o.MaxMessageBytes = most
				s := create(t, newSet(t, store, o), session.New{})
				if len(steps) > 0 {
					appendAll(t, s, steps...)
				}
				store.Counts()
				var got []json.RawMessage
				read := 0
				asOf, err := s.EachMessage(t.Context(), func(m json.RawMessage) error {
					if len(got) == 0 {
						read = store.Counts().Read
					}
					got = append(got, m)
					return nil
				})
				want, last, failed := s.MessagesAsOf(t.Context())
				if err != nil || failed != nil {
					t.Fatal(err, failed)
				}
				wantEqual(t, "the messages", messageIDs(got), messageIDs(want))
				wantEqual(t, "as of", asOf, last)
				if most > 0 && read > 8 {
					t.Errorf("%d events were read before the first message was given", read)
				}
				stop := errors.New("no more")
				given := 0
				if _, err := s.EachMessage(t.Context(), func(json.RawMessage) error { given++; return stop }); len(want) > 0 && (err != stop || given != 1) {
					t.Errorf("after an error %d were given, and %v", given, err)
				}
			})
		}
	}
}

// Given a read of the messages that waits for the store, when the session goes on meanwhile, then appends do not wait, and what is kept in the end is right.
func TestMessagesWhileTheSessionGoesOn(t *testing.T) {
	for _, tt := range []struct {
		name      string
		meanwhile step
		after     []string
	}{
		{"an append", user("c"), []string{"u-a", "u-b", "u-c"}},
		{"a replacement", user("c").replacing(0, 0, 0), []string{"u-c", "u-b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := logtest.Slow(memory.New())
			s := create(t, newSet(t, store, quiet()), session.New{})
			appendAll(t, s, user("a"), user("b"))
			gate := store.Hold(logtest.Read)
			read := make(chan []string, 2)
			for range 2 {
				go func() {
					list, err := s.Messages(context.Background())
					if err != nil {
						t.Error(err)
					}
					read <- messageIDs(list)
				}()
			}
			<-gate.Arrived()
			appendAll(t, s, tt.meanwhile)
			gate.Release()
			for range 2 {
				got := <-read
				if len(got) != 2 && len(got) != 3 {
					t.Errorf("got %v", got)
				}
			}
			wantEqual(t, "messages", messageIDs(messages(t, s)), tt.after)
		})
	}
}

// Given a context that ends while messages are read, then the reader leaves, and so does one who waits for it.
func TestMessagesHonourContexts(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	appendAll(t, s, user("a"))
	gate := store.Hold(logtest.Read)
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 2)
	for range 2 {
		go func() { _, err := s.Messages(ctx); left <- err }()
	}
	<-gate.Arrived()
	cancel()
	for range 2 {
		wantIs(t, <-left, context.Canceled)
	}
	gate.Release()
	wantEqual(t, "messages", messageIDs(messages(t, s)), []string{"u-a"})
}

// Given events that are no messages, strewn anywhere, then the messages stay.
func TestMessagesIgnoreOtherEvents(t *testing.T) {
	plain, mixed := fresh(t), fresh(t)
	appendAll(t, plain, user("a"), assistant("b"), user("c"))
	appendAll(t, mixed, note("1"), user("a"), turnStart(9), note("2"), assistant("b"), step{typ: "x", data: `null`}, user("c"), turnEnd(9))
	wantEqual(t, "messages", bytes.Join(raws(messages(t, mixed)), nil), bytes.Join(raws(messages(t, plain)), nil))
}

func raws(list []json.RawMessage) [][]byte {
	var out [][]byte
	for _, m := range list {
		out = append(out, m)
	}
	return out
}
