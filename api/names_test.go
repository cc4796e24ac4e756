package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// A list has 1,000 names at most, in addresses and bodies, and one that stands in it again is one of them.
func TestNamesAreBounded(t *testing.T) {
	s := serve(t)
	s.create("s")
	s.step("s", 1)
	list := func(n int, name func(i int) string) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = name(i)
		}
		return names
	}
	fill := func(i int) string { return fmt.Sprintf("t%d", i) }
	enough, over := list(1000, fill), list(1001, func(int) string { return "step" })
	bounds := []string{`"size":1001`, `"limit":1000`}
	for _, path := range []string{
		"/v1/sessions?keys=", "/v1/sessions/s/events?types=", "/v1/sessions/s/history?keys=", "/v1/sessions/s/projections?keys=",
	} {
		s.get(path + strings.Join(enough, ",")).want(200)
		s.get(path+strings.Join(over, ",")).problem(400, "body-invalid", bounds...)
	}
	for _, path := range []string{"/v1/sessions/s/stream?events=", "/v1/sessions/s/stream?keys=", "/v1/stream?session=s&events=", "/v1/stream?session=s&keys="} {
		s.get(path+strings.Join(over, ",")).problem(400, "body-invalid", bounds...)
	}
	s.post("/v1/sessions/s/events?projections="+strings.Join(over, ","), `{"type":"step","data":null}`).problem(400, "body-invalid", bounds...)
	quoted := func(names []string) string { return `["` + strings.Join(names, `","`) + `"]` }
	for _, name := range []string{"events", "keys"} {
		s.post("/v1/stream", fmt.Sprintf(`{"sessions":[{"id":"s"}],%q:%s}`, name, quoted(over))).problem(400, "body-invalid", append(bounds, fmt.Sprintf(`"path":"$.%s"`, name))...)
	}
	s.post("/v1/sessions/s/retry", `{"keys":`+quoted(over)+`}`).problem(400, "body-invalid", append(bounds, `"path":"$.keys"`)...)
	s.post("/v1/sessions/s/retry", `{"keys":`+quoted(enough)+`}`).want(200)
	s.open("POST", "/v1/stream", fmt.Sprintf(`{"sessions":[{"id":"s"}],"events":%s,"keys":%s}`, quoted(enough), quoted(enough))).end()

	if got := s.get("/v1/sessions/s/events?types=" + strings.Join(over[1:], ",")).want(200).object()["events"].([]any); len(got) != 1 {
		t.Errorf("a type that is named a thousand times gives %d events of one", len(got))
	}
}
