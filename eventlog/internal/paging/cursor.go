package paging

import (
	"math"
	"strconv"

	"github.com/foldhost/foldhost/eventlog"
)

// Cursor makes the cursor of a listing out of the position of the last log given, so a log that commits while somebody pages is not given
// twice; it stands at the front of the next listing.
func Cursor(position int64) string { return strconv.FormatInt(position, 10) }

// Before reads a cursor: the listing goes on with the logs whose last commit is below the position.
func Before(cursor string) (position int64, err error) {
	if cursor == "" {
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 1 {
		return 0, &eventlog.InvalidError{Reason: "the cursor is not one that this store gave: start without one"}
	}
	return n, nil
}
