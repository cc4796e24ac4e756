// Package metrics says for Prometheus what a host, its store and its API have done and how they stand.
//
// The parts count in plain numbers and know nothing of Prometheus. Here is nothing but their translation, done when somebody asks: families.go has the names, and docs/operations.md what
// they mean. No label has a value that callers or events make up: plugins, units and routes are what the host has, and nothing names a session.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/measure"
)

// Options of Metrics. Host must be set.
type Options struct {
	Host *host.Host
	// Store says how its store stands; nil leaves that out. It is called for each look, and should take milliseconds.
	Store func(ctx context.Context) (StoreStats, error)
	// Logger hears of looks that failed in part; nil is slog.Default.
	Logger *slog.Logger
}

// StoreStats are how a store stands and what it has done since it was opened.
type StoreStats struct {
	// Logs and Events are what is there, Deleted how many logs are still to be swept from the disk.
	Logs, Events, Deleted int64
	// Bytes is the size of its file, Free how much of that will be used again, WAL the size of the changes that are not in it yet.
	Bytes, Free, WAL int64
	// Failed says that it takes no changes any more.
	Failed bool
	// CommitChanges are the changes of one commit, CommitSeconds how long it took with its sync, SyncSeconds how long syncs took.
	CommitChanges, CommitSeconds, SyncSeconds measure.Distribution
}

// Metrics is the handler of GET /metrics, and a prometheus.Collector for programs with a registry of their own. Safe for concurrent use.
type Metrics struct {
	http.Handler
	o      Options
	api    atomic.Pointer[api.API]
	failed atomic.Int64
	// version and revision are those of the program.
	version, revision string
}

var _ prometheus.Collector = (*Metrics)(nil)

const (
	// storeWait bounds the look at the store: a scrape is to say what else there is when the store hangs.
	storeWait = 2 * time.Second
	// atOnce is how many looks are taken at once. Each goes over all live sessions, and two servers that ask are many.
	atOnce = 4
)

// New makes the metrics of a host, with those of its process and of the Go runtime.
func New(o Options) *Metrics {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Metrics{o: o, version: host.Version(), revision: revision()}
	all := prometheus.NewRegistry()
	all.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(all, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: atOnce, EnableOpenMetrics: true,
	})
	return m
}

// Watch adds the requests and streams of an API, which takes the metrics to serve and so is made after them.
func (m *Metrics) Watch(a *api.API) { m.api.Store(a) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	l := look{to}
	l.gauge(buildInfo, 1, m.version, m.revision, runtime.Version())
	st := m.o.Host.Stats()
	l.sessions(&st)
	l.units(&st.Units)
	l.plugins(st.Plugins)
	l.checkpoints(&st)
	if a := m.api.Load(); a != nil {
		l.requests(a.Stats())
	}
	if m.o.Store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		defer cancel()
		store, err := m.o.Store(ctx)
		if err == nil {
			l.store(&store)
		} else {
			m.failed.Add(1)
			m.o.Logger.Warn("the store could not be looked at: metrics come without it", "error", err)
		}
	}
	l.counter(lookFailures, m.failed.Load())
}

// revision is that of the source that the program was built from, where the go command knew it.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
