package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Report says whether what is served of a session is what its log gives.
type Report struct {
	Info eventlog.Info
	// Keys are those that were compared, sorted.
	Keys []string
	// Differences are in the order of keys, then seqs.
	Differences []Difference
	// Unavailable are the keys that could not be compared, and why.
	Unavailable map[string]registry.Unavailable
}

// Difference is something that a fold from zero does not give.
type Difference struct {
	Key string
	// Seq is the event that both are as of.
	Seq int64
	// What it is: "value" is what a read gives, "row value" what a list gives, "row state" what the next read folds on.
	What string
	// Served and Folded are the two, nil where one of them has none.
	Served, Folded json.RawMessage
}

// Verify compares what is served of a session with a fold from zero, byte by byte: its rows, as of their seqs, and its values as of its last event. served
// gives the values of a live session; nil reads them as Read does, but writes nothing back and waits for everything. Units that cannot be
// asked are listed. Errors are those of Read.
func (r *Reader) Verify(ctx context.Context, id string, served func(context.Context) (registry.Block, error)) (Report, error) {
	set, err := r.load(ctx, id)
	if err != nil {
		return Report{}, err
	}
	v := verifying{r: r, set: r.logs.Set(set.Info.Header), log: r.logs.Log(lifeOf(set.Info)), rows: decode(set, r.o.Logger), seen: map[string]bool{}}
	v.report = Report{Info: set.Info, Unavailable: map[string]registry.Unavailable{}}
	if served == nil {
		served = func(ctx context.Context) (registry.Block, error) {
			block, _, err := r.units.RestoreFrom(ctx, v.set, v.rows, v.log, set.Info.Seq-1)
			return block, err
		}
	}
	if err := v.run(ctx, served); err != nil {
		return Report{}, fmt.Errorf("verify session %q: %w", id, err)
	}
	v.report.Keys = slices.Sorted(maps.Keys(v.seen))
	slices.SortStableFunc(v.report.Differences, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return v.report, nil
}

type verifying struct {
	r      *Reader
	set    string
	log    registry.Log
	rows   registry.Rows
	seen   map[string]bool
	report Report
}

// run folds from zero once, and stops where a row stands.
func (v *verifying) run(ctx context.Context, served func(context.Context) (registry.Block, error)) error {
	block, err := served(ctx)
	if err != nil {
		return err
	}
	var stops []int64
	for _, row := range v.rows.Rows {
		if row.Seq <= block.AsOfSeq {
			stops = append(stops, row.Seq)
		}
	}
	stops = append(stops, block.AsOfSeq)
	slices.Sort(stops)
	fold := registry.Rows{}
	for _, at := range slices.Compact(stops) {
		var folded registry.Block
		folded, fold, err = v.r.units.RestoreFrom(ctx, v.set, fold, v.log, at)
		if err != nil {
			return err
		}
		v.compareRows(at, &folded, fold)
		if at == block.AsOfSeq {
			v.compareValues(&block, &folded)
		}
	}
	return nil
}

// compareRows compares the rows at a seq that a read would use.
func (v *verifying) compareRows(at int64, folded *registry.Block, fold registry.Rows) {
	for key, row := range v.rows.Rows {
		now, ok := fold.Rows[key]
		if row.Seq != at || !ok || row.Ver != now.Ver || row.Def != now.Def {
			continue // a row of no use is not served
		}
		if row.Anchor == now.Anchor {
			v.compare(key, at, "row state", row.Val, now.Val)
		}
		if value, ok := folded.Values[key]; ok && row.View != nil && row.Config == now.Config { // lists do not look at the log
			v.compare(key, at, "row value", row.View, value)
		}
	}
}

func (v *verifying) compareValues(served, folded *registry.Block) {
	keys := map[string]bool{}
	for _, b := range [...]*registry.Block{served, folded} {
		maps.Copy(v.report.Unavailable, b.Unavailable)
		for key := range b.Values {
			keys[key] = true
		}
	}
	for key := range keys {
		if !hasKey(v.report.Unavailable, key) {
			v.compare(key, served.AsOfSeq, "value", served.Values[key], folded.Values[key])
		}
	}
}

func (v *verifying) compare(key string, at int64, what string, served, folded json.RawMessage) {
	v.seen[key] = true
	if !bytes.Equal(served, folded) {
		v.report.Differences = append(v.report.Differences, Difference{Key: key, Seq: at, What: what, Served: served, Folded: folded})
	}
}
