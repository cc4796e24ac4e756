package api

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// access is who may do what. It is not changed once it is made.
type access struct {
	// tokens is nil where everybody may do everything.
	tokens *Tokens
	// origins are those beside the server's own whose pages may call it; names those of hosts that the server goes by.
	origins []string
	names   map[string]bool
}

func newAccess(o *Options) *access {
	a := &access{tokens: o.Tokens, names: map[string]bool{"localhost": true}}
	for _, name := range o.Names {
		a.names[hostOf(name)] = true
	}
	for _, origin := range o.AllowedOrigins {
		a.origins = append(a.origins, strings.ToLower(origin))
		// Its pages are trusted as they are, so it may also be the name under which a proxy passes requests on.
		if u, err := url.Parse(origin); err == nil && u.Host != "" {
			a.names[hostOf(u.Host)] = true
		}
	}
	return a
}

// admit refuses who may not make the call, before anything of it is read.
func (c *call) admit(need scope) error {
	c.held = anonymous
	if err := c.checkHost(); err != nil {
		return err
	}
	if err := c.checkOrigin(); err != nil {
		return err
	}
	tokens := c.api.access.tokens
	if tokens == nil {
		c.held = everything
	} else {
		c.held = tokens.held(bearer(c.r))
	}
	switch {
	case c.held.has(need):
		return nil
	case c.held.has(scopeKnown):
		return &Problem{Status: http.StatusForbidden, Code: CodeForbidden, challenge: fmt.Sprintf(`Bearer realm="foldhost", error="insufficient_scope", scope=%q`, need),
			Detail: fmt.Sprintf("the token does not have the scope %s, which this call needs", need)}
	case c.r.Header.Get("Authorization") == "":
		return &Problem{Status: http.StatusUnauthorized, Code: CodeUnauthenticated, challenge: `Bearer realm="foldhost"`,
			Detail: "the server asks for a token: send Authorization: Bearer TOKEN"}
	}
	return &Problem{Status: http.StatusUnauthorized, Code: CodeUnauthenticated, challenge: `Bearer realm="foldhost", error="invalid_token"`,
		Detail: "the server does not know this token: send Authorization: Bearer TOKEN with one of its token file"}
}

// bearer is the token of a request, empty for none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// checkHost refuses a request for a name that is none of the server's: its sender looked up a name of a stranger's, whose answer was this machine, and has a page of that
// stranger's read the answers (DNS rebinding). An address was never looked up; but one that others reach does not lead to a server on loopback. Requests that came by no network have
// nobody on the way.
func (c *call) checkHost() error {
	local, ok := c.r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	host := hostOf(c.r.Host)
	if !ok || host == "" || c.api.access.names[host] {
		return nil // No browser leaves the name out.
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.Unmap().IsLoopback() || !local.IP.IsLoopback()) {
		return nil
	}
	return &Problem{Status: http.StatusForbidden, Code: CodeForbidden,
		Detail: "the Host of the request is none that this server goes by: use the address that it listens on, or, behind a proxy, add the proxy's origin to allowedOrigins"}
}

// hostOf is the host of host:port, as it is compared.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// checkOrigin refuses a request of a page that is neither the server's nor allowed, and tells browsers that the others may read the answer.
func (c *call) checkOrigin() error {
	origin := strings.ToLower(c.r.Header.Get("Origin"))
	if origin == "" {
		return c.checkSite()
	}
	if slices.Contains(c.api.access.origins, origin) {
		h := c.w.Header()
		h.Set("Access-Control-Allow-Origin", c.r.Header.Get("Origin"))
		h.Set("Access-Control-Expose-Headers", "Location, Retry-After, WWW-Authenticate")
		h.Set("Vary", "Origin")
		return nil
	}
	// The Host was checked, so a page from there is ours.
	if scheme, host, _ := strings.Cut(origin, "://"); (scheme == "http" || scheme == "https") && host == strings.ToLower(c.r.Host) {
		return nil
	}
	return &Problem{Status: http.StatusForbidden, Code: CodeForbidden, Detail: "pages of this origin may not call the server: add it to allowedOrigins to let them"}
}

// checkSite refuses what a page of a stranger's has its browser get without an Origin, as images and frames are. The page reads no answer, but where no token is asked for the call was made. Browsers
// say of each request from which site it comes: none is that of somebody who typed the address. Other programs say nothing.
func (c *call) checkSite() error {
	switch c.r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return &Problem{Status: http.StatusForbidden, Code: CodeForbidden,
			Detail: "a page of another origin may not have the server called like this: type the address, or use fetch in a page of one of allowedOrigins, without the mode no-cors"}
	}
	return nil
}

// isPreflight says that a browser asks whether a page may make a call. It sends no token with that.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight says what a page may send, which is what calls take.
func (c *call) preflight() error {
	h := c.w.Header()
	h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-Encoding, Idempotency-Key, Last-Event-ID")
	h.Set("Access-Control-Max-Age", "600") // 10 minutes: a change of allowedOrigins is soon seen.
	c.empty(http.StatusNoContent)
	return nil
}
