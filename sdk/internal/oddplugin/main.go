// Command oddplugin is a plugin that does what authors do without thinking of the host: it prints everywhere, panics, offers and takes
// back units, and has work to do when it stops. Tests start it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/foldhost/foldhost/sdk"
)

// Config chooses what is odd.
type Config struct {
	// Print writes to standard output in every way that there is.
	Print bool `json:"print,omitempty"`
	// Refuse refuses the config.
	Refuse bool `json:"refuse,omitempty"`
}

// Tick is what the units count.
type Tick struct {
	N int `json:"n"`
}

// Text is a tool's argument.
type Text struct {
	Text string `json:"text"`
}

func main() {
	if os.Getenv("ODD_EARLY") != "" {
		fmt.Println("printed before Serve") // Breaks the handshake, and the host says so.
	}
	if os.Getenv("ODD_SCHEMA") != "" {
		plugin.Owns = []sdk.OwnedEvent{sdk.Owns[chan int]("odd/chan")}
	}
	sdk.Serve(plugin)
	fmt.Println("printed after Serve")
}

var plugin = sdk.Plugin{
	Name:      "odd",
	Version:   "1.2.3",
	Summary:   "does what it should not",
	Owns:      []sdk.OwnedEvent{sdk.Owns[Tick]("odd/tick")},
	Units:     []sdk.Unit{counter("ticks")},
	Configure: sdk.Configured(configure),
}

func counter(key string) sdk.Unit {
	return sdk.ProjectionDefinition[int, int]{
		Key: key, StateVersion: 1,
		On: sdk.Handlers[int]{"odd/tick": sdk.On(func(n int, t Tick) int {
			switch t.N {
			case -1:
				panic("a tick of minus one")
			case -2:
				fmt.Println("a tick of minus two")
			}
			return n + t.N
		})},
		View: sdk.Same[int],
	}
}

func configure(r *sdk.Registrar, c Config) error {
	if c.Refuse {
		return errors.Join(sdk.BadConfig("$.refuse", "it asks for it"))
	}
	if c.Print {
		printEverywhere()
	}
	r.Logger().Info("configured", "print", c.Print)
	r.Go(func(ctx context.Context) {
		<-ctx.Done()
		r.Logger().Info("the last work is done")
	})
	var extra *sdk.Registration
	tools := []sdk.AnyTool{
		sdk.Tool[Text, Text]{Name: "tick", Reads: []string{"ticks"}, Call: func(_ context.Context, call *sdk.Call, t Text) (Text, error) {
			var n int
			if _, err := call.Value("ticks", &n); err != nil {
				return t, err
			}
			call.Append("odd/tick", Tick{N: 1})
			call.Say("%d ticks so far", n)
			return t, nil
		}},
		sdk.Tool[Text, sdk.None]{Name: "panic", Call: func(context.Context, *sdk.Call, Text) (sdk.None, error) { panic("a tool that panics") }},
		sdk.Tool[Text, sdk.None]{Name: "crash", Call: func(ctx context.Context, _ *sdk.Call, _ Text) (sdk.None, error) {
			go func() { panic("a goroutine that panics") }()
			<-ctx.Done()
			return sdk.None{}, ctx.Err()
		}},
		sdk.Tool[Text, sdk.None]{Name: "toggle", Call: func(context.Context, *sdk.Call, Text) (_ sdk.None, err error) {
			if extra != nil {
				extra.Release()
				extra = nil
				return
			}
			extra, err = r.Unit(counter("extra"))
			return
		}},
	}
	for _, t := range tools {
		if _, err := r.Tool(t); err != nil {
			return err
		}
	}
	return nil
}

func printEverywhere() {
	long := strings.Repeat("x", 70<<10)
	for range 3 {
		fmt.Println(long)
	}
	println("to standard error")
	log.Print("by log")
	slog.Warn("by slog", "its level", "is kept")
	os.Stderr.WriteString("text on standard error\n")
	os.NewFile(1, "stdout").WriteString("by descriptor\n")
	child := exec.Command("sh", "-c", "echo by a child with the cookie [$FOLDHOST_PLUGIN]")
	child.Stdout = os.Stdout
	child.Run()
}
