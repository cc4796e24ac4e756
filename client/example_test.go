package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/host"
)

// A program appends to a session and follows its values. The server is one in this process; with the URL of another the rest is the same.
func Example() {
	quiet := slog.New(slog.DiscardHandler)
	h := host.New(host.Options{Logger: quiet})
	defer h.Close()
	if _, err := h.Register("example", steps()); err != nil { // counts events of the type "step"
		log.Fatal(err)
	}
	server := api.New(api.Options{Host: h, Logger: quiet})
	defer server.Close()

	c, err := client.New(client.Options{URL: "http://in-process", HTTP: &http.Client{Transport: client.InProcess(server)}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, _, err := c.Create(ctx, client.NewSession{ID: "first"}); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Append(ctx, "first", []client.Item{{Type: "step"}, {Type: "step"}}, client.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	values := client.NewStore()
	for frame, err := range c.Stream(ctx, "first", client.StreamOptions{After: client.FromStart}) {
		if err != nil {
			log.Fatal(err)
		}
		values.Take(frame, false)
		switch f := frame.(type) {
		case *client.EventFrame:
			fmt.Println("event", f.Event.Seq, f.Event.Type)
		case *client.BaselineFrame:
			fmt.Println("steps", string(values.Values()["steps"]))
			if err := c.Delete(ctx, "first"); err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// event 0 step
	// event 1 step
	// steps 2
}
