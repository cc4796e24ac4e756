package surface_test

import (
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

func ExampleManager() {
	m := surface.NewManager(0, nil)
	for _, line := range []string{
		`{"type":"user/message","seq":0,"time":0,"data":{},"surfaceOp":"append"}`,
		`{"type":"user/message","seq":1,"time":0,"data":{},"surfaceOp":"append"}`,
		`{"type":"user/message","seq":2,"time":0,"data":{},"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}`,
	} {
		d, err := event.DecodeDraft([]byte(line), 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		p, err := m.Plan(&d)
		if err != nil {
			fmt.Println(err)
			return
		}
		// Here the event is committed; nothing has changed until Apply.
		m.Apply(p)
	}
	fmt.Println(m.Nodes(), m.ReplaceGeneration())
	// Output: [2 1] 1
}
