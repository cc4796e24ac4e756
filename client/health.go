package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// Healthy says whether the process answers. It is asked once.
func (c *Client) Healthy(ctx context.Context) error {
	r := get("ask whether the server is alive", "/healthz")
	res, err := c.send(ctx, r)
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

// Readiness says whether the first start of every plugin has ended, and which do not serve.
type Readiness struct {
	Ready   bool      `json:"ready"`
	Missing []Missing `json:"missing"`
}

// Missing is a plugin that does not serve.
type Missing struct {
	Plugin string `json:"plugin"`
	State  string `json:"state"`
	// Presets are those that lack it where the default set does not.
	Presets []string `json:"presets,omitempty"`
	// Reason is told to those who may administer the server, since it may name files.
	Reason string `json:"reason,omitempty"`
}

// Ready asks once whether the server is ready. One that is not is no error.
func (c *Client) Ready(ctx context.Context) (ready Readiness, err error) {
	r := get("ask whether the server is ready", "/readyz")
	res, err := c.raw(ctx, r)
	if err != nil {
		return ready, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		return ready, errorOf(r.doing, res)
	}
	text, err := c.whole(r.doing, res)
	if err != nil {
		return ready, err
	}
	if err := json.Unmarshal(text, &ready); err != nil {
		return ready, &AnswerError{Doing: r.doing, Err: errors.New("it does not say whether it is ready")}
	}
	return ready, nil
}
