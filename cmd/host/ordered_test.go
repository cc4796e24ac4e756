package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestResultsComeInTheOrderOfTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width, jobs = 3, 10
		var running, most atomic.Int64
		var mu sync.Mutex
		release := make([]chan struct{}, jobs)
		for i := range release {
			release[i] = make(chan struct{})
		}
		var got []int
		finished := make(chan error)
		go func() {
			finished <- ordered(width, jobs, func(i int) int {
				now := running.Add(1)
				mu.Lock()
				most.Store(max(most.Load(), now))
				mu.Unlock()
				<-release[i]
				running.Add(-1)
				return i
			}, func(i, result int) error {
				got = append(got, result)
				return nil
			})
		}()
		// The last of each window ends first: its result has to wait.
		for _, i := range []int{2, 1, 0, 5, 4, 3, 8, 7, 6, 9} {
			synctest.Wait()
			close(release[i])
		}
		if err := <-finished; err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(got) || len(got) != jobs {
			t.Errorf("results came as %v", got)
		}
		if most.Load() > width {
			t.Errorf("%d jobs ran at once, more than %d", most.Load(), width)
		}
	})
}

func TestAFailureEndsTheRestAndWaitsForIt(t *testing.T) {
	failed := errors.New("failed")
	var ended, started atomic.Int64
	err := ordered(2, 100, func(i int) int {
		started.Add(1)
		defer ended.Add(1)
		return i
	}, func(i, _ int) error {
		if i == 3 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) {
		t.Errorf("the failure came back as %v", err)
	}
	if s, e := started.Load(), ended.Load(); s != e || s > 6 {
		t.Errorf("%d started, %d ended", s, e)
	}
}
