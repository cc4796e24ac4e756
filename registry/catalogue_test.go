package registry

import (
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

// What is offered is what goes out: each key once, by whom it is computed, and none that stays in the host.
func TestOffers(t *testing.T) {
	w := given(t, Options{})
	w.register("b", fakeplugin.Last("marks", "mark"))
	w.register("a", fakeplugin.Last("marks", "mark"), fakeplugin.HostOnly(fakeplugin.Counter("count")), fakeplugin.Version(fakeplugin.Counter("all"), 7))
	var got []string
	for _, o := range w.r.Offers("") {
		got = append(got, fmt.Sprint(o.Key, " ", o.By.Plugin, " ", o.StateVersion, " ", o.Events, " ", len(o.ViewSchema) > 0))
	}
	if want := []string{"all a 7 [] true", "marks a 1 [mark] true"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}
