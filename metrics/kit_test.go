package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/countunit"
	"github.com/foldhost/foldhost/metrics"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting counts events, and fails at "break".
type counting = countunit.Inline

func counter(key string, types ...string) unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: schema, ViewSchema: schema, Events: types, Inline: counting{}}
}

// still is an instance that answers nothing, as a process does that hangs.
type still struct{}

func (*still) Submit(ctx context.Context, _ unit.Batch, done func(unit.Reply)) {
	context.AfterFunc(ctx, func() { done(unit.Reply{Err: errors.New("it never came")}) })
}

// store refuses to write rows while it is broken.
type store struct {
	*sqlite.Store
	broken atomic.Bool
}

var errBroken = errors.New("the store is broken for a while")

func (s *store) SaveRows(ctx context.Context, l eventlog.Life, rows []eventlog.Row) error {
	if s.broken.Load() {
		return errBroken
	}
	return s.Store.SaveRows(ctx, l, rows)
}

// world is a host with a unit "steps" of the plugin "test", over a store on disk, that is watched.
type world struct {
	t     testing.TB
	host  *host.Host
	store *store
	api   *api.API
	url   string
	end   func()
	// before is what the last look gave.
	before figures
	// messages were appended.
	messages int
}

func open(t testing.TB, change ...func(*host.Options)) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: &store{Store: db}}
	quiet := slog.New(slog.DiscardHandler)
	o := host.Options{
		Store: w.store, Logger: quiet,
		// Nothing by itself: rows are written when a session goes cold, which it does when the test says so.
		Session:    session.Options{IdleAfter: -1},
		Registry:   registry.Options{ReadWait: time.Millisecond},
		Checkpoint: checkpoint.Options{Policy: checkpoint.Policy{EveryEvents: 1 << 30, Interval: time.Hour}, ReadWait: time.Minute, PastEvery: 8},
	}
	for _, c := range change {
		c(&o)
	}
	if w.host, err = host.Open(o); err != nil {
		t.Fatal(err)
	}
	if _, err := w.host.Register("test", counter("steps", "step", "break")); err != nil {
		t.Fatal(err)
	}
	m := metrics.New(metrics.Options{Host: w.host, Store: w.stats, Logger: quiet})
	w.api = api.New(api.Options{Host: w.host, Metrics: m, Logger: quiet})
	m.Watch(w.api)
	web := httptest.NewServer(w.api)
	w.url = web.URL
	ended := false
	w.end = func() {
		if ended {
			return
		}
		ended = true
		w.api.Stop()
		web.Close()
		w.api.Close()
		if err := errors.Join(w.host.Close(), db.Close()); err != nil {
			t.Errorf("closing: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
	t.Cleanup(w.end)
	w.look()
	return w
}

func (w *world) stats(ctx context.Context) (metrics.StoreStats, error) {
	st, err := w.store.Stats(ctx)
	return metrics.StoreStats{Logs: st.Logs, Events: st.Events, Deleted: st.Deleted, Bytes: st.Bytes, Free: st.Free, WAL: st.WAL,
		CommitChanges: st.GroupSizes, CommitSeconds: st.GroupSeconds, SyncSeconds: st.SyncSeconds}, err
}

// figures are samples by name{label="value",…}, labels sorted; a histogram has name_count and name_sum.
type figures map[string]float64

// families reads the exposition with the library's own parser.
func families(t testing.TB, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatalf("the exposition cannot be parsed: %v", err)
	}
	return all
}

// scrape gives the exposition.
func (w *world) scrape() string {
	w.t.Helper()
	res, err := http.Get(w.url + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		w.t.Fatalf("%d, %v: %s", res.StatusCode, err, text)
	}
	return string(text)
}

// look scrapes.
func (w *world) look() figures {
	w.t.Helper()
	f := figures{}
	for name, family := range families(w.t, strings.NewReader(w.scrape())) {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			at := ""
			if len(labels) > 0 {
				at = "{" + strings.Join(labels, ",") + "}"
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				f[name+at] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				f[name+at] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				f[name+"_count"+at], f[name+"_sum"+at] = float64(m.Histogram.GetSampleCount()), m.Histogram.GetSampleSum()
			}
		}
	}
	w.before = f
	return f
}

// grew wants what follows to have grown by so much since the last look, and so with at least where it is given as a fraction above.
func (w *world) grew(want map[string]float64) {
	w.t.Helper()
	before := w.before
	after := w.look()
	for name, by := range want {
		got, there := after[ours+name]
		if !there {
			w.t.Errorf("%s is not there", name)
		}
		if got -= before[ours+name]; got != by {
			w.t.Errorf("%s grew by %v, want %v", name, got, by)
		}
	}
}

const ours = "foldhost_"

// comes waits until a figure is what it is to be, which happens beside the test.
func (w *world) comes(name string, is func(float64) bool) {
	w.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		v, there := w.look()[ours+name]
		if there && is(v) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is %v (%v), and it never came", name, v, there)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// by is growth from what the last look gave.
func (w *world) by(name string, n float64) func(float64) bool {
	want := w.before[ours+name] + n
	return func(v float64) bool { return v == want }
}

func positive(v float64) bool { return v > 0 }
func zero(v float64) bool     { return v == 0 }

func (w *world) create(id string) *session.Session {
	w.t.Helper()
	s, err := w.host.Sessions().Create(context.Background(), session.New{Header: event.Header{ID: id}})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) append(s *session.Session, types ...string) {
	w.t.Helper()
	for _, typ := range types {
		data, in := json.RawMessage(`{}`), session.Intent{}
		if typ == event.UserMessage {
			w.messages++
			data, in.Op = fmt.Appendf(nil, `{"id":"m%d","role":"user","content":[],"source":{"kind":"user"}}`, w.messages), event.Op{Kind: event.OpAppend}
		}
		if _, err := s.Append(context.Background(), typ, data, in); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) detach(s *session.Session) {
	w.t.Helper()
	if err := s.Detach(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// values reads the values of a session that is cold.
func (w *world) values(id string) registry.Block {
	w.t.Helper()
	b, err := w.host.Values(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}
