package client_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
)

// A redirect makes a GET of a POST, and the answer of a GET looks like that of an append: nothing would have been appended, and nobody told.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		led := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/there/") {
				led++
				io.WriteString(w, `{"seq":1,"events":[{"seq":0,"time":1}],"ready":true}`)
				return
			}
			http.Redirect(w, r, "/there"+r.URL.Path, status)
		}))
		c := dial(t, client.Options{URL: s.URL, Tries: 1})
		_, err := c.Append(bounded(t), "s", []client.Item{{Type: event.TurnStart, Data: map[string]any{"turn": 1}}}, client.AppendOptions{})
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != status || e.Code != "" || !strings.Contains(e.Detail, `"/there/v1/sessions/s/events"`) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := c.Ready(bounded(t)); err == nil {
			t.Errorf("%d: it is ready", status)
		}
		for _, err := range c.Stream(bounded(t), "s", client.StreamOptions{}) {
			if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != status {
				t.Errorf("%d: a stream says %v", status, err)
			}
		}
		if led > 0 {
			t.Errorf("%d: it was followed %d times", status, led)
		}
		s.Close()
	}
}

// endless is a body without an end.
type endless struct{ read *int64 }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	*e.read += int64(len(p))
	return len(p), nil
}

func (endless) Close() error { return nil }

// says is a client of a server that answers everything with a body of a kind.
func says(t *testing.T, kind string, body io.ReadCloser, o client.Options) *client.Client {
	o.URL, o.HTTP = "http://x", &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: body}, nil
	})}
	return dial(t, o)
}

func isAnswerError(err error) bool {
	_, ok := errors.AsType[*client.AnswerError](err)
	return ok
}

func TestAnAnswerWithoutEndIsGivenUp(t *testing.T) {
	var read int64
	c := says(t, "application/json", endless{&read}, client.Options{MaxAnswerBytes: 1 << 20})
	if _, err := c.Get(bounded(t), "s"); !isAnswerError(err) {
		t.Errorf("it says %v", err)
	}
	if _, err := c.Ready(bounded(t)); !isAnswerError(err) {
		t.Errorf("whether it is ready: %v", err)
	}
	if read > 8<<20 {
		t.Errorf("%d bytes were read", read)
	}
}

// A page that says that all is well is no stream that has nothing to say, and no empty log.
func TestAPageIsNoStream(t *testing.T) {
	page := func() io.ReadCloser { return io.NopCloser(bytes.NewReader([]byte("\n\n"))) }
	for _, kind := range []string{"text/html", ""} {
		n := 0
		for _, err := range says(t, kind, page(), client.Options{}).Stream(bounded(t), "s", client.StreamOptions{}) {
			if n++; !isAnswerError(err) {
				t.Errorf("a stream of %q says %v", kind, err)
			}
		}
		session := true // Which is asked for first.
		c := dial(t, client.Options{URL: "http://x", HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			if session {
				session = false
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(""))}, nil
		})}})
		for _, err := range c.Events(bounded(t), "s", client.EventsQuery{}) {
			if n++; !isAnswerError(err) {
				t.Errorf("a log of %q says %v", kind, err)
			}
		}
		if n != 2 {
			t.Errorf("%d answers of %q are errors", n, kind)
		}
	}
}

// A server with TLS says to requests without that they are that, in plain text, and the error says what to write in place of it.
func TestAServerWithTLSIsTold(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c, err := client.New(client.Options{URL: strings.Replace(server.URL, "https:", "http:", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "begin the URL with https://") {
		t.Errorf("%v", err)
	}
}
