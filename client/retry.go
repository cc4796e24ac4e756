package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// Between two tries: a start of a server takes a few hundred milliseconds, and nobody wants to hear of its end later than some seconds after it. maxWait also bounds what a server may ask for.
const (
	firstWait = 100 * time.Millisecond
	maxWait   = 5 * time.Second
)

// backoff is how long to wait after so many failures in a row, from 1 on: twice as long each time, and somewhere between half of that and all of it, so that many clients of
// one server do not come back at once. dice is from 0 to 1.
func backoff(failures int, dice float64) time.Duration {
	wait := maxWait
	if failures < 7 { // 2^6 × 100 ms are above the most
		wait = min(maxWait, firstWait<<(failures-1))
	}
	return wait/2 + time.Duration(dice*float64(wait/2))
}

// passing says whether an error may be gone the next time, whatever is asked for.
func passing(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusTooManyRequests, http.StatusBadGateway:
			return true
		case http.StatusServiceUnavailable:
			return e.Code != CodeStoreReadOnly
		case http.StatusGatewayTimeout:
			return e.Code == ""
		}
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false // It will be the same certificate; who follows a session should hear of it.
	}
	_, ok := errors.AsType[*NetworkError](err)
	return ok
}

// unsent says that the server cannot have seen the request, since there was no connection.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// again runs try until it succeeds, fails with what mayPass says is for good, or has been run tries times.
func again(ctx context.Context, tries int, mayPass func(error) bool, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n >= tries || ctx.Err() != nil || !mayPass(err) {
			return err
		}
		if pause(ctx, waitAfter(err, n)) != nil {
			return err
		}
	}
}

// waitAfter is how long to wait after an error that passes.
func waitAfter(err error, failures int) time.Duration {
	wait := backoff(failures, rand.Float64())
	if e, ok := errors.AsType[*Error](err); ok {
		wait = max(wait, e.after)
	}
	return wait
}

// pause waits. The error is ctx's.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
