package render

import (
	"bufio"
	"fmt"
	"io"

	"github.com/foldhost/foldhost/client"
)

// Bytes is a size as people read it.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	size, unit := float64(n)/1024, 0
	for ; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}

// StoreStats prints what there is to know about a store.
func StoreStats(w io.Writer, s *client.StoreStats) error {
	b := bufio.NewWriter(w)
	for _, fact := range [][2]string{
		{"store", fmt.Sprintf("%s, start %d", s.StoreID, s.Boot)},
		{"file", s.Path},
		{"durability", s.Durability},
		{"holds", fmt.Sprintf("%s, %s", Count(s.Logs, "session"), Count(s.Events, "event"))},
		{"deleted", fmt.Sprintf("%s still to be swept", Count(s.Deleted, "session"))},
		{"position", fmt.Sprint(s.Position)},
		{"size", fmt.Sprintf("%s, %s of it free, and %s not taken over yet", Bytes(s.Bytes), Bytes(s.Free), Bytes(s.WAL))},
		{"since start", fmt.Sprintf("%s in %s with %s", Count(s.Changes, "change"), Count(s.Groups, "transaction"), Count(s.Syncs, "sync"))},
	} {
		Printf(b, "%-12s%s\n", fact[0], fact[1])
	}
	return b.Flush()
}

// CheckReport prints what a check found.
func CheckReport(w io.Writer, r *client.CheckReport) error {
	b := bufio.NewWriter(w)
	found := "nothing is damaged"
	if n := int64(len(r.Problems)) + r.More; n > 0 {
		found = Count(n, "problem")
	}
	Printf(b, "%s, %s, %s: %s\n", Count(r.Logs, "session"), Count(r.Events, "event"), Count(r.Rows, "row"), found)
	problems(b, r.Problems, r.More)
	return b.Flush()
}

func problems(w io.Writer, list []client.StoreProblem, more int64) {
	for _, p := range list {
		where := p.Code
		if p.Session != "" {
			where += " in session " + p.Session
		}
		if p.Seq != nil {
			where += fmt.Sprintf(" at seq %d", *p.Seq)
		}
		Printf(w, "  %s: %s\n", where, p.Detail)
	}
	if more > 0 {
		Printf(w, "  and %d more\n", more)
	}
}

// SalvagedFile is a log that was written.
type SalvagedFile struct {
	Path    string `json:"path"`
	Session string `json:"session"`
	Events  int64  `json:"events"`
	// HeaderLost: it may have had another header, and another id.
	HeaderLost bool `json:"headerLost,omitempty"`
}

// SavedFile prints one.
func SavedFile(w io.Writer, f *SalvagedFile) error {
	lost := ""
	if f.HeaderLost {
		lost = ", with a header that may have been another"
	}
	return Printf(w, "%s: %s of session %s%s\n", f.Path, Count(f.Events, "event"), f.Session, lost)
}

// Salvaged prints how a salvage went.
func Salvaged(w io.Writer, dir string, whole, cut, events int64, lost []client.StoreProblem, more int64) error {
	b := bufio.NewWriter(w)
	Printf(b, "salvaged %s into %s: %s whole, %s cut\n", Count(events, "event"), dir, Count(whole, "log"), Count(cut, "log"))
	Printf(b, "not salvaged, as ever: idempotency keys, and values, which are folded anew\n")
	problems(b, lost, more)
	return b.Flush()
}
