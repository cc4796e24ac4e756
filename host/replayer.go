package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/semaphore"

	"github.com/foldhost/foldhost/host/internal/spool"
)

// ReplayerOptions of a Replayer. The zero value is usable.
type ReplayerOptions struct {
	// Plugins are the plugin processes that fold; nil is none.
	Plugins *PluginOptions
	// Logger gets what plugins write and what is contained; nil discards.
	Logger *slog.Logger
}

// Replayer replays logs with the units of one set of plugins, whose processes are started once. Safe for concurrent use.
type Replayer struct {
	host  *Host
	store *spool.Many
	gate  *semaphore.Weighted
}

// NewReplayer makes a replayer and begins to start its plugins. Errors are those of Open. Close it.
func NewReplayer(o ReplayerOptions) (*Replayer, error) {
	store := spool.NewMany("")
	plugins := o.Plugins
	if plugins != nil {
		own := *plugins
		own.frank = true
		plugins = &own
	}
	h, err := Open(Options{Store: store, Logger: quiet(o.Logger), Plugins: plugins})
	if err != nil {
		store.Close()
		return nil, err
	}
	return &Replayer{host: h, store: store, gate: newGate()}, nil
}

// Host is the host that replays run in: its plugins can be looked at.
func (r *Replayer) Host() *Host { return r.host }

// Register adds a unit that runs in this process. Errors are those of Host.Register.
func (r *Replayer) Register(u Unit) error {
	if _, err := r.host.Register(u.Plugin, u.Definition); err != nil {
		return fmt.Errorf("registering unit %q of plugin %q: %w", u.Key, u.Plugin, err)
	}
	return nil
}

// Replay accepts a log event by event, as an import would, folds the units over it and says what comes out. It holds neither the log
// nor its messages in memory: what is larger than a small buffer is spooled to a temporary file, and what the result needs
// grows with the result. A log with a preset of the configuration is folded by the plugins of that; any other by those of the default set. It waits for the
// first start of every plugin.
//
// A log that is refused gives the error of its reader or of acceptance, usually an *event.IndexError; see RefusalOf. A unit that fails is
// no error: its key is in Unavailable. A plugin whose process dies is waited for and asked again, until it is known which of its units, at which
// event, is to blame, or it is parked.
func (r *Replayer) Replay(ctx context.Context, o ReplayOptions) (result *Result, err error) {
	header := o.Header
	if err := header.Check(); err != nil {
		return nil, err
	}
	// Two logs of one id may be replayed at once, and one log twice.
	header.ID = rand.Text()
	s, err := r.host.sessions.Import(ctx, header, prefix(o.Events, o.At))
	if err != nil {
		return nil, err
	}
	defer func() {
		if gone := r.host.sessions.Delete(context.WithoutCancel(ctx), header.ID); gone != nil && err == nil {
			result, err = nil, fmt.Errorf("letting go of the log: %w", gone)
		}
	}()
	if err := r.host.WaitPlugins(ctx); err != nil {
		return nil, err
	}
	return (&replay{ctx: ctx, host: r.host, session: s, turn: turn{gate: r.gate}, header: o.Header, set: r.host.plugins.set(setOf(o.Header)), store: r.store, watch: o.Watch, progress: o.Progress}).run()
}

// Close ends the replayer and its plugins, which are killed without being asked: nothing that they know is of use to anybody.
func (r *Replayer) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return errors.Join(r.host.CloseWithin(now), r.store.Close())
}
