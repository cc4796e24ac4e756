package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/internal/measure"
)

// Stats says how large a store is and what it has done since it was opened.
type Stats struct {
	// Path is the file of the database.
	Path       string
	Durability Durability
	// Logs and Events are what is there, Deleted how many logs are still to be swept from the disk.
	Logs, Events, Deleted int64
	// Position is the last commit position.
	Position int64
	// Bytes is the size of the database, Free how much of it is not in use and will be used again, WAL the size of the changes that are not in it yet.
	Bytes, Free, WAL int64
	// Changes were committed in Groups transactions, with Syncs syncs of either file.
	Changes, Groups, Syncs int64
	// GroupSizes are the changes of a transaction, GroupSeconds how long one took with its sync, SyncSeconds how long syncs took.
	GroupSizes, GroupSeconds, SyncSeconds measure.Distribution
}

// Stats looks at the store. The first time it counts the logs, which costs a look at each one's head; afterwards it costs the same whatever there is.
func (s *Store) Stats(ctx context.Context) (st Stats, err error) {
	err = s.reading(ctx, func(r *reader) error {
		q, err := r.c.prepare(`SELECT (SELECT count(*) FROM trash), (` + lastPosition + `),
			(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size), (SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size)`)
		if err != nil {
			return err
		}
		defer q.Close()
		_, err = first(q, func(q *sqlite3.Stmt) {
			st = Stats{
				Path: s.path, Durability: s.durability,
				Deleted: q.ColumnInt64(0), Position: q.ColumnInt64(1), Bytes: q.ColumnInt64(2), Free: q.ColumnInt64(3),
			}
		})
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	if st.Logs, st.Events, err = s.count(ctx); err != nil {
		return Stats{}, err
	}
	info, err := os.Stat(s.path + "-wal")
	switch {
	case err == nil:
		st.WAL = info.Size()
	case !errors.Is(err, fs.ErrNotExist):
		return Stats{}, dirError(s.dir, err)
	}
	st.Changes, st.Groups, st.Syncs = s.changes.Load(), s.groups.Load(), s.disk.syncs.Load()
	st.GroupSizes, st.GroupSeconds, st.SyncSeconds = s.groupSizes.Read(), s.groupSeconds.Read(), s.disk.syncSeconds.Read()
	return st, nil
}
