package main

import "testing"

func TestTheLeastOfEachFigureIsKept(t *testing.T) {
	m := map[string]*measurement{}
	takeReports(m, []byte(`goos: linux
BenchmarkFold/last_only-2         	       3	 387654321 ns/op	    258069 events/s	      3.875 ns/event
BenchmarkFold/last_only-2         	       3	 387654321 ns/op	    258069 events/s	      2.5 ns/event
BenchmarkStartStop/10-2           	       1	 634026482 ns/op	        44.00 down-ms	       502.0 up-ms
BenchmarkIdle 1 5 descriptors/plugin
BenchmarkBroken-2 --- FAIL
PASS
`))
	for name, want := range map[string]float64{foldLast: 2.5, tenUp: 502, tenDown: 44, descriptor: 5, "Fold/last_only ns/op": 387654321} {
		if m[name] == nil || m[name].best != want {
			t.Errorf("%s is %+v, want %v", name, m[name], want)
		}
	}
}

func TestAFigureThatDidNotComeIsAnError(t *testing.T) {
	processes := packages[1]
	m := map[string]*measurement{}
	for _, name := range processes.figures {
		m[name] = &measurement{}
	}
	if err := processes.missing(m, "linux"); err != nil {
		t.Error(err)
	}
	delete(m, cellBytes)
	if processes.missing(m, "linux") == nil || processes.missing(m, "windows") != nil {
		t.Errorf("without %s: %v, and %v elsewhere", cellBytes, processes.missing(m, "linux"), processes.missing(m, "windows"))
	}
	delete(m, tenUp)
	if processes.missing(m, "windows") == nil {
		t.Errorf("nobody misses %s", tenUp)
	}
}
