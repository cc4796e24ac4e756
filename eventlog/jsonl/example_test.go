package jsonl_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// A log whose writer died is read as far as it is whole, and written again with its chunks packed.
func Example() {
	recorded := `{"type":"session","version":0,"id":"s","createdAt":1}
{"type":"assistant/chunk","seq":0,"time":10,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"Hel"}}}
{"type":"assistant/chunk","seq":1,"time":12,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"lo "}}}
{"type":"assistant/chunk","seq":2,"time":11,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"you"}}}
{"type":"assistant/chunk","se`
	in, err := jsonl.NewReader(strings.NewReader(recorded), jsonl.Options{})
	if err != nil {
		panic(err)
	}
	defer in.Close()
	out, err := jsonl.NewWriter(os.Stdout, in.Header(), jsonl.WriterOptions{})
	if err != nil {
		panic(err)
	}
	for draft, err := range in.Events() {
		if err == nil {
			err = out.Write(draft.Event)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := out.Close(); err != nil {
		panic(err)
	}
	for _, w := range in.Warnings() {
		fmt.Println(w)
	}
	// Output:
	// {"type":"session","version":0,"id":"s","createdAt":1}
	// {"type":"text-chunks","seq0":0,"time0":10,"data":{"turn":1,"step":1,"index":0,"dt":[2,-1],"texts":["Hel","lo ","you"]}}
	// 29 bytes from line 5 on (event 3) were dropped: the last line has no newline
}
