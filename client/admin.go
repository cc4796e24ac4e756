package client

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/foldhost/foldhost/event"
)

// StoreStats say how large a store is, and what it has done since it was opened.
type StoreStats struct {
	StoreID string `json:"storeId"`
	// Boot counts the starts.
	Boot int64  `json:"boot"`
	Path string `json:"path"`
	// Logs and Events are what is there, Deleted how many logs are still to be swept from the disk.
	Logs    int64 `json:"logs"`
	Events  int64 `json:"events"`
	Deleted int64 `json:"deleted"`
	// Position is the last commit position.
	Position int64 `json:"position"`
	// Bytes is the size of the database, Free how much of it is not in use, WAL the size of the changes that are not in it yet.
	Bytes int64 `json:"bytes"`
	Free  int64 `json:"free"`
	WAL   int64 `json:"wal"`
	// Changes were committed in Groups transactions, with Syncs syncs.
	Changes    int64  `json:"changes"`
	Groups     int64  `json:"groups"`
	Syncs      int64  `json:"syncs"`
	Durability string `json:"durability"`
}

// StoreStats looks at the store of the server.
func (c *Client) StoreStats(ctx context.Context) (s StoreStats, err error) {
	_, err = c.json(ctx, get("look at the store", "/v1/store"), &s)
	return s, err
}

// CheckReport is what a check of a store found.
type CheckReport struct {
	// Logs, Events and Rows were looked at.
	Logs     int64          `json:"logs"`
	Events   int64          `json:"events"`
	Rows     int64          `json:"rows"`
	Problems []StoreProblem `json:"problems"`
	// More counts the problems that are not listed.
	More int64 `json:"more"`
}

// StoreProblem is one thing that is wrong with a store. Session is empty where it is not known, Seq nil where it is not about an event.
type StoreProblem struct {
	Code    string `json:"code"`
	Session string `json:"session,omitempty"`
	Seq     *int64 `json:"seq,omitempty"`
	Detail  string `json:"detail"`
}

// CheckOptions say what else a check looks at.
type CheckOptions struct {
	// Pages has the engine check the structure of its file, which keeps changes in memory for so long.
	Pages bool
	// Values has every unit fold every session from zero, to compare with what is kept and served of it.
	Values bool
}

// CheckStore looks at everything in the store of the server, while it is in use, and repairs nothing. progress, if not nil, hears how far it is of about how much. Problems are no error.
func (c *Client) CheckStore(ctx context.Context, o CheckOptions, progress func(done, total int64)) (CheckReport, error) {
	var f fields
	if o.Pages {
		f.raw("pages", []byte("true"))
	}
	if o.Values {
		f.raw("values", []byte("true"))
	}
	r := post("check the store", "/v1/store/check", f.body())
	r.safe = true
	last, err := c.long(ctx, r, progress)
	if err == nil && last.Report == nil {
		err = &AnswerError{Doing: r.doing, Err: errors.New("it ends without a report")}
	}
	if err != nil {
		return CheckReport{}, err
	}
	return *last.Report, nil
}

// Backup is a copy of a store. Path is on the machine of the server.
type Backup struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// BackupStore copies the store of the server, while it is in use, to a new file on the server's machine, which appears when it is whole. path is absolute. progress, if not nil, hears how
// many of how many pages are copied. The error is a target-invalid where the file cannot be written.
func (c *Client) BackupStore(ctx context.Context, path string, progress func(done, total int64)) (Backup, error) {
	var f fields
	f.raw("path", event.AppendString(nil, path))
	r := post("back up the store", "/v1/store/backup", f.body())
	last, err := c.long(ctx, r, progress)
	if err == nil && last.Backup == nil {
		err = &AnswerError{Doing: r.doing, Err: errors.New("it ends without a file")}
	}
	if err != nil {
		return Backup{}, err
	}
	return *last.Backup, nil
}

// step is a line of an answer that takes long.
type step struct {
	Done    *int64       `json:"done"`
	Total   int64        `json:"total"`
	Report  *CheckReport `json:"report"`
	Backup  *Backup      `json:"backup"`
	Problem *problem     `json:"problem"`
}

// long reads an answer that says how far it is. It gives the last line.
func (c *Client) long(ctx context.Context, r *request, progress func(done, total int64)) (last step, err error) {
	r.head("Accept", "application/x-ndjson")
	res, err := c.open(ctx, r)
	if err != nil {
		return last, err
	}
	err = c.eachLine(r.doing, res.Body, func(line []byte) error {
		last = step{}
		if err := json.Unmarshal(line, &last); err != nil {
			return &AnswerError{Doing: r.doing, Err: err}
		}
		if last.Problem != nil {
			return last.Problem.error(r.doing)
		}
		if last.Done != nil && progress != nil {
			progress(*last.Done, last.Total)
		}
		return nil
	})
	return last, err
}
