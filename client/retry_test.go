package client_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
)

// breaking does what it is given and then loses the answer, so many times.
func breaking(to http.RoundTripper, times int) (http.RoundTripper, *atomic.Int64) {
	var sent atomic.Int64
	return carrier(func(r *http.Request) (*http.Response, error) {
		res, err := to.RoundTrip(r)
		if n := sent.Add(1); err == nil && n <= int64(times) {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			return nil, io.ErrUnexpectedEOF
		}
		return res, err
	}), &sent
}

// Given answers that are lost, an append whose key the client made up is in the log once, and one without a key is not sent again.
func TestAnAppendWhoseAnswerIsLostIsNotDoubled(t *testing.T) {
	s := serve(t, nil, api.Options{})
	fill(t, s.client(), "s", 0)
	through, sent := breaking(client.InProcess(s.api), 3)
	c := dial(t, client.Options{URL: s.url, HTTP: &http.Client{Transport: through}})
	a, err := c.Append(bounded(t), "s", []client.Item{step(1)}, client.AppendOptions{ExpectedSeq: new(int64(0)), Projections: true})
	if err != nil || a.Seq != 1 || sent.Load() != 4 || string(a.Projections.Values["steps"]) != "1" {
		t.Fatalf("after %d tries: %+v %v", sent.Load(), a, err)
	}
	through, sent = breaking(client.InProcess(s.api), 3)
	c = dial(t, client.Options{URL: s.url, HTTP: &http.Client{Transport: through}})
	if _, err := c.Append(bounded(t), "s", []client.Item{step(2)}, client.AppendOptions{Once: client.Once{NoKey: true}}); err == nil || sent.Load() != 1 {
		t.Errorf("without a key, after %d tries: %v", sent.Load(), err)
	}
	if now, err := c.Get(bounded(t), "s"); err != nil || now.Seq != 2 {
		t.Errorf("the log has %d events, %v", now.Seq, err)
	}
}

// A certificate that is not trusted will not be trusted a moment later: calls and streams end with it at once.
func TestACertificateThatIsNotTrustedIsNotTriedAgain(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	var sent atomic.Int64
	c := dial(t, client.Options{URL: s.URL, HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		sent.Add(1)
		return http.DefaultTransport.RoundTrip(r)
	})}})
	var stranger x509.UnknownAuthorityError
	if _, err := c.Get(bounded(t), "s"); !errors.As(err, &stranger) || sent.Load() != 1 {
		t.Errorf("after %d tries: %v", sent.Load(), err)
	}
	for _, err := range c.Stream(bounded(t), "s", client.StreamOptions{}) {
		if !errors.As(err, &stranger) || sent.Load() != 2 {
			t.Errorf("a stream, after %d tries: %v", sent.Load(), err)
		}
	}
}

// Given answers that are lost, a session is made once, and forked and recovered once.
func TestWhatIsMadeIsMadeOnce(t *testing.T) {
	s := serve(t, nil, api.Options{})
	losing := func() *client.Client {
		through, _ := breaking(client.InProcess(s.api), 2)
		return dial(t, client.Options{URL: s.url, HTTP: &http.Client{Transport: through}})
	}
	ctx := bounded(t)
	made, _, err := losing().Create(ctx, client.NewSession{Seed: []client.Item{{Type: "turn/start", Data: map[string]int{"turn": 1}}, step(1)}})
	if err != nil {
		t.Fatal(err)
	}
	recovered, err := losing().Recover(ctx, made.Header.ID, client.Once{})
	if err != nil || len(recovered.Events) != 1 {
		t.Errorf("%+v %v", recovered, err)
	}
	child, err := losing().Fork(ctx, made.Header.ID, client.Fork{})
	if err != nil || child.Header.ParentSession != made.Header.ID {
		t.Errorf("%+v %v", child, err)
	}
	if all, err := s.client().List(ctx, client.ListQuery{}); err != nil || len(all.Sessions) != 2 {
		t.Errorf("there are %d sessions, %v", len(all.Sessions), err)
	}
}

// What is sent again, by call and by what went wrong.
func TestWhatIsSentAgain(t *testing.T) {
	answer := func(status int, body string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}
	}
	fails := func(err error) func() (*http.Response, error) {
		return func() (*http.Response, error) { return nil, err }
	}
	calls := map[string]func(context.Context, *client.Client) error{
		"get": func(ctx context.Context, c *client.Client) error { _, err := c.Get(ctx, "s"); return err },
		"append": func(ctx context.Context, c *client.Client) error {
			_, err := c.Append(ctx, "s", nil, client.AppendOptions{})
			return err
		},
		"append without a key": func(ctx context.Context, c *client.Client) error {
			_, err := c.Append(ctx, "s", nil, client.AppendOptions{Once: client.Once{NoKey: true}})
			return err
		},
		"create by id": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Create(ctx, client.NewSession{ID: "s"})
			return err
		},
		"create": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Create(ctx, client.NewSession{})
			return err
		},
		"delete": func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, "s") },
		"fork": func(ctx context.Context, c *client.Client) error {
			_, err := c.Fork(ctx, "s", client.Fork{})
			return err
		},
		"recover": func(ctx context.Context, c *client.Client) error {
			_, err := c.Recover(ctx, "s", client.Once{})
			return err
		},
		"call a tool": func(ctx context.Context, c *client.Client) error {
			_, err := c.CallTool(ctx, "s", "tool", nil, client.Once{})
			return err
		},
	}
	safe := map[string]bool{"get": true, "append": true, "create by id": true, "create": true, "fork": true, "recover": true, "call a tool": true}
	for name, c := range map[string]struct {
		answer func() (*http.Response, error)
		// again, and also what is not safe.
		again, all bool
	}{
		"a broken connection":    {fails(io.ErrUnexpectedEOF), true, false},
		"no connection":          {fails(&net.OpError{Op: "dial", Err: errors.New("refused")}), true, true},
		"an overloaded server":   {answer(503, `{"code":"overloaded"}`), true, false},
		"a proxy without server": {answer(502, `<html>`), true, false},
		"a proxy that waited":    {answer(504, `<html>`), true, false},
		"a read-only store":      {answer(503, `{"code":"store-readonly"}`), false, false},
		"a seq not reached":      {answer(504, `{"code":"not-reached"}`), false, false},
		"a full disk":            {answer(507, `{"code":"disk-full"}`), false, false},
		"a failure":              {answer(500, `{"code":"internal"}`), false, false},
		"a refusal":              {answer(422, `{"code":"event-invalid"}`), false, false},
		"nobody there":           {answer(404, `{"code":"session-not-found"}`), false, false},
		// A tool may have begun before its plugin ended.
		"a plugin that ended": {answer(503, `{"code":"plugin-unavailable"}`), true, false},
	} {
		for call, do := range calls {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				began := time.Now()
				cl := dial(t, client.Options{URL: "http://x", Tries: 4, HTTP: &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) {
					sent++
					return c.answer()
				})}})
				want := 1
				if c.again && (safe[call] || c.all) && !(call == "call a tool" && name == "a plugin that ended") {
					want = 4
				}
				if err := do(t.Context(), cl); err == nil || sent != want {
					t.Errorf("%s, %s: sent %d times, want %d: %v", call, name, sent, want, err)
				}
				if waited := time.Since(began); want == 1 && waited != 0 || want == 4 && (waited < 350*time.Millisecond || waited > 700*time.Millisecond) {
					t.Errorf("%s, %s: it waited %v in all", call, name, waited)
				}
			})
		}
	}
}

// What a server asks for is waited, and a context ends waiting.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := dial(t, client.Options{URL: "http://x", HTTP: &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"2"}}, Body: http.NoBody}, nil
		})}})
		began := time.Now()
		if _, err := c.Get(t.Context(), "s"); err == nil || sent != 6 || time.Since(began) != 10*time.Second {
			t.Errorf("sent %d times within %v: %v", sent, time.Since(began), err)
		}
	})
}
