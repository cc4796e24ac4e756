package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"
)

// route is a call: what it asks of its caller, and what it does.
type route struct {
	scope scope
	serve func(*call) error
}

// routes are the calls, by pattern.
func routes() map[string]route {
	return map[string]route{
		"POST /v1/sessions":                   {scopeAppend, (*call).createSession},
		"GET /v1/sessions":                    {scopeRead, (*call).listSessions},
		"GET /v1/sessions/{id}":               {scopeRead, (*call).getSession},
		"DELETE /v1/sessions/{id}":            {scopeAdmin, (*call).deleteSession},
		"POST /v1/sessions/{id}/detach":       {scopeAdmin, (*call).detachSession},
		"POST /v1/sessions/{id}/events":       {scopeAppend, (*call).appendEvents},
		"GET /v1/sessions/{id}/events":        {scopeRead, (*call).readEvents},
		"GET /v1/sessions/{id}/history":       {scopeRead, (*call).readHistory},
		"GET /v1/sessions/{id}/projections":   {scopeRead, (*call).readProjections},
		"GET /v1/sessions/{id}/surface":       {scopeRead, (*call).readSurface},
		"GET /v1/sessions/{id}/messages":      {scopeRead, (*call).readMessages},
		"POST /v1/sessions/{id}/fork":         {scopeAppend, (*call).forkSession},
		"POST /v1/sessions/{id}/compact":      {scopeAppend, (*call).compactSession},
		"POST /v1/sessions/{id}/recover":      {scopeAppend, (*call).recoverSession},
		"POST /v1/sessions/{id}/retry":        {scopeAdmin, (*call).retrySession},
		"POST /v1/sessions/{id}/verify":       {scopeAdmin, (*call).verifySession},
		"GET /v1/sessions/{id}/export":        {scopeRead, (*call).exportLog},
		"POST /v1/import":                     {scopeAppend, (*call).importLog},
		"GET /v1/sessions/{id}/stream":        {scopeRead, (*call).streamSession},
		"GET /v1/stream":                      {scopeRead, (*call).streamSessions},
		"POST /v1/stream":                     {scopeRead, (*call).streamListed},
		"POST /v1/sessions/{id}/tools/{name}": {scopeAppend, (*call).callTool},
		"GET /v1/tools":                       {scopeRead, (*call).listTools},
		"GET /v1/projections":                 {scopeRead, (*call).listProjections},
		"GET /v1/plugins":                     {scopeAdmin, (*call).listPlugins},
		"POST /v1/plugins/{name}/restart":     {scopeAdmin, (*call).restartPlugin},
		"GET /v1/openapi.json":                {scopeKnown, (*call).describe},
		"GET /v1/store":                       {scopeAdmin, (*call).storeStats},
		"POST /v1/store/check":                {scopeAdmin, (*call).checkStore},
		"POST /v1/store/backup":               {scopeAdmin, (*call).backupStore},
		"GET /metrics":                        {scopeAdmin, (*call).metrics},
		"GET /debug/pprof":                    {scopeAdmin, (*call).listProfiles},
		"GET /debug/pprof/{profile}":          {scopeAdmin, (*call).profile},
		"GET /healthz":                        {scopeOpen, (*call).health},
		"GET /readyz":                         {scopeOpen, (*call).ready},
	}
}

// mount makes a handler of the calls.
func (a *API) mount() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, r := range routes() {
		_, path, _ := strings.Cut(pattern, " ")
		mux.Handle(pattern, a.handler(path, r.scope, r.serve))
	}
	return mux
}

// methods are those that some call takes. A GET answers HEAD as well.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.enter() {
		a.handler("", scopeOpen, func(*call) error { return stopping() }).ServeHTTP(w, r)
		return
	}
	defer a.requests.Done()
	if isPreflight(r) {
		a.handler("", scopeOpen, (*call).preflight).ServeHTTP(w, r)
		return
	}
	// A path is taken as it stands. The mux would redirect one that is not in its shortest form, and the id of a session may look like a part of one.
	plain := r.URL.EscapedPath() == path.Clean(r.URL.EscapedPath())
	if _, pattern := a.mux.Handler(r); plain && pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	a.handler("", scopeKnown, func(*call) error {
		if allowed := a.allowed(r); plain && len(allowed) > 0 {
			return &Problem{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed, allow: strings.Join(allowed, ", "),
				Detail: fmt.Sprintf("%s is not for this path; it takes %s", r.Method, listing(allowed))}
		}
		return &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: fmt.Sprintf("there is nothing at %s", r.URL.Path)}
	}).ServeHTTP(w, r)
}

// allowed are the methods that the path of a request takes.
func (a *API) allowed(r *http.Request) (allowed []string) {
	other := *r
	for _, other.Method = range methods {
		if _, pattern := a.mux.Handler(&other); pattern != "" {
			allowed = append(allowed, other.Method)
		}
	}
	return allowed
}
