package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
)

// What a handler does is seen as over a network.
func TestInProcess(t *testing.T) {
	do := func(t *testing.T, ctx context.Context, h http.HandlerFunc) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://in.process/a%2Fb?c=d", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		return (&http.Client{Transport: client.InProcess(h)}).Do(r)
	}
	t.Run("an answer", func(t *testing.T) {
		res, err := do(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			w.Header().Set("X", "before")
			w.WriteHeader(http.StatusTeapot)
			w.Header().Set("X", "after")
			io.WriteString(w, r.Host+" "+r.RequestURI+" "+r.URL.EscapedPath()+" "+string(got))
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != http.StatusTeapot || res.Header.Get("X") != "before" || string(text) != "in.process /a%2Fb?c=d /a%2Fb body" {
			t.Errorf("%d %v %s %v", res.StatusCode, res.Header, text, err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		res, err := do(t, t.Context(), func(http.ResponseWriter, *http.Request) {})
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || len(text) != 0 {
			t.Error(text, err)
		}
		res.Body.Close()
	})
	t.Run("an answer that is cut off", func(t *testing.T) {
		res, err := do(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a part")
			panic(http.ErrAbortHandler)
		})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(text) != "a part" {
			t.Errorf("%q %v", text, err)
		}
		res.Body.Close()
	})
	t.Run("a panic before the answer", func(t *testing.T) {
		if _, err := do(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic("it") }); err == nil {
			t.Error("it answers")
		}
	})
	t.Run("a reader that leaves", func(t *testing.T) {
		ended := make(chan error, 1)
		res, err := do(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			_, err := w.Write([]byte("too late"))
			ended <- err
		})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if err := <-ended; err == nil {
			t.Error("the handler writes on")
		}
	})
	t.Run("a reader that takes nothing", func(t *testing.T) {
		ended := make(chan error, 1)
		res, err := do(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
			conn := http.NewResponseController(w)
			conn.SetWriteDeadline(time.Now())
			_, err := w.Write([]byte("nobody reads this"))
			ended <- err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the handler hears %v", err)
		}
		res.Body.Close()
	})
	t.Run("a context that ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		res, err := do(t, ctx, func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("reading gives %v", err)
		}
		res.Body.Close()
		<-ended
		cancel()
		if _, err := do(t, ctx, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }); !errors.Is(err, context.Canceled) {
			t.Errorf("a request of an ended context gives %v", err)
		}
	})
}

// A body that stands still holds nobody: neither a handler that has waited long enough, nor one whose request is over. Where closing it does not end a read of it, only what reads it stays.
func TestInProcessABodyThatStandsStill(t *testing.T) {
	type body struct {
		io.Reader
		io.Closer
	}
	for name, closes := range map[string]bool{"one that can be closed": true, "one that cannot": false} {
		t.Run(name, func(t *testing.T) {
			send := func(ctx context.Context, h http.HandlerFunc) (*http.Response, error) {
				from, to := io.Pipe()
				t.Cleanup(func() { to.Close() })
				given := body{from, from}
				if !closes {
					given.Closer = io.NopCloser(nil)
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://in.process/", given)
				if err != nil {
					t.Fatal(err)
				}
				go io.WriteString(to, "a part")
				return (&http.Client{Transport: client.InProcess(h)}).Do(r)
			}
			res, err := send(t.Context(), func(w http.ResponseWriter, r *http.Request) {
				conn := http.NewResponseController(w)
				part := make([]byte, 6)
				if _, err := io.ReadFull(r.Body, part); err != nil || string(part) != "a part" {
					t.Errorf("%q %v", part, err)
				}
				if err := conn.SetReadDeadline(time.Now()); err != nil {
					t.Error(err)
				}
				_, err := r.Body.Read(part)
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the handler hears %v", err)
				}
				w.WriteHeader(http.StatusRequestTimeout)
			})
			if err != nil || res.StatusCode != http.StatusRequestTimeout {
				t.Fatal(res, err)
			}
			res.Body.Close()

			ctx, cancel := context.WithCancel(t.Context())
			ended, answered := make(chan error), make(chan struct{})
			go func() {
				defer close(answered)
				_, err := send(ctx, func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.CopyN(io.Discard, r.Body, 6)
					cancel()
					if err == nil {
						_, err = r.Body.Read(make([]byte, 1))
					}
					ended <- err
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the request gives %v", err)
				}
			}()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the handler hears %v", err)
			}
			<-answered
		})
	}
}

// The same through a server that waits for its requests when it is closed.
func TestInProcessAnImportThatStandsStillIsNotWaitedFor(t *testing.T) {
	s := serve(t, nil, api.Options{})
	from, to := io.Pipe()
	defer to.Close()
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() {
		io.WriteString(to, `{"type":"session","version":0,"id":"s","createdAt":1}`+"\n")
		close(begun)
		<-ctx.Done()
	}()
	go func() { <-begun; cancel() }()
	if _, err := s.inProcess().Import(ctx, io.MultiReader(from), client.ImportOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it gives %v", err)
	}
	s.close()
}
