package checkpoint

import (
	"hash/crc32"
	"log/slog"
	"strconv"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// What is stored of a row is its JSON behind a checksum of eight hex digits: a byte that a disk has changed within a number or a string leaves JSON
// that passes every schema. The checksum is over the key as well, so that no row is taken for that of another unit.
const sumDigits = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum writes the checksum of the text of a row.
func sum(dst []byte, key string, text []byte) {
	n := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, text)
	hex := strconv.AppendUint(make([]byte, 0, sumDigits+1), 1<<32|uint64(n), 16)
	copy(dst, hex[1:])
}

// encode makes stored rows. cut is the last event of the log at the moment that they are from.
func encode(rows map[string]registry.Row, cut int64) []eventlog.Row {
	out := make([]eventlog.Row, 0, len(rows))
	for key, r := range rows {
		out = append(out, eventlog.Row{Key: key, Cut: cut, Seq: r.Seq, Data: encodeRow(key, r)})
	}
	return out
}

func encodeRow(key string, r registry.Row) []byte {
	data := r.AppendJSON(make([]byte, sumDigits, sumDigits+len(r.Val)+len(r.View)+200))
	sum(data, key, data[sumDigits:])
	return data
}

// Decode gives the row of a unit that is stored, if it is as it was written. The error is a *registry.RowError.
func Decode(stored eventlog.Row) (registry.Row, error) {
	if len(stored.Data) < sumDigits {
		return registry.Row{}, &registry.RowError{Reason: "it is too short"}
	}
	text := stored.Data[sumDigits:]
	var want [sumDigits]byte
	if sum(want[:], stored.Key, text); string(stored.Data[:sumDigits]) != string(want[:]) {
		return registry.Row{}, &registry.RowError{Reason: "its checksum is wrong"}
	}
	row, err := registry.DecodeRow(text)
	if err == nil && row.Seq != stored.Seq {
		err = &registry.RowError{Reason: "it is stored under seq " + strconv.FormatInt(stored.Seq, 10) + " and is of " + strconv.FormatInt(row.Seq, 10)}
	}
	return row, err
}

// decode reads the rows of units. One that is damaged, or stands beyond the log, is as if it were not there; it is logged, because no store that
// works gives one.
func decode(set eventlog.RowSet, logger *slog.Logger) registry.Rows {
	rows := registry.Rows{Session: set.Info.Header.ID, Incarnation: set.Info.Incarnation, Cut: set.Info.Seq - 1, Rows: make(map[string]registry.Row, len(set.Rows))}
	for _, stored := range set.Rows {
		if stored.Key == eventlog.SurfaceKey {
			continue
		}
		row, err := Decode(stored)
		switch {
		case err != nil:
			logger.Warn("a checkpoint row is not used", "session", rows.Session, "unit", stored.Key, "error", err)
		case row.Seq >= set.Info.Seq:
			logger.Warn("a checkpoint row is not used: it stands beyond the log", "session", rows.Session, "unit", stored.Key, "seq", row.Seq, "head", set.Info.Seq-1)
		default:
			rows.Rows[stored.Key] = row
		}
	}
	return rows
}
