package sqlite

import (
	"fmt"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/internal/crashpoint"
)

const (
	// The files of a data directory. SQLite puts foldhost.db-wal and foldhost.db-shm beside the first.
	dbName      = "foldhost.db"
	lockName    = "foldhost.lock"
	reserveName = "foldhost.reserve"

	// applicationID stands in the header of the database, which tells ours from others: "Fold" in ASCII.
	applicationID = 0x466f6c64
)

// migrations bring a database from the version of their index to the next one; the first makes it. The version is SQLite's user_version, and the last
// of them is the format that this program knows. What has been released is never edited: add one.
var migrations = []string{
	`
-- id is the commit position, but for the first events of a log that was staged: see bulks.
CREATE TABLE events (
  id    INTEGER PRIMARY KEY,
  log   INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  type  INTEGER NOT NULL,
  time  INTEGER NOT NULL,
  data  BLOB NOT NULL,
  extra BLOB,
  sum   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_seq ON events (log, seq);
CREATE INDEX events_by_type ON events (log, type, seq);

CREATE TABLE types (
  n    INTEGER PRIMARY KEY,
  name BLOB NOT NULL UNIQUE
) STRICT;

-- n is never given twice.
CREATE TABLE logs (
  n           INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  incarnation TEXT NOT NULL,
  header      BLOB NOT NULL,
  first_live  INTEGER NOT NULL,
  sum         INTEGER NOT NULL
) STRICT;

-- Apart from logs, so that a commit to many logs changes few pages.
CREATE TABLE heads (
  log      INTEGER PRIMARY KEY,
  seq      INTEGER NOT NULL,
  position INTEGER NOT NULL,
  updated  INTEGER NOT NULL,
  sum      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX heads_by_position ON heads (position);

-- The first events of a staged log have the positions up to this one, whatever their ids.
CREATE TABLE bulks (
  position INTEGER PRIMARY KEY,
  log      INTEGER NOT NULL UNIQUE,
  events   INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
  log      INTEGER NOT NULL,
  key      BLOB NOT NULL,
  digest   BLOB NOT NULL,
  first    INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  position INTEGER NOT NULL,
  time     INTEGER NOT NULL,
  PRIMARY KEY (log, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_age ON keys (log, position);

CREATE TABLE rows (
  id   INTEGER PRIMARY KEY,
  log  INTEGER NOT NULL,
  key  TEXT NOT NULL,
  cut  INTEGER NOT NULL,
  seq  INTEGER NOT NULL,
  data BLOB NOT NULL,
  sum  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX rows_by_key ON rows (log, key);

-- Past rows.
CREATE TABLE past (
  id   INTEGER PRIMARY KEY,
  log  INTEGER NOT NULL,
  key  TEXT NOT NULL,
  cut  INTEGER NOT NULL,
  seq  INTEGER NOT NULL,
  data BLOB NOT NULL,
  sum  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX past_by_seq ON past (log, key, seq);

-- Logs whose content is still to be swept.
CREATE TABLE trash (
  log INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;
`,
	`
-- What a request was answered with; NULL where its commit tells.
ALTER TABLE keys ADD COLUMN answer BLOB;
DROP INDEX keys_by_age;
CREATE INDEX keys_by_age ON keys (log, time, position);
`,
}

// migrate brings a database to the newest version, each step with its version in one transaction. It refuses a newer one before it changes anything.
func migrate(c *conn, path string, steps []string) error {
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if know := int64(len(steps)); version > know {
		return &NewerError{Path: path, Have: version, Know: know}
	}
	for ; version < int64(len(steps)); version++ {
		crashpoint.Reach("migrate")
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT", steps[version], version+1)
		if err := c.Exec(script); err != nil {
			_ = c.Exec("ROLLBACK")
			return doing(fmt.Sprintf("bringing the database to format %d", version+1), err)
		}
	}
	return nil
}

// number gives the one number that a query answers.
func (c *conn) number(sql string) (n int64, err error) {
	st, err := c.prepare(sql)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	_, err = first(st, func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) })
	return n, err
}
