package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// as of seq 2
	//   todos [{"content":"water the plants","status":"in_progress"}]
	//   words 4
	// the feed said: todos is [{"content":"water the plants","status":"in_progress"}] since seq 2
	// refused: message-invalid at $.data.id: the message needs an id, a string that is not empty
	// refused: session "embedded": a pre-commit hook refused: event-schema at $.data.todos: expected array, got string (the type todo/write belongs to plugin assistant)
}
