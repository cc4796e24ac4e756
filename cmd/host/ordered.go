package main

import (
	"sync"
)

// ordered runs jobs a few at once and hands their results to done in the order of the jobs. A job starts only when fewer than width
// results are running or waiting, so that what waits behind a slow one is bounded. done ends it by an error; ordered
// returns when every job that started has ended.
func ordered[T any](width, jobs int, job func(i int) T, done func(i int, result T) error) error {
	var running sync.WaitGroup
	defer running.Wait()
	results := make([]chan T, jobs)
	start := func(i int) {
		results[i] = make(chan T, 1)
		running.Go(func() { results[i] <- job(i) })
	}
	for i := range min(width, jobs) {
		start(i)
	}
	for i := range jobs {
		if err := done(i, <-results[i]); err != nil {
			return err
		}
		if next := i + width; next < jobs {
			start(next)
		}
	}
	return nil
}
