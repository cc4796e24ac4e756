package api

import (
	"cmp"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/internal/measure"
)

// Stats are what an API has served since it was made.
type Stats struct {
	// Requests are sorted by route, method and code. Those under way are not in them.
	Requests []RequestStats
	// Streams are open; StreamsOpened were ever, and StreamsSlow of those were closed because their readers took nothing.
	Streams, StreamsOpened, StreamsSlow int64
}

// RequestStats are those of one route, method and status. Route is its pattern without the method, and empty for what matches none; Method is one of HTTP's, or "other". A stream takes as long
// as it is open.
type RequestStats struct {
	Route, Method string
	Code          int
	Seconds       measure.Distribution
}

// Stats looks at the counters. It delays no request.
func (a *API) Stats() Stats {
	st := Stats{Streams: a.served.streams.Load(), StreamsOpened: a.served.opened.Load(), StreamsSlow: a.served.slow.Load()}
	if calls := a.served.calls.Load(); calls != nil {
		for kind, h := range *calls {
			st.Requests = append(st.Requests, RequestStats{kind.route, kind.method, kind.code, h.Read()})
		}
	}
	slices.SortFunc(st.Requests, func(a, b RequestStats) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Code, b.Code))
	})
	return st
}

// served counts requests and streams.
type served struct {
	streams, opened, slow atomic.Int64
	// calls is not changed but replaced, under growing: there are as many kinds as routes have statuses, and none is new for long.
	calls   atomic.Pointer[map[callKind]*measure.Histogram]
	growing sync.Mutex
}

type callKind struct {
	route, method string
	code          int
}

// of gives the histogram of a kind.
func (s *served) of(kind callKind) *measure.Histogram {
	if calls := s.calls.Load(); calls != nil {
		if h := (*calls)[kind]; h != nil {
			return h
		}
	}
	s.growing.Lock()
	defer s.growing.Unlock()
	calls := map[callKind]*measure.Histogram{}
	if have := s.calls.Load(); have != nil {
		calls = maps.Clone(*have)
	}
	if calls[kind] == nil {
		calls[kind] = measure.NewSeconds()
	}
	s.calls.Store(&calls)
	return calls[kind]
}

// told are the methods that are counted by name.
var told = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// ended counts a request that was served, and logs it for who wants to see every one.
func (c *call) ended(route string, took time.Duration) {
	kind := callKind{route, "other", cmp.Or(c.status, http.StatusOK)}
	if told[c.r.Method] {
		kind.method = c.r.Method
	}
	c.api.served.of(kind).Took(took)
	if c.api.o.Logger.Enabled(c.r.Context(), slog.LevelDebug) {
		c.log().Debug("a request was served", "method", c.r.Method, "path", c.r.URL.Path, "status", kind.code, "took", took)
	}
}
