package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

// unread is an answer that nobody reads.
type unread struct {
	header http.Header
	status int
}

func (u *unread) Header() http.Header         { return u.header }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) WriteHeader(status int)      { u.status = status }

// BenchmarkAppend measures the handler of an append: no network, no disk, no unit.
func BenchmarkAppend(b *testing.B) {
	quiet := slog.New(slog.DiscardHandler)
	h, err := host.Open(host.Options{Store: memory.New(), Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	a := api.New(api.Options{Host: h, Logger: quiet})
	defer a.Close()
	if _, err := h.Sessions().Create(context.Background(), session.New{Header: event.Header{ID: "s"}}); err != nil {
		b.Fatal(err)
	}
	body := `{"type":"assistant/chunk","data":{"messageId":"m1","index":0,"text":"` + strings.Repeat("words ", 20) + `"}}`
	w := &unread{header: http.Header{}}
	r := httptest.NewRequest(http.MethodPost, "/v1/sessions/s/events", nil)
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = int64(len(body))
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		r.Body = io.NopCloser(strings.NewReader(body))
		if a.ServeHTTP(w, r); w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
}
