package measure_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldhost/foldhost/internal/measure"
)

func TestAValueIsInTheBucketThatItsBoundCloses(t *testing.T) {
	h := measure.NewCounts()
	for _, n := range []int{0, 1, 2, 4, 5, 1024, 1025} {
		h.Had(n)
	}
	want := measure.Distribution{Bounds: measure.Counts, Cumulative: []uint64{2, 4, 5, 5, 5, 6}, Count: 7, Sum: 2061}
	if diff := cmp.Diff(want, h.Read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := measure.NewSeconds()
	s.Took(time.Millisecond)
	s.Took(1500 * time.Millisecond)
	s.Took(time.Hour)
	got := s.Read()
	if got.Count != 3 || got.Sum != 3601.501 || got.Cumulative[2] != 1 || got.Cumulative[7] != 2 || got.Cumulative[9] != 2 {
		t.Errorf("seconds: %+v", got)
	}
	if diff := cmp.Diff(measure.Distribution{}, (*measure.Histogram)(nil).Read()); diff != "" {
		t.Errorf("nothing (-want +got):\n%s", diff)
	}
}

func TestNothingThatIsObservedAtOnceIsLost(t *testing.T) {
	h := measure.NewCounts()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 1000 {
				h.Had(n)
			}
		})
	}
	all.Wait()
	if got := h.Read(); got.Count != 4000 || got.Sum != 4*999*1000/2 {
		t.Errorf("%+v", got)
	}
}

func TestAnObservationAllocatesNothing(t *testing.T) {
	h := measure.NewSeconds()
	if n := testing.AllocsPerRun(100, func() { h.Took(time.Millisecond) }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
}

func TestTheAgeOfWhatIsNotThereIsZero(t *testing.T) {
	now := time.Now()
	for since, want := range map[time.Time]float64{{}: 0, now.Add(time.Hour): 0, now.Add(-2 * time.Second): 2} {
		if got := measure.Age(since, now); got != want {
			t.Errorf("%v: %v, want %v", since, got, want)
		}
	}
}
