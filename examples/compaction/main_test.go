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
	// instructions injected at seq 0
	// instructions injected at seq 7
	// the model sees [6 7] as of seq 7
}
