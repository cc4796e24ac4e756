package session

import (
	"context"

	"github.com/foldhost/foldhost/event"
)

// Driver is the single subscription. It hears of every session before any observer does.
type Driver interface {
	// Attach is called when a session becomes live, before anything is published for it. head is the seq of its last
	// event, −1 when it is empty. At most one Drive of an id is attached at any time.
	Attach(s *Session, head int64) Drive
}

// Drive is what a driver keeps for one live session. Calls for one session are serial.
type Drive interface {
	// Publish tells what was committed, in log order and once. It must not block on I/O and cannot refuse. A drive that
	// panics is detached, and the session is attached anew from its log at the next touch.
	Publish(ctx context.Context, events []event.Event)
	// Detach is the last call: the session goes cold, or is deleted. Nothing is locked meanwhile; touches of the session wait until it returns, and
	// idle sessions go cold a few at a time, so it bounds what it waits for.
	Detach(deleted bool)
}

// Hook is asked before each commit and may veto by an error. The context makes changes of the same session give ErrReentrant; with it a hook or observer
// may change other sessions, but holds the turn of its own meanwhile: two that change each other's session wait for each other for ever.
// Hooks must not write to events.
type Hook func(ctx context.Context, s *Session, events []event.Event) error

// Observer is told after each commit, in log order. Panics are contained. The context is as for hooks, except that it does
// not end with the append. Observers must not write to events. An append returns after its observers, so a slow one slows the
// appends of its session, and no others.
type Observer func(ctx context.Context, s *Session, events []event.Event)
