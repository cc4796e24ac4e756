package client

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Options say which server to talk to. URL must be set.
type Options struct {
	// URL is where the server is, such as http://127.0.0.1:7420. A path in it stands before that of every call.
	URL string
	// Token goes with every request as a bearer token; empty sends none.
	Token string
	// HTTP sends the requests; give it no timeout, since streams last. nil is one of the client's own, with the proxies of the environment. Redirects are not followed, whatever it says of them:
	// they make a GET of a POST, whose answer looks like that of the POST.
	HTTP *http.Client
	// Tries is how often a request is sent at most when that is safe, the first time included; 0 is 6, which together last a few seconds, and 1 never sends again.
	Tries int
	// MaxFrameBytes bounds what is held of a stream or of a log that is read line by line: one frame, or one event; 0 is 64 MiB, sixteen of the
	// largest events that servers take by themselves.
	MaxFrameBytes int
	// MaxAnswerBytes bounds the answers that are read as a whole, which those of all other calls are; 0 is 256 MiB.
	MaxAnswerBytes int
}

// Client calls one server. Safe for concurrent use. A call lasts as long as its context lets it. A Client holds connections and nothing else; Close lets go of idle ones.
type Client struct {
	o    Options
	base *url.URL
	http *http.Client
	own  bool
}

// New makes a client. Nothing is sent. The error is about the options.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || !portOrNone(base.Port()) || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a server: it is like http://127.0.0.1:7420", o.URL)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	o.Tries = cmp.Or(o.Tries, 6)
	o.MaxFrameBytes = cmp.Or(o.MaxFrameBytes, 64<<20)
	o.MaxAnswerBytes = cmp.Or(o.MaxAnswerBytes, 256<<20)
	c := &Client{o: o, base: base, own: o.HTTP == nil}
	if c.own {
		c.http = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	} else {
		one := *o.HTTP
		c.http = &one
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// portOrNone says that a URL has a port that there can be, or leaves it out.
func portOrNone(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// URL is where the server is.
func (c *Client) URL() string { return c.base.String() }

// Close closes connections that are idle, unless they belong to an http.Client of the caller's. Calls under way go on; so may later ones.
func (c *Client) Close() {
	if c.own {
		c.http.CloseIdleConnections()
	}
}
