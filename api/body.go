package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/foldhost/foldhost/event"
)

// around is how many containers stand around the data of an event in a request: the body, its list, the event.
const around = 3

// firstRoom is how much room a body gets before any of it has come, at most: 64 KiB. Whoever says that more is to come may not mean it.
const firstRoom = 64 << 10

// maxFields is how many fields of a body are kept: some more than any has that are known, so that one of those that are is not, and refuses the body.
const maxFields = 32

// object is the body of a request: one JSON object, of fields that are known.
type object struct {
	raw    []byte
	fields map[string]json.RawMessage
}

// object reads the body, which may be missing altogether when optional, and refuses fields that are not known.
func (c *call) object(optional bool, known ...string) (*object, error) {
	o, err := c.open(optional)
	if err != nil {
		return nil, err
	}
	return o, o.only(known...)
}

// open reads the body as an object of whatever fields, and refuses what is not strictly JSON.
func (c *call) open(optional bool) (*object, error) {
	raw, err := c.body(optional)
	if err != nil {
		return nil, err
	}
	o := &object{raw: raw, fields: map[string]json.RawMessage{}}
	if len(raw) == 0 {
		return o, nil
	}
	if err := event.CheckNested(raw, "$", around); err != nil {
		return nil, bodyProblem(err)
	}
	if !event.Members(raw, func(key string, value json.RawMessage) bool {
		o.fields[key] = value
		return len(o.fields) <= maxFields
	}) {
		return nil, bodyInvalid("$", "the body must be a JSON object")
	}
	return o, nil
}

// only refuses fields that are not known.
func (o *object) only(known ...string) error {
	var names []string
	for name := range o.fields {
		if !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return unknownField("$"+event.PathKey(slices.Min(names)), known)
	}
	return nil
}

// has says whether a field is there.
func (o *object) has(name string) bool { return o.fields[name] != nil }

// integer reads a field, nil when it is missing.
func (o *object) integer(name string) (*int64, error) {
	if !o.has(name) {
		return nil, nil
	}
	n, ok := event.Integer(o.fields[name])
	if !ok {
		return nil, bodyInvalid("$."+name, name+" must be an integer of at most 2^53-1 in size")
	}
	return &n, nil
}

// seq reads a field that is one of a log, nil when it is missing.
func (o *object) seq(name string) (*int64, error) {
	n, err := o.integer(name)
	if n != nil && *n < 0 {
		return nil, bodyInvalid("$."+name, fmt.Sprintf("%s is %d: a seq counts from 0", name, *n))
	}
	return n, err
}

// flag reads a field that is true or false, false when it is missing.
func (o *object) flag(name string) (bool, error) {
	switch text := string(o.fields[name]); text {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	}
	return false, bodyInvalid("$."+name, name+" must be true or false")
}

// each calls f with the elements of a field that must be an array, one after the other, up to the first that f refuses. There are none when the field is missing.
func (o *object) each(name string, f func(i int, element json.RawMessage) error) (err error) {
	if !o.has(name) {
		return nil
	}
	i := 0
	if !event.Elements(o.fields[name], func(e json.RawMessage) bool {
		err = f(i, e)
		i++
		return err == nil
	}) {
		return bodyInvalid("$."+name, name+" must be an array")
	}
	return err
}

// names reads a field that must be an array of strings, nil when it is missing. It gives each of them once.
func (o *object) names(name string) ([]string, error) {
	if !o.has(name) {
		return nil, nil
	}
	all := names{list: []string{}}
	err := o.each(name, func(i int, raw json.RawMessage) error {
		one, ok := event.String(raw)
		if !ok {
			return bodyInvalid(fmt.Sprintf("$.%s[%d]", name, i), "it must be a string")
		}
		if !all.add(one) {
			return tooManyNames(name, "$."+name)
		}
		return nil
	})
	return all.list, err
}

// body reads the bytes of the body.
func (c *call) body(optional bool) ([]byte, error) {
	limit := c.api.o.MaxBodyBytes
	if c.r.ContentLength > limit {
		return nil, tooLarge(c.r.ContentLength, limit, fmt.Sprintf("the body has %d bytes and the limit is %d", c.r.ContentLength, limit))
	}
	var read bytes.Buffer
	read.Grow(int(min(max(c.r.ContentLength, 0), firstRoom)) + bytes.MinRead)
	_, err := read.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, limit)) // Which has to come in time; see bound.
	raw := read.Bytes()
	if err == nil {
		c.whole = true
		c.conn.SetReadDeadline(time.Time{}) // What listens for the end of the connection from now on waits as long as the work takes.
	}
	if _, much := errors.AsType[*http.MaxBytesError](err); much {
		return nil, tooLarge(limit+1, limit, fmt.Sprintf("the body has more than %d bytes, which is the limit", limit))
	}
	if err != nil {
		return nil, bodyInvalid("", c.brokenOff(err))
	}
	if len(raw) == 0 && optional && c.r.Header.Get("Content-Type") == "" {
		return nil, nil
	}
	if err := c.contentType("application/json"); err != nil {
		return nil, err
	}
	if len(raw) == 0 && optional {
		return nil, nil
	}
	return raw, nil
}

// brokenOff says why a body has no end. What the network says of it names addresses, and is of no use to the sender.
func (c *call) brokenOff(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Sprintf("the body did not come in time: it has %v", c.api.o.BodyTimeout)
	}
	return "the body broke off"
}

func tooLarge(size, limit int64, detail string) *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, Size: size, Limit: limit, Detail: detail + ": send less at once"}
}

// contentType refuses everything but one type, which no browser sends to strangers without asking, plain or in one of the codings.
func (c *call) contentType(want string, codings ...string) error {
	given := c.r.Header.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	coding := c.r.Header.Get("Content-Encoding")
	coded := slices.ContainsFunc(append(codings, "", "identity"), func(one string) bool { return strings.EqualFold(one, coding) })
	if err == nil && kind == want && (charset == "" || strings.EqualFold(charset, "utf-8")) && coded {
		return nil
	}
	detail := fmt.Sprintf("the body is %q", given)
	if coding != "" {
		detail += fmt.Sprintf(", encoded as %q", coding)
	}
	how := "without a Content-Encoding"
	if len(codings) > 0 {
		how += ", or with " + listing(codings)
	}
	return &Problem{Status: http.StatusUnsupportedMediaType, Code: CodeContentType, Detail: fmt.Sprintf("%s: send Content-Type: %s in UTF-8, %s", detail, want, how)}
}

// bodyProblem says what is wrong with the JSON of a body. That it is JSON at all, and says each thing once, is a matter of the request; numbers and
// depth that no log carries are one of the event that has them.
func bodyProblem(err error) error {
	e, ok := errors.AsType[*event.Error](err)
	if !ok {
		return err
	}
	switch e.Rule {
	case "negative-zero", "number-range", "depth":
		if below(e.Path, "$.arguments") {
			return &Problem{Status: http.StatusUnprocessableEntity, Code: CodeArgumentsInvalid, Path: e.Path, Detail: e.Reason}
		}
		if index, path, in := inEvent(e.Path); in {
			return &Problem{Status: http.StatusUnprocessableEntity, Code: CodeEventInvalid, Index: &index, Reason: string(e.Code), Path: path, Detail: e.Reason}
		}
	}
	return bodyInvalid(e.Path, e.Reason)
}

// inEvent takes a path apart that leads into the data of an event: $.data… of a single one, $.events[3].data… of a list, $.message… of a compaction.
func inEvent(path string) (index int64, within string, ok bool) {
	if rest, list := strings.CutPrefix(path, "$.events["); list {
		n, err := fmt.Sscanf(rest, "%d]", &index)
		if n != 1 || err != nil {
			return 0, "", false
		}
		_, rest, _ = strings.Cut(rest, "]")
		path = "$" + rest
	}
	for _, root := range []string{"$.data", "$.message"} {
		if below(path, root) {
			return index, path, true
		}
	}
	return 0, "", false
}

// below says whether a path is that of root or leads into it.
func below(path, root string) bool {
	rest, within := strings.CutPrefix(path, root)
	return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
