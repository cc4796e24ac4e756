package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// ListenError: the address is not one to serve on. Nothing was opened.
type ListenError struct {
	Address, Reason string
	// Malformed says that it is no address at all, on whatever machine.
	Malformed bool
	Err       error
}

func (e *ListenError) Error() string {
	msg := fmt.Sprintf("cannot listen on %s: %s", e.Address, e.Reason)
	if e.Err != nil {
		cause := e.Err
		if op, ok := errors.AsType[*net.OpError](cause); ok {
			cause = op.Err // Without the address once more.
		}
		msg += fmt.Sprintf(" (%v)", cause)
	}
	return msg
}

func (e *ListenError) Unwrap() error { return e.Err }

// onlyLoopback is what to do about an address that others could reach.
const onlyLoopback = "others could reach it, and there are no tokens to tell who may: name a token file, or a loopback address, such as 127.0.0.1:7420"

// CheckAddress refuses an address that others than this machine reach, unless there are tokens: without them whoever can connect can do everything. It opens nothing. The error is
// a *ListenError.
func CheckAddress(ctx context.Context, address string, tokens *Tokens) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return &ListenError{Address: address, Malformed: true, Reason: "it must be host:port, such as 127.0.0.1:7420 or [::1]:7420"}
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return &ListenError{Address: address, Malformed: true, Reason: fmt.Sprintf("%q is no port: it must be a number from 1 to 65535, such as 7420, or 0 for one that is free", port)}
	}
	if host == "" {
		if tokens == nil {
			return &ListenError{Address: address, Reason: "it is every address of this machine; " + onlyLoopback}
		}
		return nil
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return &ListenError{Address: address, Reason: "the name is not known", Err: err}
	}
	for _, ip := range ips {
		if !ip.IP.IsLoopback() && tokens == nil {
			return &ListenError{Address: address, Reason: onlyLoopback}
		}
	}
	return nil
}

// Listen listens on an address that passes CheckAddress. The error is a *ListenError.
func Listen(ctx context.Context, address string, tokens *Tokens) (net.Listener, error) {
	if err := CheckAddress(ctx, address, tokens); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &ListenError{Address: address, Reason: listenRemedy(err), Err: err}
	}
	// What the name meant to the one who listened is what counts.
	if !Loopback(l.Addr()) && tokens == nil {
		l.Close()
		return nil, &ListenError{Address: address, Reason: onlyLoopback}
	}
	return l, nil
}

// listenRemedy says what to do about an address that the system does not give. Where it has other numbers for its errors than these, as on Windows, the likeliest is said.
func listenRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address: name one of its own"
	case errors.Is(err, syscall.EACCES):
		return "whoever runs the server may not have this port: choose another, from 1024 on as a rule"
	}
	return "choose another port, or end what listens there"
}

// Loopback says that only this machine reaches an address.
func Loopback(a net.Addr) bool {
	at, ok := a.(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// HostPort is where this machine reaches what listens on an address: of every address it is the one of loopback.
func HostPort(a net.Addr) string {
	at, ok := a.(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port)) // Every address is one of IPv4 as well, wherever there is IPv4.
}
