package sdk

import (
	"context"

	"github.com/foldhost/foldhost/unit"
)

// instance is a running plugin as the process side takes it.
type instance struct{ registrar *Registrar }

func (i instance) Offer() ([]*unit.Compiled, []unit.Tool, <-chan struct{}) {
	return i.registrar.offer()
}
func (i instance) Stop(ctx context.Context) error { return i.registrar.stop(ctx) }
