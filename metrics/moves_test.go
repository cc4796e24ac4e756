package metrics_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

const steps = `{plugin="test",unit="steps"}`

func TestAppendsAreCounted(t *testing.T) {
	w := open(t)
	s := w.create("s")
	w.append(s, "step", "step", "other")
	if _, err := s.Append(context.Background(), "user/message", 1, session.Intent{}); err == nil {
		t.Fatal("it was not refused")
	}
	_, _, err := s.AppendBatch(context.Background(), session.Batch{Items: []session.Item{{Type: "step", Data: []byte("1")}, {Type: "step", Data: []byte("2")}}})
	if err != nil {
		t.Fatal(err)
	}
	w.grew(map[string]float64{
		"appends_total": 4, "appended_events_total": 5, "append_errors_total": 1, "sessions_created_total": 1, "sessions_live": 1,
		"folded_events_total" + steps: 4, "store_logs": 1, "store_events": 5, "store_commit_changes_count": 5, "store_commit_changes_sum": 5, "store_commit_seconds_count": 5,
	})
	f := w.look()
	for _, name := range []string{"fold_event_seconds_count" + steps, "store_sync_seconds_count", "store_sync_seconds_sum", "store_size_bytes", "store_wal_bytes", "checkpoint_dirty_seconds"} {
		if f[ours+name] <= 0 {
			t.Errorf("%s is %v", name, f[ours+name])
		}
	}
	if f["foldhost_checkpoint_dirty_sessions"] != 1 {
		t.Errorf("dirty sessions: %v", f["foldhost_checkpoint_dirty_sessions"])
	}
	if err := w.host.Sessions().Delete(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
	w.grew(map[string]float64{"store_logs": -1, "store_events": -5, "sessions_live": -1, "sessions_closed_total": 1, "checkpoint_dirty_sessions": -1})
}

// A session that goes cold and is read: rows are written, and each step of the ladder is counted.
func TestColdSessionsAndTheirRowsAreCounted(t *testing.T) {
	w := open(t, func(o *host.Options) { o.Session.SlowClose = 1 })
	s := w.create("s")
	w.append(s, "step", "step")
	w.append(s, event.UserMessage) // a change of the surface
	w.look()
	w.detach(s)
	w.comes("checkpoint_rows_written_total", w.by("checkpoint_rows_written_total", 1))
	w.comes("checkpoint_dirty_seconds", zero)
	w.comes("checkpoint_dirty_sessions", zero)
	f := w.before
	for name, want := range map[string]float64{"sessions_closed_total": 1, "sessions_live": 0, "session_close_seconds_count": 1, "session_slow_closes_total": 1,
		"surface_rows_written_total": 1, "checkpoint_writes_total": 1, "checkpoint_waiting_bytes": 0} {
		if f[ours+name] != want {
			t.Errorf("%s is %v, want %v", name, f[ours+name], want)
		}
	}

	w.values("s")
	w.grew(map[string]float64{`cold_reads_total{step="rows"}`: 1, `cold_reads_total{step="tail"}`: 0, `cold_reads_total{step="full"}`: 0})

	// The store takes no rows for a while: they stay behind the log, so the next read has a tail.
	w.store.broken.Store(true)
	w.append(s, "step", event.UserMessage)
	w.look()
	w.detach(s)
	w.comes("checkpoint_write_failures_total", w.by("checkpoint_write_failures_total", 1))
	if w.before["foldhost_surface_row_failures_total"] != 1 || w.before["foldhost_sessions_opened_total"] != 1 || w.before["foldhost_session_open_seconds_count"] != 1 {
		t.Errorf("%v", w.before)
	}
	w.store.broken.Store(false)
	folded := w.before[ours+"folded_events_total"+steps]
	w.values("s")
	w.grew(map[string]float64{`cold_reads_total{step="tail"}`: 1})
	if n := w.before[ours+"folded_events_total"+steps] - folded; n != 1 {
		t.Errorf("the tail had %v events", n)
	}

	// A unit without a row folds all of the log.
	if _, err := w.host.Register("more", counter("others", "step")); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.values("s")
	w.grew(map[string]float64{`cold_reads_total{step="full"}`: 1, `folded_events_total{plugin="more",unit="others"}`: 3, `fold_batch_events_sum{plugin="more",unit="others"}`: 3})
	// In one batch or two: the other unit joins where it stands.
	if n := w.before[`foldhost_fold_batch_events_count{plugin="more",unit="others"}`]; n < 1 || n != w.before[`foldhost_fold_batch_seconds_count{plugin="more",unit="others"}`] {
		t.Errorf("it folded in %v batches", n)
	}

	// A surface that is in doubt is not used.
	life := eventlog.Life{ID: s.ID(), Incarnation: s.Incarnation()}
	if err := w.store.SaveRows(t.Context(), life, []eventlog.Row{{Key: eventlog.SurfaceKey, Cut: 3, Seq: 3, Data: []byte("?")}}); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.append(s, "other")
	w.grew(map[string]float64{"surface_rows_unused_total": 1, "sessions_opened_total": 1})
}

// The oldest event without a row counts, whatever is tried and fails meanwhile.
func TestTheDirtyAgeGoesOnWhileWritesFail(t *testing.T) {
	w := open(t, func(o *host.Options) {
		o.Checkpoint.Policy = checkpoint.Policy{EveryEvents: 1, Interval: time.Millisecond}
	})
	w.store.broken.Store(true)
	w.append(w.create("s"), "step")
	w.comes("checkpoint_write_failures_total", func(n float64) bool { return n >= 3 })
	before := w.before["foldhost_checkpoint_dirty_seconds"]
	if before <= 0 {
		t.Fatalf("it is %v old", before)
	}
	w.comes("checkpoint_dirty_seconds", func(age float64) bool { return age > 2*before })
	w.store.broken.Store(false)
	w.comes("checkpoint_dirty_seconds", zero)
}

func TestRowsOfThePastAreCounted(t *testing.T) {
	w := open(t)
	s := w.create("s")
	for range 20 {
		w.append(s, "step")
	}
	w.detach(s)
	w.comes("checkpoint_past_rows_written_total", positive)
}

func TestFaultsAreCounted(t *testing.T) {
	w := open(t)
	s := w.create("s")
	w.append(s, "step", "break", "step")
	w.grew(map[string]float64{"unit_faults_total" + steps: 1, "unit_faulted_cells" + steps: 1, "unit_behind_cells" + steps: 0, "folded_events_total" + steps: 2})
	// It fails again at the same event, which is another fault.
	if _, err := w.host.Retry(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.comes("unit_faults_total"+steps, func(n float64) bool { return n == 2 })
	w.comes("unit_faulted_cells"+steps, func(n float64) bool { return n == 1 })
	w.detach(s)
	w.grew(map[string]float64{"unit_faults_total" + steps: 0, "unit_faulted_cells" + steps: -1})
}

// A unit whose process answers nothing is behind by as many events as the log has grown since, for as long as that is; and a cold read goes without it.
func TestAUnitThatTrailsIsSeen(t *testing.T) {
	w := open(t, func(o *host.Options) {
		o.Registry.BatchDeadline = time.Hour
		o.Checkpoint.ReadWait = time.Millisecond
	})
	def := counter("late", "step")
	def.Inline, def.Instance = nil, &still{}
	reg, err := w.host.Register("slow", def)
	if err != nil {
		t.Fatal(err)
	}
	late := `{plugin="slow",unit="late"}`
	a, b := w.create("a"), w.create("b")
	w.append(a, "step", "other", "other")
	w.append(b, "step", "step", "other", "step", "other")
	f := w.look()
	for name, want := range map[string]float64{"unit_behind_cells" + late: 2, "unit_lag_events" + late: 5, "unit_behind_cells" + steps: 0, "unit_lag_events" + steps: 0, "unit_lag_seconds" + steps: 0,
		"sessions_unseen": 0} {
		if f[ours+name] != want {
			t.Errorf("%s is %v, want %v", name, f[ours+name], want)
		}
	}
	if of, oldest := f[ours+"unit_lag_seconds"+late], f[ours+"unit_oldest_lag_seconds"+late]; of <= 0 || oldest < of {
		t.Errorf("b is %v s behind, and a, which is longer, %v", of, oldest)
	}
	age := f[ours+"unit_lag_seconds"+late]
	w.comes("unit_lag_seconds"+late, func(v float64) bool { return v > age })
	if w.before[ours+"unit_lag_events"+late] != 5 {
		t.Errorf("the lag is %v", w.before[ours+"unit_lag_events"+late])
	}
	w.detach(a)
	w.values("a")
	w.grew(map[string]float64{"cold_reads_late_total": 1, "unit_behind_cells" + late: -1})
	reg.Release()
	if _, there := w.look()[ours+"unit_lag_events"+late]; there {
		t.Error("a unit that nobody registers is still there")
	}
}

// A session whose unit hangs in this process is left out, and everything else is said.
func TestAUnitThatHangsHoldsUpNoLook(t *testing.T) {
	w := open(t)
	hang := make(chan struct{})
	entered := make(chan struct{})
	def := counter("hangs", "hang")
	def.Inline = hanging{entered: entered, until: hang}
	if _, err := w.host.Register("test", def); err != nil {
		t.Fatal(err)
	}
	s := w.create("s")
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Append(context.Background(), "hang", 1, session.Intent{})
	}()
	<-entered
	w.grew(map[string]float64{"sessions_unseen": 1, "sessions_live": 1})
	close(hang)
	<-done
	w.grew(map[string]float64{"sessions_unseen": -1})
}

type hanging struct {
	counting
	entered, until chan struct{}
}

func (h hanging) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	close(h.entered)
	<-h.until
	return h.counting.Apply(s, ev)
}

func TestRequestsAndStreamsAreThere(t *testing.T) {
	w := open(t)
	w.create("s")
	res, err := http.Get(w.url + "/v1/sessions/s/stream")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.grew(map[string]float64{"streams_open": 1, "streams_opened_total": 1, "streams_slow_total": 0})
	res.Body.Close()
	w.comes("streams_open", zero)
	if res, err = http.Get(w.url + "/v1/sessions/nobody?x=\xff"); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	w.comes(`http_request_seconds_count{code="400",method="GET",route="/v1/sessions/{id}"}`, func(n float64) bool { return n == 1 })
	if w.before[`foldhost_http_request_seconds_count{code="200",method="GET",route="/metrics"}`] == 0 {
		t.Error("the looks are not counted")
	}
	for name := range w.before {
		if strings.Contains(name, "nobody") {
			t.Errorf("%s names a session", name)
		}
	}
}
