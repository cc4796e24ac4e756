package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/sdk/internal/serve"
)

// Serve is the main of a plugin: it serves the plugin to the host that started the process, and returns when the host asks it to exit.
// When the host dies, the process exits at once, without running what main has deferred.
//
// Call it first. From then on what is printed to standard output goes to standard error, and from there to the host's log, with the
// output of log and slog; a panic in a fold or tool is a fault of that cell or call, with its stack in the log. A panic on a goroutine of
// the author's ends the process.
//
// Started without a host, the program answers --version, describe --json and --help; otherwise it says what it is and how to run it, and
// exits 1. A plugin that is wrong in itself, such as one whose types give no schema, exits 1 and says why on standard error.
func Serve(p Plugin) {
	if !serve.HasHost() {
		os.Exit(commandLine(p, os.Args, os.Stdout, os.Stderr))
	}
	process, err := serve.Take()
	if err != nil {
		fail(err)
	}
	served, err := p.served()
	if err != nil {
		fail(err)
	}
	if err := process.Serve(serve.NewService(served, process.Logger)); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// served is the plugin as the process side takes it.
func (p Plugin) served() (serve.Plugin, error) {
	c, err := p.check()
	if err != nil {
		return serve.Plugin{}, err
	}
	out := serve.Plugin{
		Name: p.Name, Version: c.version, Summary: p.Summary, BuiltWith: builtWith(),
		ConfigSchema: p.Configure.schema,
		Start: func(config json.RawMessage, logger hclog.Logger) (serve.Instance, []serve.Problem) {
			running, err := p.start(c, StartOptions{Config: config, Logger: logger})
			if err == nil {
				return instance{running.registrar}, nil
			}
			var problems []serve.Problem
			for _, problem := range problemsOf(err) {
				problems = append(problems, serve.Problem{Path: problem.Path, Message: problem.Message})
			}
			return nil, problems
		},
	}
	for _, o := range p.Owns {
		out.Owned = append(out.Owned, serve.Owned{Type: o.Type, Schema: o.Schema})
	}
	return out, nil
}

// problemsOf says an error of start as problems of the config.
func problemsOf(err error) []ConfigProblem {
	if c := (*ConfigError)(nil); errors.As(err, &c) && len(c.Problems) > 0 {
		return c.Problems
	}
	return []ConfigProblem{{"$", err.Error()}}
}
