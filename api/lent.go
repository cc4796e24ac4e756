package api

import "github.com/foldhost/foldhost/event"

// lent is a large event that some streams, which have read it from the log, are sending at this moment: all of them send one frame. So those that stall before the same event, as many do when
// what is between them and the server does, hold it once. It is guarded by the topic that it is of.
type lent struct {
	*sharedEvent
	streams int
}

// lend gives the event to send, which is that of who is sending it already, where there is somebody. It is taken back when it was sent.
func (f *follower) lend(ev *event.Event, m mark) *sharedEvent {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lent[m]
	if l == nil {
		if t.lent == nil {
			t.lent = map[mark]*lent{}
		}
		l = &lent{sharedEvent: share(ev, m)}
		t.lent[m] = l
	}
	l.streams++
	return l.sharedEvent
}

func (f *follower) takeBack(e *sharedEvent) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lent[e.mark]; l.streams == 1 {
		delete(t.lent, e.mark)
	} else {
		l.streams--
	}
}
