package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"
)

// routes are the calls.
func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(*call) error{
		"POST /v1/sessions":                   (*call).createSession,
		"GET /v1/sessions":                    (*call).listSessions,
		"GET /v1/sessions/{id}":               (*call).getSession,
		"DELETE /v1/sessions/{id}":            (*call).deleteSession,
		"POST /v1/sessions/{id}/detach":       (*call).detachSession,
		"POST /v1/sessions/{id}/events":       (*call).appendEvents,
		"GET /v1/sessions/{id}/events":        (*call).readEvents,
		"GET /v1/sessions/{id}/history":       (*call).readHistory,
		"GET /v1/sessions/{id}/projections":   (*call).readProjections,
		"GET /v1/sessions/{id}/surface":       (*call).readSurface,
		"GET /v1/sessions/{id}/messages":      (*call).readMessages,
		"POST /v1/sessions/{id}/fork":         (*call).forkSession,
		"POST /v1/sessions/{id}/compact":      (*call).compactSession,
		"POST /v1/sessions/{id}/recover":      (*call).recoverSession,
		"POST /v1/sessions/{id}/retry":        (*call).retrySession,
		"POST /v1/sessions/{id}/verify":       (*call).verifySession,
		"GET /v1/sessions/{id}/export":        (*call).exportLog,
		"POST /v1/import":                     (*call).importLog,
		"GET /v1/sessions/{id}/stream":        (*call).streamSession,
		"POST /v1/sessions/{id}/tools/{name}": (*call).callTool,
		"GET /v1/tools":                       (*call).listTools,
		"GET /v1/projections":                 (*call).listProjections,
		"GET /v1/plugins":                     (*call).listPlugins,
		"POST /v1/plugins/{name}/restart":     (*call).restartPlugin,
		"GET /v1/store":                       (*call).storeStats,
		"POST /v1/store/check":                (*call).checkStore,
		"POST /v1/store/backup":               (*call).backupStore,
		"GET /healthz":                        (*call).health,
		"GET /readyz":                         (*call).ready,
	} {
		mux.Handle(pattern, a.handler(f))
	}
	return mux
}

// methods are those that some call takes. A GET answers HEAD as well.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.enter() {
		a.handler(func(*call) error { return stopping() }).ServeHTTP(w, r)
		return
	}
	defer a.requests.Done()
	// A path is taken as it stands. The mux would redirect one that is not in its shortest form, and the id of a session may look like a part of one.
	plain := r.URL.EscapedPath() == path.Clean(r.URL.EscapedPath())
	if _, pattern := a.mux.Handler(r); plain && pattern != "" {
		a.mux.ServeHTTP(w, r)
		return
	}
	a.handler(func(*call) error {
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
