package launch

import (
	"runtime"
	"sync"
)

// thread runs functions one after the other on one thread of the operating system that is kept. On Linux the signal that a child
// asked for at its parent's death comes when the *thread* that started it ends, and Go ends threads when it likes.
type thread struct {
	calls chan func()
	ended sync.WaitGroup
}

func newThread() *thread {
	t := &thread{calls: make(chan func())}
	t.ended.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for call := range t.calls {
			call()
		}
	})
	return t
}

// do runs call on the thread and waits for it.
func (t *thread) do(call func()) {
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		call()
	}
	<-done
}

// close lets the thread go. Nothing that it started may be alive.
func (t *thread) close() {
	close(t.calls)
	t.ended.Wait()
}
