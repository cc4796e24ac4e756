package titleunit_test

import (
	"testing"

	"github.com/foldhost/foldhost/plugins/title/titleunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
)

func set(title titleunit.Title) plugintest.Input {
	return plugintest.Event(titleunit.SetType, titleunit.Set{Title: title})
}

func TestTitle(t *testing.T) {
	u := plugintest.Unit(t, titleunit.Projection)
	t.Run("null before the first", func(t *testing.T) {
		u.Given(plugintest.Event("turn/start", nil)).Then(nil).ThenState(nil).ThenSent()
	})
	t.Run("the last one counts", func(t *testing.T) {
		u.Given(set("one"), set("two")).Then("two").ThenState("two").ThenSent("one", "two")
	})
	t.Run("the same again sends nothing", func(t *testing.T) {
		u.Given(set("one"), set("one")).ThenSent("one")
	})
	t.Run("what else the event says is ignored", func(t *testing.T) {
		u.Given(plugintest.Event(titleunit.SetType, plugintest.JSON(`{"title":"<a> & \u2028","source":{"kind":"model"},"messageSeqs":[1]}`))).Then("<a> & \u2028")
	})
	t.Run("a title that is no string is a fault", func(t *testing.T) {
		u.Given(set("one"), plugintest.Event(titleunit.SetType, plugintest.JSON(`{"title":1}`))).ThenFault(1).Then("one")
	})
}

func TestAnEmptyTitleBreaksTheSchema(t *testing.T) {
	def, err := titleunit.Projection.Definition()
	if err != nil {
		t.Fatal(err)
	}
	if r := plugintest.Check(def, []sdk.Event{{Type: titleunit.SetType, Data: []byte(`{"title":""}`)}}); r.Broken(plugintest.MatchesSchema) == nil {
		t.Errorf("report: %s", r)
	}
}
