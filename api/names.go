package api

import (
	"fmt"
	"net/http"
)

// maxNames is how many event types or keys a request names in one list: 1,000, many times what a program folds or shows. A store looks for each of them, with one of its few readers, and a stream
// keeps them as long as it lasts.
const maxNames = 1000

// names are those of one list, each once, in the order in which they stand.
type names struct {
	list []string
	// given counts them with those that stand there again.
	given int
	seen  map[string]bool
}

// add takes one more, and says whether there was room for it.
func (n *names) add(name string) bool {
	if n.given++; n.given > maxNames {
		return false
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	if !n.seen[name] {
		n.seen[name] = true
		n.list = append(n.list, name)
	}
	return true
}

// tooMany refuses a list with more than most elements, of the body at path, or of the address. It was read so far and no further.
func tooMany(name, path string, most int64, remedy string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: CodeBodyInvalid, Path: path, Size: most + 1, Limit: most, Detail: fmt.Sprintf("%s has more than %d: %s", name, most, remedy)}
}

func tooManyNames(name, path string) *Problem {
	return tooMany(name, path, maxNames, "leave it out for all of them, or ask in several requests")
}
