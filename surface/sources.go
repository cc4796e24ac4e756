package surface

import (
	"fmt"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
)

// smallSources is up to how many sources are put in order on the stack.
const smallSources = 64

// checkSources checks the sources of an append.
func checkSources(d *event.Draft) error {
	var buf [smallSources]int64
	if _, err := orderedSources(d, buf[:0]); err != nil {
		return err
	}
	return nil
}

// checkReplacementSources checks sources that must also name every node between two places.
func (m *Manager) checkReplacementSources(d *event.Draft, from, to place) error {
	var buf [smallSources]int64
	ordered, err := orderedSources(d, buf[:0])
	if err != nil {
		return err
	}
	var missing []int64
	count, i := 0, 0
	m.nodes.runs(from, to, func(run []int64) {
		for _, seq := range run {
			// Nodes mostly rise, and so do the places of their sources: the next one is right behind the last.
			if i < len(ordered) && ordered[i] == seq {
				i++
				continue
			}
			var found bool
			if i, found = slices.BinarySearch(ordered, seq); found {
				i++
				continue
			}
			if count++; len(missing) < maxListed {
				missing = append(missing, seq)
			}
		}
	})
	if count == 0 {
		return nil
	}
	return fault(event.SourcesIncomplete, "sources-incomplete", "$.sourceEventSeqs",
		"sourceEventSeqs must name every node that the replacement shadows; missing "+list(missing, count))
}

// maxListed is how many seqs an error names before it counts the rest.
const maxListed = 10

func list(seqs []int64, count int) string {
	var b strings.Builder
	for i, seq := range seqs {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, seq)
	}
	if more := count - len(seqs); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// orderedSources applies the rules for sources in their order (an array, not empty but on assistant/message, integers,
// no duplicates, all earlier) and returns them in rising order, in buf if they fit. Sources that rise already, as nearly
// all do, are checked in one pass and returned as they are.
func orderedSources(d *event.Draft, buf []int64) ([]int64, *event.Error) {
	const path = "$.sourceEventSeqs"
	sources := d.Sources
	switch {
	case d.SourcesFault != "":
		return nil, fault(event.SourcesInvalid, "sources-malformed", path, d.SourcesFault)
	case sources == nil:
		return nil, nil
	case len(sources) == 0:
		if d.Type == event.AssistantMessage {
			return nil, nil
		}
		return nil, fault(event.SourcesInvalid, "sources-empty", path,
			"sourceEventSeqs must not be empty except on assistant/message; leave it out when the sources are not known")
	}
	rising := true
	for i, seq := range sources {
		if !isSeq(seq) {
			return nil, fault(event.SourcesInvalid, "sources-malformed", fmt.Sprintf("%s[%d]", path, i), "a source must be an integer from 0 to 2^53-1")
		}
		rising = rising && (i == 0 || sources[i-1] < seq)
	}
	ordered := sources
	if !rising {
		ordered = append(buf, sources...)
		slices.Sort(ordered)
		for i := 1; i < len(ordered); i++ {
			if ordered[i] == ordered[i-1] {
				return nil, fault(event.SourcesInvalid, "sources-duplicate", path,
					fmt.Sprintf("sourceEventSeqs must not contain duplicates; %d stands twice", ordered[i]))
			}
		}
	}
	if ordered[len(ordered)-1] >= d.Seq {
		i := slices.IndexFunc(sources, func(seq int64) bool { return seq >= d.Seq })
		return nil, fault(event.SourcesInvalid, "sources-not-earlier", fmt.Sprintf("%s[%d]", path, i),
			fmt.Sprintf("sourceEventSeqs must reference earlier events; %d is not before %d", sources[i], d.Seq))
	}
	return ordered, nil
}
