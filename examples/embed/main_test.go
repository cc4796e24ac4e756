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
	// refused: true
	// refused: true
}
