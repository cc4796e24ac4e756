package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// Options of a host. The zero value is usable: everything in memory.
type Options struct {
	// Store holds the logs. nil is a new store in memory, which Close closes; a store that is given stays the caller's to close. One that is also
	// an eventlog.RowStore keeps checkpoint rows, from which cold sessions are read.
	Store eventlog.Store
	// Logger gets what is contained: failing units, panics of observers and listeners. nil is slog.Default.
	Logger *slog.Logger
	// Session and Registry tune the parts. Their Logger, Driver, Deleted and Epoch are the host's to set. In a host with plugins Registry.BatchDeadline is
	// the longest that any of them gets for a batch, from when it is sent, whatever the plugin's own timeout is: a process that misses it is
	// killed and started again. An instance that the program has registered itself must keep a deadline itself there.
	Session  session.Options
	Registry registry.Options
	// Checkpoint tunes the durable cache; its Logger is the host's to set.
	Checkpoint checkpoint.Options
	// Plugins are the plugin processes that Open keeps up; nil is none.
	Plugins *PluginOptions
}

// Host is a store, its sessions and the units that fold them. Safe for concurrent use.
type Host struct {
	store    eventlog.Store
	owned    bool
	epoch    string
	sessions *session.Set
	registry *registry.Registry
	driver   *driver
	// writer is nil when the store keeps no rows.
	writer  *checkpoint.Writer
	reader  *checkpoint.Reader
	plugins *plugins
	calls   calls
	logger  *slog.Logger

	closing sync.Once
	closed  error
}

// patience is what the registry gives a batch, its wait for others that the process is busy with included. That one may be long: a thousand sessions
// that are built at once wait for each other. It ends no hang, which an instance does by itself, by the deadline from when a batch is sent. If
// it passes all the same, the process is ended as well.
const patience = time.Hour

// batchWindow is how many batches of pluginproto.TargetEvents are in flight for one session and plugin; the reason stands there.
const batchWindow = 4

// Open composes a host and begins to start its plugins, all at once; WaitPlugins waits for them. A plugin that does not start is no error: it is
// listed with the reason, and the others serve. Errors: *discover.Error, *launch.SocketDirError. Close it.
func Open(o Options) (*Host, error) {
	if o.Plugins == nil {
		return New(o), nil
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	p, specs, err := newPlugins(*o.Plugins, o.Logger)
	if err != nil {
		return nil, err
	}
	boundBatches(specs, o.Registry.BatchDeadline)
	o.Registry.BatchDeadline = patience
	if o.Registry.BatchEvents <= 0 {
		o.Registry.BatchEvents = pluginproto.TargetEvents
	}
	if o.Registry.Window <= 0 {
		o.Registry.Window = batchWindow
	}
	told := o.Registry.Poisoned
	o.Registry.Poisoned = func(by registry.Registrant, session, key string, seq int64) {
		p.poisoned(by)
		if told != nil {
			told(by, session, key, seq)
		}
	}
	h := compose(o, p)
	if err := p.start(specs, *o.Plugins, h.registry); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// New composes a host without plugin processes. What lets sessions go cold runs from then on, and with a store that keeps rows what writes them: Close it.
func New(o Options) *Host { return compose(o, &plugins{}) }

func compose(o Options, p *plugins) *Host {
	h := &Host{store: o.Store, plugins: p}
	if h.store == nil {
		h.store, h.owned = memory.New(), true
	}
	id := h.store.Identity()
	h.epoch = fmt.Sprintf("%s.%d", id.StoreID, id.Boot)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	h.logger = o.Logger
	o.Registry.Logger = o.Logger
	o.Registry.Epoch = h.epoch
	h.registry = registry.New(o.Registry)
	logs := logs{Store: h.store, page: cmp.Or(o.Registry.BatchEvents, pageEvents), declared: h.registry.Declared, strange: p.strange}
	o.Checkpoint.Logger = o.Logger
	// Nothing outlives a store of the host's own, so rows in it would be work for nobody.
	if rows, ok := h.store.(eventlog.RowStore); ok && !h.owned {
		logs.rows = rows
		h.writer = checkpoint.NewWriter(rows, o.Checkpoint)
	}
	if o.Checkpoint.ReadWait <= 0 {
		o.Checkpoint.ReadWait = o.Registry.ReadWait // so that nobody can tell from outside whether a session is live
	}
	h.reader = checkpoint.NewReader(logs, h.registry, h.writer, o.Checkpoint)
	h.driver = &driver{logs: logs, registry: h.registry, rows: h.reader, writer: h.writer,
		live: map[eventlog.Life]*registry.Session{}, ids: map[string]*registry.Session{}}
	o.Session.Logger = o.Logger
	o.Session.Driver, o.Session.Deleted = h.driver, h.registry.Deleted
	h.sessions = session.NewSet(h.store, o.Session)
	p.guardSessions(h.sessions)
	return h
}

// Sessions is the set of sessions: create, open, append, fork, delete.
func (h *Host) Sessions() *session.Set { return h.sessions }

// Registry is the registry of units: sets, registrations, the change feed.
func (h *Host) Registry() *registry.Registry { return h.registry }

// Epoch is "<storeId>.<boot>": which store this is and which of its starts. Blocks carry it.
func (h *Host) Epoch() string { return h.epoch }

// Register offers a unit to every session of the default set under the name of its plugin, and to those of presets that name that without a config. Release the registration to take it away.
// Errors: *unit.DefinitionError, *registry.VersionConflictError.
func (h *Host) Register(plugin string, def unit.Definition) (*registry.Registration, error) {
	return h.registry.Register(registry.Registrant{Plugin: plugin}, def)
}

// Close ends the host, in the order in which nothing is lost: sessions first, so that the last events are published and their rows taken; then cold
// reads; then what is left to write of both; then the registry, which nobody calls any more; then the plugins, all at once, each asked before it is killed; then the store, if it is the host's own.
// More than once is harmless.
func (h *Host) Close() error { return h.CloseWithin(context.Background()) }

// CloseWithin is Close; when ctx ends, plugins are not asked any longer but killed. The error is not ctx's.
func (h *Host) CloseWithin(ctx context.Context) error {
	h.closing.Do(func() { h.closed = h.end(ctx) })
	return h.closed
}

func (h *Host) end(ctx context.Context) error {
	err := h.sessions.Close()
	h.reader.Close()
	if h.writer != nil {
		h.writer.Close()
	}
	h.registry.Close()
	h.plugins.stop(ctx)
	if h.owned {
		err = errors.Join(err, h.store.Close())
	}
	return err
}
