package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

var smallChunk = json.RawMessage(`{"turn":1,"step":2,"chunk":{"type":"text-delta","index":0,"text":"hello"}}`)

func benchAppend(b *testing.B, typ string, data json.RawMessage, in session.Intent) {
	s := fresh(b)
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.Append(ctx, typ, data, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendSmall(b *testing.B) {
	benchAppend(b, event.AssistantChunk, smallChunk, session.Intent{})
}

func BenchmarkAppendUserMessage(b *testing.B) {
	benchAppend(b, event.UserMessage, json.RawMessage(userData("hello")), appended)
}

func tenTodos() json.RawMessage {
	list := ""
	for i := range 10 {
		list += fmt.Sprintf(`,{"content":"step %d of the plan, described in one line","status":"pending"}`, i)
	}
	return json.RawMessage(`{"todos":[` + list[1:] + `]}`)
}

func BenchmarkAppendTenTodos(b *testing.B) {
	benchAppend(b, "todo/write", tenTodos(), session.Intent{})
}

// BenchmarkAppendObserved is the small append with a hook and an observer to call.
func BenchmarkAppendObserved(b *testing.B) {
	set := newSet(b, memory.New(), quiet())
	set.AddHook(func(context.Context, *session.Session, []event.Event) error { return nil })
	set.AddObserver(func(context.Context, *session.Session, []event.Event) {})
	s := create(b, set, session.New{})
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.Append(ctx, event.AssistantChunk, smallChunk, session.Intent{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBatch100 is per batch of a hundred small events.
func BenchmarkBatch100(b *testing.B) {
	s := fresh(b)
	ctx := context.Background()
	list := make([]session.Item, 100)
	for i := range list {
		list[i] = session.Item{Type: event.AssistantChunk, Data: smallChunk}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, _, err := s.AppendBatch(ctx, session.Batch{Items: list}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMessagesAfterAppend reads the messages after each append to a surface that grows to a thousand nodes.
func BenchmarkMessagesAfterAppend(b *testing.B) {
	ctx := context.Background()
	data := json.RawMessage(userData("hello"))
	b.ReportAllocs()
	var s *session.Session
	for i := range b.N {
		if i%1000 == 0 {
			b.StopTimer()
			s = fresh(b)
			b.StartTimer()
		}
		if _, err := s.Append(ctx, event.UserMessage, data, appended); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Messages(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a log of 100,000 events, one in a hundred of them a message.
func BenchmarkOpen(b *testing.B) {
	ctx := context.Background()
	set := newSet(b, memory.New(), quiet())
	list := make([]event.Draft, 100_000)
	for i := range list {
		list[i].Event = event.Event{Type: event.AssistantChunk, Seq: int64(i), Data: smallChunk}
		if i%100 == 0 {
			list[i].Event = event.Event{Type: event.UserMessage, Seq: int64(i), Data: json.RawMessage(userData("hello")), Op: event.Append()}
		}
	}
	s, err := set.Import(ctx, event.Header{ID: "long"}, each(list))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := s.Detach(ctx); err != nil {
			b.Fatal(err)
		}
		if _, err := set.Open(ctx, s.ID()); err != nil {
			b.Fatal(err)
		}
	}
}
