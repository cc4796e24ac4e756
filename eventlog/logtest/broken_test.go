package logtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// broken is a store that keeps all promises but one.
type broken struct {
	eventlog.Store
	create func(context.Context, eventlog.Creation) (eventlog.Info, error)
	append func(context.Context, eventlog.Batch) (eventlog.Commit, error)
	group  func(context.Context, []eventlog.Batch) ([]eventlog.Commit, error)
	info   func(context.Context, string) (eventlog.Info, error)
	list   func(context.Context, eventlog.ListQuery) (eventlog.ListPage, error)
	read   func(context.Context, eventlog.Query) (eventlog.Page, error)
	tail   func(context.Context, eventlog.TailQuery) (eventlog.TailPage, error)
	delete func(context.Context, eventlog.Life) error
	close  func() error
}

func (b *broken) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	if b.create != nil {
		return b.create(ctx, c)
	}
	return b.Store.Create(ctx, c)
}

func (b *broken) Append(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
	if b.append != nil {
		return b.append(ctx, batch)
	}
	return b.Store.Append(ctx, batch)
}

func (b *broken) AppendGroup(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Commit, error) {
	if b.group != nil {
		return b.group(ctx, batches)
	}
	return b.Store.(eventlog.Grouper).AppendGroup(ctx, batches)
}

func (b *broken) Info(ctx context.Context, id string) (eventlog.Info, error) {
	if b.info != nil {
		return b.info(ctx, id)
	}
	return b.Store.Info(ctx, id)
}

func (b *broken) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	if b.list != nil {
		return b.list(ctx, q)
	}
	return b.Store.List(ctx, q)
}

func (b *broken) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if b.read != nil {
		return b.read(ctx, q)
	}
	return b.Store.Read(ctx, q)
}

func (b *broken) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if b.tail != nil {
		return b.tail(ctx, q)
	}
	return b.Store.Tail(ctx, q)
}

func (b *broken) Delete(ctx context.Context, l eventlog.Life) error {
	if b.delete != nil {
		return b.delete(ctx, l)
	}
	return b.Store.Delete(ctx, l)
}

func (b *broken) Close() error {
	if b.close != nil {
		return b.close()
	}
	return b.Store.Close()
}

// breakings say for each broken store one law that must tell; others may too.
var breakings = []struct {
	law, fault string
	breakIt    func(b *broken)
}{
	{"a conflict names the head and changes nothing", "writes at the head instead of refusing", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			c, err := b.Store.Append(ctx, batch)
			if lost, ok := errors.AsType[*eventlog.SeqConflictError](err); ok {
				batch.Events = slices.Clone(batch.Events)
				for i := range batch.Events {
					batch.Events[i].Seq = lost.Seq + int64(i)
				}
				return b.Store.Append(ctx, batch)
			}
			return c, err
		}
	}},
	{"a conflict names the head and changes nothing", "writes what fits of a batch", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			c, err := b.Store.Append(ctx, batch)
			if lost, ok := errors.AsType[*eventlog.SeqConflictError](err); ok {
				for i, e := range batch.Events {
					if e.Seq == lost.Seq {
						batch.Events = batch.Events[i:]
						_, _ = b.Store.Append(ctx, batch)
						break
					}
				}
			}
			return c, err
		}
	}},
	{"a repeated key gives the first commit", "looks at the seq before the key", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			info, err := b.Store.Info(ctx, batch.Life.ID)
			if err == nil && len(batch.Events) > 0 && batch.Events[0].Seq != info.Seq {
				return eventlog.Commit{}, &eventlog.SeqConflictError{ID: batch.Life.ID, Seq: info.Seq, Expected: batch.Events[0].Seq}
			}
			return b.Store.Append(ctx, batch)
		}
	}},
	{"a key belongs to one digest", "forgets the digest", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			batch.Digest = ""
			return b.Store.Append(ctx, batch)
		}
	}},
	{"the answer of a key is kept", "keeps none", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			batch.Answer = ""
			return b.Store.Append(ctx, batch)
		}
	}},
	{"a cancelled call changes nothing", "commits whatever the context says", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			return b.Store.Append(context.WithoutCancel(ctx), batch)
		}
	}},
	{"a creation that fails leaves nothing", "keeps what came before the failure", func(b *broken) {
		b.create = func(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
			var failed error
			source := c.Events
			c.Events = func(yield func(event.Event, error) bool) {
				for e, err := range source {
					if failed = err; err != nil || !yield(e, nil) {
						return
					}
				}
			}
			if source == nil {
				c.Events = nil
			}
			info, err := b.Store.Create(ctx, c)
			return info, errors.Join(err, failed)
		}
	}},
	{"what comes out is what went in, byte for byte", "re-encodes data", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			batch.Events = slices.Clone(batch.Events)
			for i := range batch.Events {
				var out bytes.Buffer
				json.HTMLEscape(&out, batch.Events[i].Data)
				batch.Events[i].Data = out.Bytes()
			}
			return b.Store.Append(ctx, batch)
		}
		b.create = reencoding(b.Store)
	}},
	{"what comes out is what went in, byte for byte", "takes empty sources for absent ones", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			page, err := b.Store.Read(ctx, q)
			for i := range page.Events {
				if len(page.Events[i].Sources) == 0 {
					page.Events[i].Sources = nil
				}
			}
			return page, err
		}
	}},
	{"a read knows the positions that a tail gives", "counts positions from the first of a page", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			page, err := b.Store.Read(ctx, q)
			for i := range page.Positions {
				page.Positions[i] = page.Positions[0] + int64(i)
			}
			return page, err
		}
	}},
	{"pages join to the whole answer", "loses the event after a page", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			page, err := b.Store.Read(ctx, q)
			if page.Next < page.End {
				page.Next++
			}
			return page, err
		}
	}},
	{"pages join to the whole answer", "stops at an event above the byte limit", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			page, err := b.Store.Read(ctx, q)
			if q.MaxBytes > 0 && len(page.Events) == 1 && len(page.Events[0].Data) > q.MaxBytes {
				page.Events, page.Next = nil, q.From
			}
			return page, err
		}
	}},
	{"a read gives its types", "takes no types for every type", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			if len(q.Types) == 0 {
				q.Types = nil
			}
			return b.Store.Read(ctx, q)
		}
	}},
	{"a read gives its range", "promises an end beyond the log", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			page, err := b.Store.Read(ctx, q)
			page.End = max(page.End, q.To)
			return page, err
		}
	}},
	{"a tail goes on from every position", "gives the event at the position again", func(b *broken) {
		b.tail = func(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
			q.After = max(0, q.After-1)
			return b.Store.Tail(ctx, q)
		}
	}},
	{"a tail passes deleted logs", "stops at a deleted log", func(b *broken) {
		var mu sync.Mutex
		hole := int64(-1)
		b.delete = func(ctx context.Context, l eventlog.Life) error {
			mu.Lock()
			defer mu.Unlock()
			if page, err := b.Store.Tail(ctx, eventlog.TailQuery{}); err == nil {
				for _, e := range page.Events {
					if e.Life.ID == l.ID {
						hole = e.Position
					}
				}
			}
			return b.Store.Delete(ctx, l)
		}
		b.tail = func(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
			mu.Lock()
			defer mu.Unlock()
			page, err := b.Store.Tail(ctx, q)
			for i, e := range page.Events {
				if hole >= 0 && q.After < hole && e.Position > hole {
					page.Events, page.Position = page.Events[:i], hole-1
					break
				}
			}
			return page, err
		}
	}},
	{"a tail gives its types", "filters after the limit and calls it the end", func(b *broken) {
		b.tail = func(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
			types := q.Types
			q.Types = nil
			page, err := b.Store.Tail(ctx, q)
			page.Events = slices.DeleteFunc(page.Events, func(e eventlog.TailEvent) bool {
				return types != nil && !slices.Contains(types, e.Event.Type)
			})
			if len(page.Events) == 0 {
				page.Position = page.End
			}
			return page, err
		}
	}},
	{"a list starts at the latest commit", "lists by creation", func(b *broken) {
		b.list = func(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
			page, err := b.Store.List(ctx, q)
			slices.SortFunc(page.Logs, func(x, y eventlog.Info) int { return bytes.Compare([]byte(y.Header.ID), []byte(x.Header.ID)) })
			return page, err
		}
	}},
	{"a deleted log is gone", "only hides what it deletes from lists", func(b *broken) {
		b.delete = func(ctx context.Context, l eventlog.Life) error {
			_, err := b.Store.Info(ctx, l.ID)
			return err
		}
	}},
	{"the same id again is another life", "gives every life one incarnation", func(b *broken) {
		b.create = func(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
			info, err := b.Store.Create(ctx, c)
			info.Incarnation = "one"
			return info, err
		}
	}},
	{"a wrong incarnation is refused", "does not look at incarnations", func(b *broken) {
		b.read = func(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
			q.Life.Incarnation = ""
			return b.Store.Read(ctx, q)
		}
	}},
	{"a closed store says so", "goes on after Close", func(b *broken) {
		b.close = func() error { return nil }
	}},
	{"one of many appenders wins each seq", "acknowledges what it did not write", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			c, err := b.Store.Append(ctx, batch)
			if _, lost := errors.AsType[*eventlog.SeqConflictError](err); lost && len(batch.Events) == 1 {
				n := batch.Events[0].Seq
				return eventlog.Commit{First: n, Seq: n + 1, Position: 1, Time: 1}, nil
			}
			return c, err
		}
	}},
	{"one of many appenders wins a key", "calls every append the first", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			c, err := b.Store.Append(ctx, batch)
			c.Repeated = false
			return c, err
		}
	}},
	{"appenders to many logs do not meet", "loses every tenth append", func(b *broken) {
		var mu sync.Mutex
		n := 0
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			mu.Lock()
			n++
			lose := n%10 == 0
			mu.Unlock()
			if lose {
				first := batch.Events[0].Seq
				return eventlog.Commit{First: first, Seq: first + 1, Position: 1 << 40, Time: 1}, nil
			}
			return b.Store.Append(ctx, batch)
		}
	}},
	{"a group is committed in order", "makes one commit of it", func(b *broken) {
		b.group = func(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Commit, error) {
			whole := batches[0]
			for _, batch := range batches[1:] {
				whole.Events = append(whole.Events, batch.Events...)
			}
			commit, err := b.Store.Append(ctx, whole)
			return slices.Repeat([]eventlog.Commit{commit}, len(batches)), err
		}
	}},
	{"a group with one that is refused changes nothing", "appends one after the other", func(b *broken) {
		b.group = func(ctx context.Context, batches []eventlog.Batch) (commits []eventlog.Commit, err error) {
			for i, batch := range batches {
				commit, err := b.Store.Append(ctx, batch)
				if err != nil {
					return nil, &eventlog.GroupError{Index: i, Err: err}
				}
				commits = append(commits, commit)
			}
			return commits, nil
		}
	}},
	{"any history is that of the model", "forgets the key of an append of three events", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			if len(batch.Events) == 3 {
				batch.Key = ""
			}
			return b.Store.Append(ctx, batch)
		}
	}},
	{"a key may stand alone", "makes nothing of it", func(b *broken) {
		b.append = func(ctx context.Context, batch eventlog.Batch) (eventlog.Commit, error) {
			if len(batch.Events) == 0 && batch.Key != "" {
				info, err := b.Store.Info(ctx, batch.Life.ID)
				return eventlog.Commit{First: info.Seq, Seq: info.Seq, Position: info.Position, Time: 1}, err
			}
			return b.Store.Append(ctx, batch)
		}
	}},
	{"a creation may have a key", "forgets it", func(b *broken) {
		b.create = func(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
			c.Key = ""
			return b.Store.Create(ctx, c)
		}
	}},
}

func reencoding(s eventlog.Store) func(context.Context, eventlog.Creation) (eventlog.Info, error) {
	return func(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
		source := c.Events
		c.Events = iter.Seq2[event.Event, error](func(yield func(event.Event, error) bool) {
			if source == nil {
				return
			}
			for e, err := range source {
				var out bytes.Buffer
				json.HTMLEscape(&out, e.Data)
				e.Data = out.Bytes()
				if !yield(e, err) {
					return
				}
			}
		})
		return s.Create(ctx, c)
	}
}

func TestSuiteTellsBrokenStores(t *testing.T) {
	// A model that fails on purpose leaves no file with the history behind.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		t.Fatal(err)
	}
	for _, b := range breakings {
		t.Run(b.fault, func(t *testing.T) {
			i := slices.IndexFunc(laws, func(l law) bool { return l.name == b.law })
			if i < 0 {
				t.Fatalf("no law is named %q", b.law)
			}
			if told := try(t, laws[i], memory.New()); told != "" {
				t.Fatalf("a sound store: %s", told)
			}
			s := &broken{Store: memory.New()}
			b.breakIt(s)
			if told := try(t, laws[i], s); told == "" {
				t.Fatalf("the law %q does not tell", b.law)
			}
		})
	}
}

// try checks one law and returns what it has to say, or nothing.
func try(t *testing.T, l law, s eventlog.Store) string {
	f := &fake{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.check(kit{TB: f, Store: s})
	}()
	<-done
	return f.told
}

// fake takes failures instead of failing. A law runs in one goroutine, so it needs no lock.
type fake struct {
	testing.TB
	told string
}

func (f *fake) tell(s string)                     { f.told += s + "\n" }
func (f *fake) Error(args ...any)                 { f.tell(fmt.Sprint(args...)) }
func (f *fake) Errorf(format string, args ...any) { f.tell(fmt.Sprintf(format, args...)) }
func (f *fake) Fail()                             { f.tell("failed") }
func (f *fake) FailNow()                          { f.Fail(); runtime.Goexit() }
func (f *fake) Failed() bool                      { return f.told != "" }
func (f *fake) Fatal(args ...any)                 { f.Error(args...); runtime.Goexit() }
func (f *fake) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }
func (f *fake) Helper()                           {}
func (f *fake) Log(...any)                        {}
func (f *fake) Logf(string, ...any)               {}
