package metrics

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/measure"
	"github.com/foldhost/foldhost/registry"
)

// look is one collection.
type look struct{ to chan<- prometheus.Metric }

func (l look) counter(f *family, n int64, labels ...string) {
	l.to <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(n), clean(labels)...)
}

func (l look) gauge(f *family, v float64, labels ...string) {
	l.to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, v, clean(labels)...)
}

func (l look) histogram(f *family, d measure.Distribution, labels ...string) {
	buckets := make(map[float64]uint64, len(d.Bounds))
	for i, bound := range d.Bounds {
		buckets[bound] = d.Cumulative[i]
	}
	l.to <- prometheus.MustNewConstHistogram(f.desc, d.Count, d.Sum, buckets, clean(labels)...)
}

// clean makes labels of text that programs may have chosen: what is not UTF-8 would end the whole look.
func clean(labels []string) []string {
	for i, text := range labels {
		labels[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	return labels
}

func (l look) sessions(st *host.Stats) {
	s := st.Sessions
	l.counter(appends, s.Appends.Load())
	l.counter(appendedEvents, s.Events.Load())
	l.counter(appendErrors, s.Refused.Load())
	l.gauge(sessionsLive, float64(st.Live))
	l.counter(created, s.Created.Load())
	l.counter(opened, s.Opened.Load())
	l.counter(closed, s.Closed.Load())
	l.histogram(openSeconds, s.OpenSeconds.Read())
	l.histogram(closeSeconds, s.CloseSeconds.Read())
	l.counter(slowCloses, s.SlowCloses.Load())
	l.counter(surfaceRows, s.SurfaceRows.Load())
	l.counter(surfaceFailed, s.SurfaceFailed.Load())
	l.counter(surfaceUnused, s.SurfaceUnused.Load())
}

func (l look) units(st *registry.Stats) {
	l.gauge(unseen, float64(st.Busy))
	for i := range st.Units {
		u := &st.Units[i]
		l.counter(foldedEvents, u.Folded, u.Plugin, u.Key)
		l.histogram(batchEvents, u.BatchEvents, u.Plugin, u.Key)
		l.histogram(batchSeconds, u.BatchSeconds, u.Plugin, u.Key)
		if u.EventSeconds.Count > 0 {
			l.histogram(eventSeconds, u.EventSeconds, u.Plugin, u.Key)
		}
		l.counter(unitFaults, u.Faults, u.Plugin, u.Key)
		l.gauge(faultedCells, float64(u.Faulted), u.Plugin, u.Key)
		l.gauge(behindCells, float64(u.Behind), u.Plugin, u.Key)
		l.gauge(lagEvents, float64(u.Lag), u.Plugin, u.Key)
		l.gauge(lagSeconds, u.LagAge.Seconds(), u.Plugin, u.Key)
		l.gauge(oldestSeconds, u.Oldest.Seconds(), u.Plugin, u.Key)
	}
}

func (l look) plugins(all []host.PluginStats) {
	for _, p := range all {
		for _, state := range host.PluginStates() {
			is := 0.0
			if p.State == state {
				is = 1
			}
			l.gauge(pluginState, is, p.Name, p.Presets, string(state))
		}
		l.counter(pluginRestarts, int64(p.Restarts), p.Name, p.Presets)
		l.counter(pluginDeaths, int64(p.Deaths), p.Name, p.Presets)
	}
}

func (l look) checkpoints(st *host.Stats) {
	l.counter(coldReads, st.Reads.Rows.Load(), "rows")
	l.counter(coldReads, st.Reads.Tail.Load(), "tail")
	l.counter(coldReads, st.Reads.Full.Load(), "full")
	l.counter(lateReads, st.Reads.Late.Load())
	w := st.Writes
	if w == nil {
		return
	}
	l.counter(rowsWritten, w.Written.Load())
	l.counter(pastWritten, w.Past.Load())
	l.counter(rowWrites, w.Writes.Load())
	l.counter(rowFailures, w.Failed.Load())
	l.counter(rowsDropped, w.Dropped.Load())
	l.gauge(dirtySeconds, measure.Age(st.Waiting.Since, time.Now()))
	l.gauge(dirtySessions, float64(st.Waiting.Sessions))
	l.gauge(rowsBacklogged, float64(st.Waiting.Bytes))
}

func (l look) requests(st api.Stats) {
	for _, r := range st.Requests {
		l.histogram(requestSeconds, r.Seconds, cmp.Or(r.Route, "none"), r.Method, strconv.Itoa(r.Code))
	}
	l.gauge(streamsOpen, float64(st.Streams))
	l.counter(streamsOpened, st.StreamsOpened)
	l.counter(streamsSlow, st.StreamsSlow)
}

func (l look) store(st *StoreStats) {
	l.gauge(storeBytes, float64(st.Bytes))
	l.gauge(storeFree, float64(st.Free))
	l.gauge(storeWAL, float64(st.WAL))
	l.gauge(storeLogs, float64(st.Logs))
	l.gauge(storeEvents, float64(st.Events))
	l.gauge(storeDeleted, float64(st.Deleted))
	failed := 0.0
	if st.Failed {
		failed = 1
	}
	l.gauge(storeFailed, failed)
	l.histogram(commitChanges, st.CommitChanges)
	l.histogram(commitSeconds, st.CommitSeconds)
	l.histogram(syncSeconds, st.SyncSeconds)
}
