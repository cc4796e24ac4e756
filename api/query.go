package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query is what stands behind the question mark. The first thing that is wrong with it is kept in err, for one look at the end.
type query struct {
	values url.Values
	err    error
}

// query reads the parameters, of which only those are known.
func (c *call) query(known ...string) *query {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.fail("the query cannot be read: %v", err)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				q.fail("there is no parameter %q: there are none here", name)
			}
			q.fail("there is no parameter %q: parameters are %s", name, listing(known))
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	q.keep(bodyInvalid("", fmt.Sprintf(format, args...)))
}

func (q *query) keep(p *Problem) {
	if q.err == nil {
		q.err = p
	}
}

func (q *query) has(name string) bool { return len(q.values[name]) > 0 }

// text gives a parameter that may stand once.
func (q *query) text(name string) string {
	if len(q.values[name]) > 1 {
		q.fail("the parameter %s stands more than once", name)
	}
	return q.values.Get(name)
}

// integer gives a parameter within bounds, otherwise when it is missing.
func (q *query) integer(name string, otherwise, least, most int64) int64 {
	if !q.has(name) {
		return otherwise
	}
	n, err := strconv.ParseInt(q.text(name), 10, 64)
	if err != nil || n < least || n > most {
		q.fail("%s is %q: it must be an integer from %d to %d", name, q.text(name), least, most)
		return otherwise
	}
	return n
}

// flag gives a parameter that is true or false; standing there alone is true.
func (q *query) flag(name string, otherwise bool) bool {
	if !q.has(name) {
		return otherwise
	}
	switch q.text(name) {
	case "", "true":
		return true
	case "false":
		return false
	}
	q.fail("%s is %q: it must be true or false", name, q.text(name))
	return otherwise
}

// list gives the elements of a parameter, separated by commas, each once; nil when it is missing, empty and not nil when it names none. "*" is all, as if it were missing.
func (q *query) list(name string) []string {
	if !q.has(name) {
		return nil
	}
	all := names{list: []string{}}
	for _, text := range q.values[name] {
		for element := range strings.SplitSeq(text, ",") {
			switch element {
			case "":
			case "*":
				return nil
			default:
				if !all.add(element) {
					q.keep(tooManyNames("the parameter "+name, ""))
					return all.list
				}
			}
		}
	}
	return all.list
}

// duration gives a time: a number of milliseconds, or a number with its unit, such as 5s.
func (q *query) duration(name string, otherwise, most time.Duration) time.Duration {
	if !q.has(name) {
		return otherwise
	}
	text := q.text(name)
	d, err := time.ParseDuration(text)
	if ms, number := strconv.ParseInt(text, 10, 32); number == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < 0 || d > most {
		q.fail("%s is %q: it must be a number of milliseconds, or a time such as 500ms or 5s, of at most %v", name, text, most)
	}
	return d
}
