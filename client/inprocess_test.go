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
