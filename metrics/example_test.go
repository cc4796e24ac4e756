package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/metrics"
)

func Example() {
	h := host.New(host.Options{})
	defer h.Close()
	m := metrics.New(metrics.Options{Host: h})
	a := api.New(api.Options{Host: h, Metrics: m})
	defer a.Close()
	m.Watch(a)

	answer := httptest.NewRecorder()
	a.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "foldhost_appends_total") || strings.HasPrefix(line, "foldhost_streams_open ") {
			fmt.Print(line)
		}
	}
	// Output:
	// foldhost_appends_total 0
	// foldhost_streams_open 0
}
