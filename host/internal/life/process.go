package life

import (
	"context"

	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
)

// Process is what a life asks of a process that was started. *launch.Process is one, and says what each method means.
type Process interface {
	Client() pluginproto.PluginClient
	Version() int
	Pid() int
	Tail() string
	Exited() <-chan struct{}
	Exit() launch.Exit
	Health(context.Context) error
	Kill(reason string)
	Stop(context.Context) launch.Exit
	Fail(launch.Phase, error) *launch.StartError
}

// Launch starts a process, up to where it can be called. Its errors are those of launch.Launcher.Start.
type Launch func(context.Context, launch.Spec) (Process, error)

// By starts processes by a launcher.
func By(l *launch.Launcher) Launch {
	return func(ctx context.Context, s launch.Spec) (Process, error) {
		p, err := l.Start(ctx, s)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}
