package host_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/foldhost/foldhost/host"
)

// BenchmarkIdle says what an idle plugin costs the host in descriptors, and what a cell costs the plugin in memory, which is what the process
// grows by.
func BenchmarkIdle(b *testing.B) {
	resident := func(pid int) (kib int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			b.Fatal(err)
		}
		var size, pages int
		fmt.Sscan(string(text), &size, &pages)
		return pages * os.Getpagesize() / 1024
	}
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			b.Fatal(err)
		}
		return len(entries)
	}
	for b.Loop() {
		before := descriptors()
		p := plugs{}
		for i := range 10 {
			p[fmt.Sprint("p", i)] = wrong(b, fmt.Sprintf("prefix=p%d/", i), fmt.Sprintf("owns=p%d/thing", i), "only=sum")
		}
		h := openHost(b, p)
		b.ReportMetric(float64(descriptors()-before)/10, "descriptors/plugin")
		h.Close()
	}
	h := openHost(b, plugs{"wrong": wrong(b, "only=sum")}, func(o *host.Options) { o.Session.IdleAfter = -1 })
	pid := plugin(b, h, "wrong").Pid
	empty := resident(pid)
	const cells = 10_000
	for i := range cells {
		s := newSession(b, h, fmt.Sprint("s", i))
		step(b, s, i)
		if i%100 == 0 {
			value(b, h, s, "sum")
		}
	}
	b.ReportMetric(float64(empty)/1024, "MiB/process")
	b.ReportMetric(float64(resident(pid)-empty)*1024/cells, "B/cell")
}
