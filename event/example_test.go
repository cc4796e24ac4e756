package event_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
)

func ExampleCompact() {
	data, _ := event.Compact([]byte(`{ "price": 1.50, "tags": [ "a<b" ] }`), "$.data")
	fmt.Println(string(data))

	_, err := event.Compact([]byte(`{"items":[{"id":1,"id":2}]}`), "$.data")
	var refused *event.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Rule, refused.Path)
	}
	// Output:
	// {"price":1.50,"tags":["a<b"]}
	// data-not-lossless duplicate-key $.data.items[0].id
}

func ExampleEncode() {
	raw, _ := event.Encode(map[string]any{"html": "<b>", "raw": json.RawMessage(`1.50`)})
	fmt.Println(string(raw))
	// Output: {"html":"<b>","raw":1.50}
}

func ExampleDecodeDraft() {
	d, err := event.DecodeDraft([]byte(`{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}`), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, _ := event.Integer(event.Lookup(d.Data, "turn"))
	fmt.Println(d.Type, d.Seq, turn)
	fmt.Println(string(d.AppendJSON(nil)))
	// Output:
	// turn/start 0 1
	// {"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}
}

func ExampleElements() {
	data := json.RawMessage(`{"todos":[{"content":"plan"},{"content":"build"}]}`)
	event.Elements(event.Lookup(data, "todos"), func(todo json.RawMessage) bool {
		content, _ := event.String(event.Lookup(todo, "content"))
		fmt.Println(content)
		return true
	})
	// Output:
	// plan
	// build
}

func ExampleEqual() {
	fmt.Println(event.Equal(json.RawMessage(`{"a":1,"b":[2]}`), json.RawMessage(`{"b":[2.0],"a":1}`)))
	// Output: true
}
