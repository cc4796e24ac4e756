package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killOneChild kills one of the processes that a process has started, if there is any. It gives how many.
func killOneChild(pid int, r *rand.Rand) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var children []int
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				children = append(children, n)
			}
		}
	}
	if len(children) == 0 || syscall.Kill(children[r.IntN(len(children))], syscall.SIGKILL) != nil {
		return 0
	}
	return 1
}
