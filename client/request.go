package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/event"
)

// request is one call of the API.
type request struct {
	// doing is what errors say.
	doing, method string
	// path is below the base, its parts escaped.
	path   string
	query  url.Values
	header http.Header
	// body is JSON, and nil for none; stream is a body of the caller's, which can be sent only once and is not closed.
	body   []byte
	stream io.Reader
	// safe says that sending it twice is as good as once.
	safe bool
	// final is a code after which it is not sent again, although it is one of those that pass.
	final Code
}

func get(doing, path string) *request {
	return &request{doing: doing, method: http.MethodGet, path: path, safe: true}
}

func post(doing, path string, body []byte) *request {
	return &request{doing: doing, method: http.MethodPost, path: path, body: body}
}

// set adds a parameter of the address.
func (r *request) set(name, value string) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set(name, value)
}

func (r *request) number(name string, n int64) { r.set(name, strconv.FormatInt(n, 10)) }

// list adds a list, unless it is nil, which is everything.
func (r *request) list(name string, list []string) {
	if list != nil {
		r.set(name, strings.Join(list, ","))
	}
}

func (r *request) head(name, value string) {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
}

// sessionPath is the path of a session, and of what is below it. The id is checked here, since one such as ".." would lead elsewhere.
func sessionPath(doing, id, below string) (string, error) {
	if err := event.CheckID(id); err != nil {
		return "", fmt.Errorf("%s: %w", doing, err)
	}
	return "/v1/sessions/" + url.PathEscape(id) + below, nil
}

// segment is a name as a part of a path. It is checked here, since one such as ".." would lead elsewhere.
func segment(doing, name string) (string, error) {
	if strings.Trim(name, ".") == "" {
		return "", &NameError{Doing: doing, Name: name}
	}
	return url.PathEscape(name), nil
}

// raw sends a request once, whatever the answer, whose body has to be closed.
func (c *Client) raw(ctx context.Context, r *request) (*http.Response, error) {
	at := c.base.JoinPath(r.path)
	at.RawQuery = r.query.Encode()
	body := r.stream
	switch _, closes := body.(io.Closer); {
	case r.body != nil:
		body = bytes.NewReader(r.body)
	case closes:
		body = io.NopCloser(body) // What is in memory closes nothing, and stays what it is: its length is known.
	}
	out, err := http.NewRequestWithContext(ctx, r.method, at.String(), body)
	if err != nil {
		return nil, &NetworkError{Doing: r.doing, Err: err}
	}
	for name, values := range r.header {
		out.Header[name] = values
	}
	if r.body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	if c.o.Token != "" {
		out.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	res, err := c.http.Do(out)
	if err != nil {
		return nil, &NetworkError{Doing: r.doing, Err: err}
	}
	return res, nil
}

// send sends a request once. The answer is a success, and its body has to be closed.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	res, err := c.raw(ctx, r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		return nil, errorOf(r.doing, res)
	}
	// A page that says that all is well is not to be taken for a stream that has nothing to say, or a log without events.
	if want := r.header.Get("Accept"); want != "" {
		if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != want {
			defer res.Body.Close()
			return nil, &AnswerError{Doing: r.doing, Err: fmt.Errorf("it is %q and not %s", res.Header.Get("Content-Type"), want)}
		}
	}
	return res, nil
}

// whole reads the body of an answer.
func (c *Client) whole(doing string, res *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(c.o.MaxAnswerBytes)+1))
	switch {
	case err != nil:
		return nil, &NetworkError{Doing: doing, Err: fmt.Errorf("reading the answer: %w", err)}
	case len(body) > c.o.MaxAnswerBytes:
		return nil, &AnswerError{Doing: doing, Err: fmt.Errorf("it is longer than the %d bytes of Options.MaxAnswerBytes", c.o.MaxAnswerBytes)}
	}
	return body, nil
}

// tries is how often a request may be sent at most.
func (c *Client) tries(r *request) int {
	if r.stream != nil {
		return 1
	}
	return c.o.Tries
}

// mayPass says whether it may be sent again after an error. What is not safe may be where the server cannot have done it.
func (r *request) mayPass(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok && r.final != "" && e.Code == r.final {
		return false
	}
	return passing(err) && (r.safe || unsent(err))
}

// open is send, again when that is safe.
func (c *Client) open(ctx context.Context, r *request) (res *http.Response, err error) {
	err = again(ctx, c.tries(r), r.mayPass, func() (err error) {
		res, err = c.send(ctx, r)
		return err
	})
	return res, err
}

// call gives the whole body of an answer, and its status.
func (c *Client) call(ctx context.Context, r *request) (body []byte, status int, err error) {
	err = again(ctx, c.tries(r), r.mayPass, func() error {
		res, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if body, err = c.whole(r.doing, res); err != nil {
			return err
		}
		status = res.StatusCode
		return nil
	})
	return body, status, err
}

// json reads the body of an answer into a value.
func (c *Client) json(ctx context.Context, r *request, into any) (status int, err error) {
	body, status, err := c.call(ctx, r)
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return status, &AnswerError{Doing: r.doing, Err: err}
	}
	return status, nil
}

// fields makes the body of a request, field by field.
type fields []byte

func (f *fields) raw(name string, value []byte) {
	open := byte(',')
	if len(*f) == 0 {
		open = '{'
	}
	*f = append(event.AppendString(append(*f, open), name), ':')
	*f = append(*f, value...)
}

func (f *fields) text(name, value string) {
	if value != "" {
		f.raw(name, event.AppendString(nil, value))
	}
}

func (f *fields) number(name string, value *int64) {
	if value != nil {
		f.raw(name, strconv.AppendInt(nil, *value, 10))
	}
}

// body is the object.
func (f *fields) body() []byte {
	if len(*f) == 0 {
		return []byte("{}")
	}
	return append(*f, '}')
}
