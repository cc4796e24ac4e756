package checkpoint

import (
	"log/slog"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// encode makes stored rows of rows that were taken at one cut.
func encode(rows registry.Rows) []eventlog.Row {
	cut := int64(-1)
	for _, r := range rows.Rows {
		cut = max(cut, r.Seq)
	}
	out := make([]eventlog.Row, 0, len(rows.Rows))
	for key, r := range rows.Rows {
		out = append(out, eventlog.Row{Key: key, Cut: cut, Seq: r.Seq, Data: r.AppendJSON(nil)})
	}
	return out
}

// decode reads stored rows. One that is malformed, or stands beyond the log, is as if it were not there; it is logged, because no store that
// works gives one.
func decode(set eventlog.RowSet, logger *slog.Logger) registry.Rows {
	rows := registry.Rows{Session: set.Info.Header.ID, Incarnation: set.Info.Incarnation, Rows: make(map[string]registry.Row, len(set.Rows))}
	for _, r := range set.Rows {
		if r.Key == eventlog.SurfaceKey {
			continue
		}
		row, err := registry.DecodeRow(r.Data)
		switch {
		case err != nil:
			logger.Warn("a checkpoint row is not used", "session", rows.Session, "key", r.Key, "error", err)
		case row.Seq != r.Seq || row.Seq >= set.Info.Seq:
			logger.Warn("a checkpoint row is not used", "session", rows.Session, "key", r.Key, "seq", row.Seq, "stored", r.Seq, "head", set.Info.Seq-1)
		default:
			rows.Rows[r.Key] = row
		}
	}
	return rows
}
