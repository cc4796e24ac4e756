package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/foldhost/foldhost/api"
)

// contract holds what goes over the wire in the tests of this package against the description: what is answered must be described, to the last field, and what is described must have
// been answered by the end. mu guards what was seen.
type contract struct {
	mux        *http.ServeMux
	operations map[string]*operation
	compiler   *jsonschema.Compiler

	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	missing  map[string]bool
	breaches []string
}

// operation is a call of the description, by "GET /path".
type operation struct {
	name, pointer string
	query         map[string]bool
	responses     map[string]map[string]any
	body          map[string]any
	security      []any
}

// anywhere are the statuses that depend on who asks and on the state of the server, not on the call. Each has to be seen somewhere.
var anywhere = []string{"400", "401", "403", "413", "415", "500", "503", "507"}

// described is the one of all tests.
var described = sync.OnceValue(newContract)

func newContract() *contract {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Description()))
	if err != nil {
		panic(fmt.Sprintf("the description is no JSON: %v", err))
	}
	c := &contract{mux: http.NewServeMux(), operations: map[string]*operation{}, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, missing: map[string]bool{}}
	root := doc.(map[string]any)
	for _, status := range anywhere {
		c.missing["somewhere "+status] = true
	}
	for path, item := range root["paths"].(map[string]any) {
		for method, one := range item.(map[string]any) {
			op := read(root, strings.ToUpper(method)+" "+path, "/paths/"+escape(path)+"/"+method, one.(map[string]any))
			c.operations[op.name] = op
			c.mux.Handle(op.name, http.NotFoundHandler())
			c.expect(op)
		}
	}
	closeObjects(root["components"].(map[string]any)["schemas"])
	closeObjects(root["paths"])
	if err := c.compiler.AddResource(document, doc); err != nil {
		panic(err)
	}
	return c
}

const document = "https://foldhost.invalid/openapi.json"

func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// follow resolves a reference within the document, and says where that leads.
func follow(root map[string]any, at string, one map[string]any) (string, map[string]any) {
	ref, ok := one["$ref"].(string)
	if !ok {
		return at, one
	}
	var to any = root
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		to = to.(map[string]any)[step]
	}
	return strings.TrimPrefix(ref, "#"), to.(map[string]any)
}

func read(root map[string]any, name, pointer string, one map[string]any) *operation {
	op := &operation{name: name, pointer: pointer, query: map[string]bool{}, responses: map[string]map[string]any{}}
	op.security, _ = one["security"].([]any)
	params, _ := one["parameters"].([]any)
	for _, p := range params {
		if _, p := follow(root, "", p.(map[string]any)); p["in"] == "query" {
			op.query[p["name"].(string)] = true
		}
	}
	if body, ok := one["requestBody"].(map[string]any); ok {
		op.body = body["content"].(map[string]any)
	}
	for status, r := range one["responses"].(map[string]any) {
		at, r := follow(root, pointer+"/responses/"+status, r.(map[string]any))
		content, _ := r["content"].(map[string]any)
		op.responses[status] = map[string]any{}
		for kind, c := range content {
			c := c.(map[string]any)
			place := at + "/content/" + escape(kind) + "/schema"
			if _, lines := c["x-item-schema"]; lines {
				place = at + "/content/" + escape(kind) + "/x-item-schema"
			}
			op.responses[status][kind] = place
		}
	}
	return op
}

// expect notes what has to be seen of an operation.
func (c *contract) expect(op *operation) {
	for status, kinds := range op.responses {
		if slices.Contains(anywhere, status) {
			continue
		}
		if len(kinds) == 0 {
			c.missing[op.name+" answers "+status] = true
		}
		for kind := range kinds {
			c.missing[op.name+" answers "+status+" "+kind] = true
		}
	}
	if op.name == "GET /readyz" { // Of which this is no failure.
		c.missing[op.name+" answers 503 application/json"] = true
	}
	for name := range op.query {
		c.missing[op.name+" takes ?"+name] = true
	}
	for kind, one := range op.body {
		c.missing[op.name+" takes "+kind] = true
		for _, field := range fieldsOf(one.(map[string]any)["schema"]) {
			c.missing[op.name+" takes "+kind+" with "+field] = true
		}
	}
}

func fieldsOf(schema any) (names []string) {
	s := schema.(map[string]any)
	if props, ok := s["properties"].(map[string]any); ok {
		names = slices.Collect(maps.Keys(props))
	}
	if any, ok := s["oneOf"].([]any); ok {
		for _, one := range any {
			names = append(names, fieldsOf(one)...)
		}
	}
	return names
}

// closeObjects makes schemas refuse fields that they do not name, which is not what they say to clients: these have to bear new ones.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, named := v["properties"].(map[string]any); named && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, one := range v {
			closeObjects(one)
		}
	case []any:
		for _, one := range v {
			closeObjects(one)
		}
	}
}

// check holds JSON against a schema of the document.
func (c *contract) check(pointer string, text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.schemas[pointer]
	if s == nil {
		var err error
		if s, err = c.compiler.Compile(document + "#" + pointer); err != nil {
			return err
		}
		c.schemas[pointer] = s
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func (c *contract) see(what ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range what {
		delete(c.missing, one)
	}
}

func (c *contract) breach(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.breaches) < 20 {
		c.breaches = append(c.breaches, fmt.Sprintf(format, args...))
	}
}

// shownMost is how much of a body is looked at. What is longer is looked at by its kind alone.
const shownMost = 1 << 20

// exchange is a request with its answer.
type exchange struct {
	http.ResponseWriter
	status       int
	sent, posted bytes.Buffer
	broken       bool
}

func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) WriteHeader(status int) {
	x.status = cmp.Or(x.status, status)
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	x.status = cmp.Or(x.status, http.StatusOK)
	if x.sent.Len() <= shownMost {
		x.sent.Write(p)
	}
	return x.ResponseWriter.Write(p)
}

// posting copies what is read of a body.
type posting struct {
	io.ReadCloser
	to *bytes.Buffer
}

func (p *posting) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if p.to.Len() <= shownMost {
		p.to.Write(b[:n])
	}
	return n, err
}

// watch makes a handler of one that holds every exchange against the description.
func (c *contract) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w, broken: true}
		method, target, kind, query := r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.URL.Query()
		look := *r // as it came: the API routes another
		r.Body = &posting{r.Body, &x.posted}
		defer func() { c.hold(x, &look, method, target, kind, query) }()
		h.ServeHTTP(x, r)
		x.broken = false
	})
}

func (c *contract) hold(x *exchange, r *http.Request, method, target, kind string, query map[string][]string) {
	if method == http.MethodOptions || x.status == 0 || x.broken { // A preflight, and answers that were cut off on purpose.
		return
	}
	_, pattern := c.mux.Handler(r)
	if r.URL.EscapedPath() != path.Clean(r.URL.EscapedPath()) {
		pattern = "" // The mux of the test redirects what the API does not.
	}
	op := c.operations[pattern]
	status, answer := strconv.Itoa(x.status), x.Header().Get("Content-Type")
	answer, _, _ = mime.ParseMediaType(answer)
	if op == nil {
		if x.status < 400 {
			c.breach("%s %s is answered by %s and not described", method, target, status)
		}
		return
	}
	places, known := op.responses[status]
	if !known {
		c.breach("%s (%s) answers %s %s, which is not described", op.name, target, status, x.sent.Bytes())
		return
	}
	seen := []string{op.name + " answers " + status, "somewhere " + status}
	if x.sent.Len() > 0 && x.sent.Len() <= shownMost {
		place, known := places[answer].(string)
		if !known {
			c.breach("%s (%s) answers %s with a %s, which is not described", op.name, target, status, answer)
			return
		}
		seen = append(seen, op.name+" answers "+status+" "+answer)
		if err := c.answer(place, answer, x.sent.Bytes()); err != nil {
			c.breach("%s (%s) answers %s with %.500s: %v", op.name, target, status, x.sent.Bytes(), err)
			return
		}
	}
	if x.status < 300 && method != http.MethodHead {
		seen = append(seen, c.request(op, target, kind, x.posted.Bytes(), query)...)
	}
	c.see(seen...)
}

// answer holds the body of an answer against its schema.
func (c *contract) answer(place, kind string, text []byte) error {
	switch {
	case strings.HasSuffix(place, "/x-item-schema"):
		for line := range bytes.Lines(text) {
			if kind == "text/event-stream" {
				var data bool
				if line, data = bytes.CutPrefix(line, []byte("data: ")); !data {
					continue
				}
			}
			if !bytes.HasSuffix(line, []byte("\n")) { // Its reader left in the middle.
				break
			}
			if err := c.check(place, line); err != nil {
				return err
			}
		}
		return nil
	case kind == "application/x-ndjson", kind == "application/octet-stream", kind == "text/plain":
		return nil
	}
	return c.check(place, text)
}

// request holds a request that was taken against its description, and gives what was seen.
func (c *contract) request(op *operation, target, kind string, body []byte, query map[string][]string) (seen []string) {
	for name := range query {
		if !op.query[name] {
			c.breach("%s takes %s, in which %s is not described", op.name, target, name)
		}
		seen = append(seen, op.name+" takes ?"+name)
	}
	if len(body) == 0 || len(body) > shownMost {
		return seen
	}
	kind, _, _ = mime.ParseMediaType(kind)
	if op.body[kind] == nil {
		c.breach("%s takes a body of %s, which is not described", op.name, kind)
		return seen
	}
	seen = append(seen, op.name+" takes "+kind)
	if kind != "application/json" {
		return seen
	}
	if err := c.check(op.pointer+"/requestBody/content/"+escape(kind)+"/schema", body); err != nil {
		c.breach("%s takes %.500s: %v", op.name, body, err)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil {
		for name := range fields {
			seen = append(seen, op.name+" takes "+kind+" with "+name)
		}
	}
	return seen
}

// contracted runs the tests and then says what they have shown of the description.
type contracted struct{ m *testing.M }

func (t contracted) Run() int {
	code := t.m.Run()
	c := described()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.breaches {
		fmt.Fprintln(os.Stderr, "openapi.json:", b)
	}
	if !whole() {
		c.missing = nil
	}
	for _, what := range slices.Sorted(maps.Keys(c.missing)) {
		fmt.Fprintln(os.Stderr, "openapi.json says, and no test has seen:", what)
	}
	if len(c.breaches)+len(c.missing) > 0 {
		return max(code, 1)
	}
	return code
}

// whole says that every test ran, in full.
func whole() bool {
	return !testing.Short() && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" &&
		flag.Lookup("test.fuzz").Value.String() == ""
}

// Every call that is served is described, with the scope that it asks for, and the other way round.
func TestTheDescriptionHasTheCalls(t *testing.T) {
	got := map[string]string{}
	for name, op := range described().operations {
		got[name] = "open"
		if len(op.security) > 0 {
			got[name] = op.security[0].(map[string]any)["token"].([]any)[0].(string)
		}
	}
	want := api.Routes()
	for name, scope := range want {
		if got[name] != scope {
			t.Errorf("%s: the description says scope %q, and it asks for %q", name, got[name], scope)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is described and not served", name)
		}
	}
}

// Schemas that no answer of a test was held against compile too.
func TestTheSchemasOfTheDescriptionCompile(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(api.Description(), &doc); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Components.Schemas {
		if _, err := described().compiler.Compile(document + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	s := serve(t)
	if got := s.get("/v1/openapi.json"); got.status != http.StatusOK || strings.TrimSpace(got.body) != strings.TrimSpace(string(api.Description())) {
		t.Fatalf("%d, %d bytes", got.status, len(got.body))
	}
	s.get("/v1/openapi.json?pretty=true").problem(http.StatusBadRequest, "body-invalid")
}

// What the tests are watched by sees what it is there to see.
func TestTheContractIsKept(t *testing.T) {
	session := `{"header":{"version":0,"id":"s","createdAt":1},"seq":0,"firstLiveSeq":0,"incarnation":"x","live":true,"updatedAt":1}`
	type answer struct {
		name, method, path, body string
		status                   int
		kind, answer             string
		breaks                   bool
	}
	const plain, problem, sse = "application/json", "application/problem+json", "text/event-stream"
	for _, x := range []answer{
		{"as described", "GET", "/v1/sessions/s", "", 200, plain, session, false},
		{"a field more", "GET", "/v1/sessions/s", "", 200, plain, strings.Replace(session, "{", `{"more":1,`, 1), true},
		{"a field within more", "GET", "/v1/sessions/s", "", 200, plain, strings.Replace(session, `"id"`, `"more":1,"id"`, 1), true},
		{"a field less", "GET", "/v1/sessions/s", "", 200, plain, strings.Replace(session, `,"live":true`, "", 1), true},
		{"a wrong type", "GET", "/v1/sessions/s", "", 200, plain, strings.Replace(session, "true", `"true"`, 1), true},
		{"another kind", "GET", "/v1/sessions/s", "", 200, "text/plain", session, true},
		{"another status", "GET", "/v1/sessions/s", "", 201, plain, session, true},
		{"a problem", "GET", "/v1/sessions/s", "", 404, problem, `{"type":"about:blank","title":"Not Found","status":404,"code":"session-not-found","detail":"no"}`, false},
		{"a code of another status", "GET", "/v1/sessions/s", "", 404, problem, `{"type":"about:blank","title":"Not Found","status":404,"code":"disk-full","detail":"no"}`, true},
		{"a parameter more", "GET", "/v1/sessions/s?x=1", "", 200, plain, session, true},
		{"nothing of the description", "GET", "/v1/other", "", 200, plain, "{}", true},
		{"nothing that answers", "GET", "/v1/other", "", 404, problem, "{}", false},
		{"a frame", "GET", "/v1/sessions/s/stream", "", 200, sse, "event: session/deleted\ndata: {\"type\":\"session/deleted\",\"sessionId\":\"s\"}\n\n", false},
		{"another frame", "GET", "/v1/sessions/s/stream", "", 200, sse, "event: session/x\ndata: {\"type\":\"session/x\",\"sessionId\":\"s\"}\n\n", true},
		{"a body", "POST", "/v1/sessions/s/compact", `{"start":0,"end":1,"message":{}}`, 200, plain, `{"seq":1,"events":[]}`, false},
		{"a body with more", "POST", "/v1/sessions/s/compact", `{"start":0,"end":1,"message":{},"x":1}`, 200, plain, `{"seq":1,"events":[]}`, true},
	} {
		c := newContract()
		h := c.watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", x.kind)
			w.WriteHeader(x.status)
			io.WriteString(w, x.answer)
		}))
		r := httptest.NewRequest(x.method, x.path, strings.NewReader(x.body))
		r.Header.Set("Content-Type", plain)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if broken := len(c.breaches) > 0; broken != x.breaks {
			t.Errorf("%s: breaches %q", x.name, c.breaches)
		}
	}
	c := newContract()
	if all := len(c.missing); all < 140 {
		t.Errorf("only %d things have to be seen", all)
	}
	c.see("GET /v1/sessions answers 200 application/json")
	if c.missing["GET /v1/sessions answers 200 application/json"] || !c.missing["GET /v1/sessions takes ?limit"] {
		t.Error("what was seen is missing, or what was not is not")
	}
}
