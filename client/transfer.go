package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// ImportOptions say how to take a log.
type ImportOptions struct {
	// ID is another id for the session than that of the log's header; empty keeps it.
	ID string
	// Strict forgives only a last line without newline; otherwise a torn tail is dropped with a warning.
	Strict bool
	// Zstd says that the log is compressed.
	Zstd bool
	// Key is an idempotency key, with which the same log may be sent again by the caller and is taken once. Empty sends none: the client itself cannot read the log twice.
	Key string
}

// Imported is a session that was imported, with what was dropped of its log.
type Imported struct {
	Session
	Warnings []string
}

// UnmarshalJSON reads what servers give.
func (i *Imported) UnmarshalJSON(text []byte) error {
	var more struct {
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(text, &more); err != nil {
		return err
	}
	i.Warnings = more.Warnings
	return i.Session.UnmarshalJSON(text)
}

// Import makes a session of a log in the interchange form, whole or not at all. The log is not held in memory. It is sent once, and not closed. Of an *Error Index says which event is
// refused; it is nil for the header.
func (c *Client) Import(ctx context.Context, log io.Reader, o ImportOptions) (i Imported, err error) {
	r := &request{doing: "import a log", method: http.MethodPost, path: "/v1/import", stream: log}
	r.head("Content-Type", "application/x-ndjson")
	if o.Zstd {
		r.head("Content-Encoding", "zstd")
	}
	if o.ID != "" {
		r.doing = fmt.Sprintf("import a log as session %q", o.ID)
		r.set("id", o.ID)
	}
	if o.Strict {
		r.set("strict", "true")
	}
	if o.Key != "" {
		r.head("Idempotency-Key", o.Key)
	}
	_, err = c.json(ctx, r, &i)
	return i, err
}

// ExportOptions say how a log is to be written.
type ExportOptions struct {
	// Plain writes one event a line, without packed rows.
	Plain bool
}

// Export writes the log of a session in the interchange form: the header, and the events that it has when the export begins. It is not held in memory. What an export that
// fails has written is a part: the error says so, and nothing in the text does.
func (c *Client) Export(ctx context.Context, id string, w io.Writer, o ExportOptions) error {
	r, err := onSession(http.MethodGet, "export session %q", id, "/export")
	if err != nil {
		return err
	}
	if o.Plain {
		r.set("pack", "false")
	}
	res, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	to := &blaming{w: w}
	if _, err := io.Copy(to, res.Body); err != nil {
		if to.err != nil {
			return fmt.Errorf("%s: writing it: %w", r.doing, to.err)
		}
		return &NetworkError{Doing: r.doing, Err: fmt.Errorf("reading the answer: %w", err)}
	}
	return nil
}

// blaming knows whether it was the writer that failed.
type blaming struct {
	w   io.Writer
	err error
}

func (b *blaming) Write(p []byte) (n int, err error) {
	n, b.err = b.w.Write(p)
	return n, b.err
}
