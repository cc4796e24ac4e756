package sqlite

import (
	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// log is what is stored of a log besides its events.
type log struct {
	n           int64
	id          string
	incarnation string
	header      []byte
	firstLive   int64

	seq, position, updated int64
}

// readLog reads logColumns and checks what it read.
func readLog(st *sqlite3.Stmt) (log, error) {
	l := log{
		n: st.ColumnInt64(0), id: st.ColumnText(1), incarnation: st.ColumnText(2), header: st.ColumnBlob(3, []byte{}), firstLive: st.ColumnInt64(4),
		seq: st.ColumnInt64(6), position: st.ColumnInt64(7), updated: st.ColumnInt64(8),
	}
	switch {
	case st.ColumnInt64(5) != logSum(l.n, l.id, l.incarnation, l.header, l.firstLive):
		return l, &eventlog.CorruptError{ID: l.id, Reason: "its header does not have the checksum that it was stored with"}
	case st.ColumnType(9) == sqlite3.NULL:
		return l, &eventlog.CorruptError{ID: l.id, Reason: "its head is missing"}
	case st.ColumnInt64(9) != headSum(l.n, l.seq, l.position, l.updated):
		return l, &eventlog.CorruptError{ID: l.id, Seq: l.seq, Reason: "its head does not have the checksum that it was stored with"}
	}
	return l, nil
}

// is says whether a life means this log.
func (l *log) is(life eventlog.Life) error {
	if life.Incarnation != "" && life.Incarnation != l.incarnation {
		return &eventlog.IncarnationError{ID: l.id, Have: l.incarnation, Want: life.Incarnation}
	}
	return nil
}

func (l *log) life() eventlog.Life { return eventlog.Life{ID: l.id, Incarnation: l.incarnation} }

func (l *log) info() (eventlog.Info, error) {
	h, err := event.DecodeHeader(l.header)
	if err != nil {
		return eventlog.Info{}, &eventlog.CorruptError{ID: l.id, Reason: "its header cannot be read: " + err.Error()}
	}
	return eventlog.Info{
		Header: h, Incarnation: l.incarnation, Seq: l.seq, FirstLiveSeq: l.firstLive, Position: l.position, UpdatedAt: l.updated,
	}, nil
}
