package sqlite

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// conn is one connection to the database. It is used by one goroutine at a time.
type conn struct{ *sqlite3.Conn }

// busyWait is how long a connection waits for another one. All connections are ours and short; only a foreign program that opened the database takes longer.
const busyWait = 5 * time.Second

// openConn opens a connection to an existing database through a disk. It never takes over the WAL when it is closed: the writer does
// that on purpose, and nothing is changed by an opening that failed.
func openConn(path string, d *disk, pragmas ...string) (*conn, error) {
	raw, err := sqlite3.OpenFlags(location(path, d.name), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, doing("opening "+path, err)
	}
	c := &conn{raw}
	err = func() error {
		if _, err := c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
			return doing("configuring the connection", err)
		}
		if err := c.BusyTimeout(busyWait); err != nil {
			return doing("configuring the connection", err)
		}
		for _, p := range append(pragmas, "temp_store=MEMORY", "mmap_size=0", "cell_size_check=ON") {
			if err := c.exec("PRAGMA " + p); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// location names the database as SQLite wants it. Files made beside it get its mode, as they hold the same.
func location(path, vfs string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/…
	}
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: "vfs=" + vfs + "&modeof=" + escape(path)}
	return u.String()
}

// close finalizes the statements and closes the connection.
func (c *conn) close() error {
	var stmts []*sqlite3.Stmt
	for s := range c.Stmts() {
		stmts = append(stmts, s)
	}
	for _, s := range stmts {
		_ = s.Close()
	}
	return doing("closing the database", c.Conn.Close())
}

func (c *conn) exec(sql string) error { return doing(sql, c.Exec(sql)) }

// prepare makes a statement that lives as long as the connection.
func (c *conn) prepare(sql string) (*sqlite3.Stmt, error) {
	st, tail, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err == nil && strings.TrimSpace(tail) != "" {
		err = errors.New("there is more than one statement")
	}
	return st, doing(sql, err)
}

// prepareAll makes the statements of a struct of pointers: keys point to where a statement goes.
func (c *conn) prepareAll(all map[**sqlite3.Stmt]string) error {
	for to, sql := range all {
		st, err := c.prepare(sql)
		if err != nil {
			return err
		}
		*to = st
	}
	return nil
}

// bind sets the parameters of a statement. A nil []byte is NULL.
func bind(st *sqlite3.Stmt, args []any) error {
	for i, arg := range args {
		var err error
		switch arg := arg.(type) {
		case int64:
			err = st.BindInt64(i+1, arg)
		case int:
			err = st.BindInt64(i+1, int64(arg))
		case string:
			err = st.BindText(i+1, arg)
		case []byte:
			if arg == nil {
				err = st.BindNull(i + 1)
			} else {
				err = st.BindBlob(i+1, arg)
			}
		default:
			err = fmt.Errorf("a %T cannot be bound", arg)
		}
		if err != nil {
			return doing(st.SQL(), err)
		}
	}
	return nil
}

// run carries out a statement that gives no rows.
func run(st *sqlite3.Stmt, args ...any) error {
	if err := bind(st, args); err != nil {
		return err
	}
	return doing(st.SQL(), st.Exec())
}

// first reads the first row of an answer, if there is one.
func first(st *sqlite3.Stmt, read func(*sqlite3.Stmt), args ...any) (found bool, err error) {
	err = each(st, func(st *sqlite3.Stmt) (bool, error) {
		found = true
		read(st)
		return false, nil
	}, args...)
	return found, err
}

// each reads the rows of an answer until read says stop.
func each(st *sqlite3.Stmt, read func(*sqlite3.Stmt) (more bool, err error), args ...any) error {
	if err := bind(st, args); err != nil {
		return err
	}
	for st.Step() {
		more, err := read(st)
		if err == nil {
			err = doing(st.SQL(), st.Err())
		}
		if err != nil || !more {
			_ = st.Reset()
			return err
		}
	}
	err := st.Err()
	_ = st.Reset()
	return doing(st.SQL(), err)
}

// contained turns a panic of the engine, such as that it has no memory, into an error.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = doing("the database engine panicked", fmt.Errorf("%w: %v", errPanic, p))
		}
	}()
	return f()
}

var errPanic = errors.New("panic")
