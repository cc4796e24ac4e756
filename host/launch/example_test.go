package launch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
)

// A supervisor starts a process, asks what it is, and hears of its end.
func ExampleLauncher() {
	ctx := context.Background()
	launcher, err := launch.New(launch.Options{Logger: slog.Default()})
	if err != nil {
		log.Fatal(err)
	}
	defer launcher.Close()

	p, err := launcher.Start(ctx, launch.Spec{Plugin: "todo", Path: "bin/plugins/todo", Env: []string{"TZ=UTC"}})
	var failed *launch.StartError
	if errors.As(err, &failed) {
		fmt.Println(failed.Phase, failed.Exit, failed.Hint)
		return
	}
	about, err := p.Client().Describe(ctx, &pluginproto.DescribeRequest{})
	if err != nil {
		fmt.Println(p.Fail(launch.PhaseDescribe, err))
		p.Stop(ctx)
		return
	}
	fmt.Println(about.GetName(), about.GetVersion())

	go func() {
		<-p.Exited()
		if exit := p.Exit(); !exit.Expected {
			fmt.Println("start it again:", exit, p.Tail())
		}
	}()
	p.Stop(ctx)
}
