package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/measure"
	"github.com/foldhost/foldhost/metrics"
)

// The rules of Prometheus for names, units and kinds hold, for all that is exposed.
func TestNamesFollowTheConventions(t *testing.T) {
	w := rich(t)
	problems, err := promlint.New(strings.NewReader(w.scrape())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, ours) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// rich is a world in which every metric has been seen.
func rich(t *testing.T) *world {
	w := open(t, func(o *host.Options) { o.Plugins = &host.PluginOptions{Dir: t.TempDir(), SocketDir: t.TempDir()} })
	if _, err := w.host.Add(host.Resident{Name: "resident"}); err != nil {
		t.Fatal(err)
	}
	w.append(w.create("s"), "step")
	return w
}

// documented are the rows of the table of metrics: kind and labels by name.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(foldhost_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*?) *\\| [^|]{4,} \\|$")
	all := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		all[m[1]] = m[2] + " " + strings.ReplaceAll(m[3], "`", "")
	}
	return all
}

// What is exposed is documented, with its kind and its labels, and what is documented is exposed.
func TestTheDocumentHasTheMetrics(t *testing.T) {
	exposed := map[string]string{}
	kinds := map[dto.MetricType]string{dto.MetricType_COUNTER: "counter", dto.MetricType_GAUGE: "gauge", dto.MetricType_HISTOGRAM: "histogram"}
	for name, f := range families(t, strings.NewReader(rich(t).scrape())) {
		if !strings.HasPrefix(name, ours) {
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		exposed[name] = kinds[f.GetType()] + " " + strings.Join(slices.Sorted(slices.Values(labels)), ", ")
	}
	said := documented(t)
	for name, what := range said {
		kind, labels, _ := strings.Cut(what, " ")
		said[name] = kind + " " + strings.Join(slices.Sorted(slices.Values(strings.Fields(strings.ReplaceAll(labels, ",", " ")))), ", ")
	}
	if diff := cmp.Diff(said, exposed); diff != "" {
		t.Errorf("(-documented +exposed):\n%s", diff)
	}
	// And what is only declared is none of them.
	if diff := cmp.Diff(slices.Sorted(maps.Keys(said)), slices.Sorted(slices.Values(metrics.Names()))); diff != "" {
		t.Errorf("(-documented +declared):\n%s", diff)
	}
}

// Rules and texts of the document name metrics that there are.
func TestTheDocumentNamesNoOtherMetric(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	said := documented(t)
	for _, name := range regexp.MustCompile(`foldhost_[a-z_]+`).FindAllString(string(text), -1) {
		base := name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if said[base] == "" {
				base = strings.TrimSuffix(base, suffix)
			}
		}
		if said[base] == "" {
			t.Errorf("%s is in the document and not in its table", name)
		}
	}
}

// Each figure of the store is where it belongs.
func TestTheFiguresOfTheStore(t *testing.T) {
	h := host.New(host.Options{Logger: slog.New(slog.DiscardHandler)})
	defer h.Close()
	had := measure.NewCounts()
	had.Had(3)
	err := error(nil)
	m := metrics.New(metrics.Options{Host: h, Logger: slog.New(slog.DiscardHandler), Store: func(context.Context) (metrics.StoreStats, error) {
		return metrics.StoreStats{Logs: 1, Events: 2, Deleted: 3, Bytes: 4, Free: 5, WAL: 6, Failed: true, CommitChanges: had.Read(), CommitSeconds: had.Read(), SyncSeconds: had.Read()}, err
	}})
	scrape := func() string {
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	text := scrape()
	for _, line := range []string{"logs 1", "events 2", "deleted_logs 3", "size_bytes 4", "free_bytes 5", "wal_bytes 6", "failed 1", "commit_changes_sum 3", `commit_changes_bucket{le="4"} 1`, `commit_changes_bucket{le="1"} 0`} {
		if !strings.Contains(text, "\nfoldhost_store_"+line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	// One that cannot be looked at takes nothing else away.
	err = errors.New("not now")
	text = scrape()
	if strings.Contains(text, "foldhost_store_") || !strings.Contains(text, "\nfoldhost_metrics_failures_total 1\n") || !strings.Contains(text, "\nfoldhost_appends_total 0\n") {
		t.Errorf("%s", text)
	}
}
