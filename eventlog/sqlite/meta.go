package sqlite

import (
	"crypto/rand"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog/internal/paging"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// Keys of table meta.
const (
	metaStoreID = "storeId"
	metaBoot    = "boot"
	// metaRunning is the durability of the process that has the store open, empty after a clean end.
	metaRunning = "running"
	// metaPosition is a position that was given, for those whose log is gone.
	metaPosition = "position"
	// metaLog is the last number that a log was given.
	metaLog = "log"
)

// positionLeap is how far positions leap after an end that may have lost some: more than can be committed between two syncs, which
// come every few thousand pages, and few enough that 2^53 lasts for 500 million such ends.
const positionLeap = 1 << 24

func (c *conn) setMeta(key string, value any) error {
	st, err := c.prepare("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")
	if err != nil {
		return err
	}
	defer st.Close()
	return run(st, key, value)
}

func (c *conn) metaNumber(key string) (n int64, err error) {
	err = c.meta(key, func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) })
	return n, err
}

func (c *conn) metaText(key string) (s string, err error) {
	err = c.meta(key, func(st *sqlite3.Stmt) { s = st.ColumnText(0) })
	return s, err
}

func (c *conn) meta(key string, read func(*sqlite3.Stmt)) error {
	st, err := c.prepare("SELECT value FROM meta WHERE key = ?")
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = first(st, read, key)
	return err
}

// start counts a start and says what the last end was like, in one transaction. A change that was relaxed and did not end cleanly may have lost what
// was seen: positions and rows of before mean nothing then.
func (c *conn) start(d Durability) (boot int64, ended string, err error) {
	err = c.transaction(func() error {
		if boot, err = c.metaNumber(metaBoot); err != nil {
			return err
		}
		if ended, err = c.metaText(metaRunning); err != nil {
			return err
		}
		if ended == Relaxed.String() {
			if err := c.renew(); err != nil {
				return err
			}
		}
		boot++
		if err := c.setMeta(metaBoot, boot); err != nil {
			return err
		}
		crashpoint.Reach("start")
		return c.setMeta(metaRunning, d.String())
	})
	return boot, ended, err
}

// renew gives every log a new incarnation, drops the rows, and lets positions leap. It runs inside a transaction.
func (c *conn) renew() error {
	type log struct {
		n, firstLive, sum int64
		id, incarnation   string
		header            []byte
	}
	list, err := c.prepare("SELECT n, id, incarnation, header, first_live, sum FROM logs WHERE n > ? ORDER BY n LIMIT 1000")
	if err != nil {
		return err
	}
	defer list.Close()
	update, err := c.prepare("UPDATE logs SET incarnation = ?2, sum = ?3 WHERE n = ?1")
	if err != nil {
		return err
	}
	defer update.Close()
	for last := int64(-1); ; {
		var logs []log
		err := each(list, func(st *sqlite3.Stmt) (bool, error) {
			logs = append(logs, log{
				n: st.ColumnInt64(0), id: st.ColumnText(1), incarnation: st.ColumnText(2), header: st.ColumnBlob(3, []byte{}),
				firstLive: st.ColumnInt64(4), sum: st.ColumnInt64(5),
			})
			return true, nil
		}, last)
		if err != nil {
			return err
		}
		for _, l := range logs {
			last = l.n
			if l.sum != logSum(l.n, l.id, l.incarnation, l.header, l.firstLive) {
				continue // damaged, and stays known to be
			}
			incarnation := paging.Incarnation()
			if err := run(update, l.n, incarnation, logSum(l.n, l.id, incarnation, l.header, l.firstLive)); err != nil {
				return err
			}
		}
		if len(logs) == 0 {
			break
		}
	}
	for _, table := range []string{"rows", "past"} {
		if err := c.exec("DELETE FROM " + table); err != nil {
			return err
		}
	}
	position, err := c.number(lastPosition)
	if err != nil {
		return err
	}
	return c.setMeta(metaPosition, position+positionLeap)
}

// lastPosition asks for the highest position that is known to have been given. Each of its parts is one look at the end of an index.
const lastPosition = `SELECT max(
	ifnull((SELECT value FROM meta WHERE key = 'position'), 0),
	ifnull((SELECT max(id) FROM events), 0),
	ifnull((SELECT max(position) FROM heads), 0),
	ifnull((SELECT max(position) FROM bulks), 0))`

// transaction carries out changes, all or nothing.
func (c *conn) transaction(f func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.exec("COMMIT")
	}
	if err != nil {
		_ = c.Exec("ROLLBACK")
	}
	return err
}

func newStoreID() string { return rand.Text() }
