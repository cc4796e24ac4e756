package todounit_test

import (
	"testing"

	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
)

func write(todos ...todounit.Todo) plugintest.Input {
	return plugintest.Event(todounit.WriteType, todounit.Write{Todos: append(todounit.Todos{}, todos...)})
}

func turn(typ string) plugintest.Input { return plugintest.Event(typ, plugintest.JSON(`{"turn":1}`)) }

func TestTodos(t *testing.T) {
	plan := todounit.Todo{Content: "plan", Status: todounit.InProgress}
	build := todounit.Todo{Content: "build", Status: todounit.Pending}
	done := todounit.Todo{Content: "plan", Status: todounit.Completed}
	list := func(todos ...todounit.Todo) todounit.Todos { return append(todounit.Todos{}, todos...) }
	u := plugintest.Unit(t, todounit.Projection)

	t.Run("null before the first write, and the start of a turn changes nothing then", func(t *testing.T) {
		u.Given(turn("turn/start"), turn("turn/end")).Then(nil).ThenState(nil).ThenSent()
	})
	t.Run("a write replaces the whole list", func(t *testing.T) {
		u.Given(write(plan, build), write(done)).Then(list(done)).ThenState(list(done)).ThenSent(list(plan, build), list(done))
	})
	t.Run("the same list again sends nothing", func(t *testing.T) {
		u.Given(write(plan), write(plan)).ThenSent(list(plan))
	})
	t.Run("the end of the turn keeps it, the start of the next clears it", func(t *testing.T) {
		u.Given(turn("turn/start"), write(plan), turn("turn/end")).Then(list(plan))
		u.Given(turn("turn/start"), write(plan), turn("turn/end"), turn("turn/start")).Then(nil).ThenSent(list(plan), nil)
	})
	t.Run("an empty list is not null", func(t *testing.T) {
		u.Given(write()).Then(list()).ThenSent(list())
	})
	t.Run("several in progress are for the tool to refuse", func(t *testing.T) {
		u.Given(write(plan, plan)).Then(list(plan, plan))
	})
	for name, data := range map[string]string{
		"a list that is none":        `{"todos":"nope"}`,
		"an entry that is a number":  `{"todos":[42]}`,
		"a content that is a number": `{"todos":[{"content":42,"status":"pending"}]}`,
		"no data":                    `null`,
		"a status that is a number":  `{"todos":[{"content":"x","status":42}]}`,
	} {
		t.Run(name+" is a fault", func(t *testing.T) {
			u.Given(write(plan), plugintest.Event(todounit.WriteType, plugintest.JSON(data))).ThenFault(1).Then(list(plan))
		})
	}
}

func TestAStatusThatDoesNotExistBreaksTheSchema(t *testing.T) {
	def, err := todounit.Projection.Definition()
	if err != nil {
		t.Fatal(err)
	}
	r := plugintest.Check(def, []sdk.Event{{Type: todounit.WriteType, Data: []byte(`{"todos":[{"content":"x","status":"paused"}]}`)}})
	if r.Broken(plugintest.MatchesSchema) == nil {
		t.Errorf("report: %s", r)
	}
}
