package session

import (
	"context"

	"github.com/foldhost/foldhost/event"
)

// ask lets each guard or hook of a list veto, in order. The log still has its old length.
func (c *core) ask(ctx context.Context, hooks []*Hook, events []event.Event) error {
	if len(hooks) == 0 {
		return nil
	}
	ctx = c.s.hookContext(ctx)
	for _, h := range hooks {
		if err := askHook(ctx, *h, c.s, events); err != nil {
			return &VetoError{ID: c.s.id, Err: err}
		}
	}
	return nil
}

func askHook(ctx context.Context, h Hook, s *Session, events []event.Event) (err error) {
	defer recoverAs("hook", &err)
	return h(ctx, s, events)
}

// publish tells the drive and then the observers what was committed. Nobody can stop it.
func (c *core) publish(ctx context.Context, events []event.Event) {
	observers := c.set.observers.all()
	if c.drive == nil && len(observers) == 0 {
		return
	}
	ctx = c.s.publishContext(ctx)
	if c.drive != nil && !c.broken {
		// What a drive that panicked has folded is unknown. The core ends with the turn, not now: until then nobody can open the session
		// and tell the observers of later events.
		c.broken = !c.contained(tellDrive(ctx, c.drive, events))
	}
	for _, o := range observers {
		c.contained(tellObserver(ctx, *o, c.s, events))
	}
}

func tellObserver(ctx context.Context, o Observer, s *Session, events []event.Event) (err error) {
	defer recoverAs("observer", &err)
	o(ctx, s, events)
	return nil
}

func tellDrive(ctx context.Context, d Drive, events []event.Event) (err error) {
	defer recoverAs("drive", &err)
	d.Publish(ctx, events)
	return nil
}

func detachDrive(d Drive, deleted bool) (err error) {
	defer recoverAs("drive", &err)
	d.Detach(deleted)
	return nil
}
