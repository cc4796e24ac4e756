package api

import (
	"context"
	"fmt"
	"net"
)

// ListenError: the address is not one to serve on. Nothing was opened.
type ListenError struct {
	Address, Reason string
	Err             error
}

func (e *ListenError) Error() string {
	msg := fmt.Sprintf("cannot listen on %s: %s", e.Address, e.Reason)
	if e.Err != nil {
		msg += fmt.Sprintf(" (%v)", e.Err)
	}
	return msg
}

func (e *ListenError) Unwrap() error { return e.Err }

// onlyLoopback is what to do about an address that others could reach.
const onlyLoopback = "others could reach it, and there are no tokens yet to tell who may: name a loopback address, such as 127.0.0.1:7420"

// CheckAddress refuses an address that others than this machine reach: whoever can connect can do everything. It opens nothing. The error is a *ListenError.
func CheckAddress(ctx context.Context, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return &ListenError{Address: address, Reason: "it must be host:port, such as 127.0.0.1:7420", Err: err}
	}
	if host == "" {
		return &ListenError{Address: address, Reason: "it is every address of this machine; " + onlyLoopback}
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return &ListenError{Address: address, Reason: "the name is not known", Err: err}
	}
	for _, ip := range ips {
		if !ip.IP.IsLoopback() {
			return &ListenError{Address: address, Reason: onlyLoopback}
		}
	}
	return nil
}

// Listen listens on an address that passes CheckAddress. The error is a *ListenError.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if err := CheckAddress(ctx, address); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &ListenError{Address: address, Reason: "choose another port, or end what listens there", Err: err}
	}
	// What the name meant to the one who listened is what counts.
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		l.Close()
		return nil, &ListenError{Address: address, Reason: onlyLoopback}
	}
	return l, nil
}
