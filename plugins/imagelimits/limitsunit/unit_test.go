package limitsunit_test

import (
	"errors"
	"testing"

	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

func TestLimitsAreInTheBaselineAndNoEventSendsThem(t *testing.T) {
	limits := limitsunit.Default()
	limits.MaxImagesPerMessage = 3
	u := limitsunit.New(limits)
	plugintest.Unit(t, u).Given().ThenState(nil).
		Then(plugintest.JSON(`{"maxImageBytes":5242880,"maxImagesPerMessage":3,"maxMessageImageBytes":20971520,"maxImagePixels":67108864,"maxImageDimension":8000,
			"mediaTypes":["image/png","image/jpeg","image/gif","image/webp"]}`))
	plugintest.Unit(t, u).Given(plugintest.Event("turn/start", nil), plugintest.Event("user/message", nil)).Then(limits).ThenSent()

	def, err := u.Definition()
	if err != nil {
		t.Fatal(err)
	}
	if def.Events == nil || len(def.Events) != 0 {
		t.Errorf("it folds %q, want nothing, ever", def.Events)
	}
}

func TestTheLimitsAreThoseOfTheCall(t *testing.T) {
	limits := limitsunit.Default()
	u := limitsunit.New(limits)
	limits.MediaTypes[0] = "text/plain"
	plugintest.Unit(t, u).Given().Then(limitsunit.Default())
}

func TestAnotherConfigDoesNotMakeRowsUseless(t *testing.T) {
	digest := func(l limitsunit.Limits) string {
		t.Helper()
		def, err := limitsunit.New(l).Definition()
		if err != nil {
			t.Fatal(err)
		}
		c, err := unit.Compile(def)
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest
	}
	other := limitsunit.Default()
	other.MaxImageBytes = 1
	if digest(limitsunit.Default()) != digest(other) {
		t.Error("the digest depends on the config, and the fold does not")
	}
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, change := range map[string]func(l *limitsunit.Limits){
		"no bytes":          func(l *limitsunit.Limits) { l.MaxImageBytes = 0 },
		"images below zero": func(l *limitsunit.Limits) { l.MaxImagesPerMessage = -1 },
		"no message bytes":  func(l *limitsunit.Limits) { l.MaxMessageImageBytes = 0 },
		"no pixels":         func(l *limitsunit.Limits) { l.MaxImagePixels = 0 },
		"no dimension":      func(l *limitsunit.Limits) { l.MaxImageDimension = 0 },
		"no media types":    func(l *limitsunit.Limits) { l.MediaTypes = nil },
		"a type twice":      func(l *limitsunit.Limits) { l.MediaTypes = []string{"image/png", "image/png"} },
	} {
		l := limitsunit.Default()
		change(&l)
		var wrong *unit.ValueError
		if _, err := limitsunit.New(l).Definition(); !errors.As(err, &wrong) {
			t.Errorf("%s: error is %v, want a *ValueError", name, err)
		}
	}
}
