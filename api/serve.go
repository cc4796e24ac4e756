package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout is how long a request line and its headers may take: they fit into a few packets.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection may stay without a request.
	idleTimeout = 2 * time.Minute
	// maxHeaderBytes: 64 KiB. Ours need one; the default of a megabyte for each connection is for cookies.
	maxHeaderBytes = 64 << 10
	// grace is how long requests under way may take once the server stops. Appends take milliseconds; what takes longer is a body or an answer that hardly moves.
	grace = 10 * time.Second
)

// Serve serves what connects to l, which it closes, until ctx ends. Then it stops in the order in which nothing is lost: no new connections, streams and reads that wait are
// ended, and requests under way are finished, those that hardly move after a grace of ten seconds cut off. The error is that of a listener that failed.
func (a *API) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           a,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(a.o.Logger.Handler(), slog.LevelDebug),
	}
	if n := a.o.MaxConnections; n > 0 {
		b := newBounded(l, n, a.o.Logger)
		l, server.ConnState = b, b.state
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	a.Stop()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if server.Shutdown(late) != nil {
		server.Close()
	}
	<-failed
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
