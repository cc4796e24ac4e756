package client_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
)

// update is a value, a mark or a removal of the vectors.
type update struct {
	Epoch, Key, Code, Message string
	Value                     json.RawMessage
	Seq, Rev                  int64
}

// vectors are what the stores of all languages must do.
type vectors struct {
	Cases []struct {
		Name  string
		Steps []struct {
			Connect *struct {
				Epoch, Incarnation string
				LastSeq            int64
			}
			Apply, Unavailable, Remove *update
			Seed, Partial              *client.Block
			Changed                    []string
			Want                       map[string]struct {
				Value    json.RawMessage
				Seq, Rev int64
				Stale    bool
			}
		}
	}
}

func TestStoreVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/store-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil || len(v.Cases) < 20 {
		t.Fatal(len(v.Cases), err)
	}
	for _, c := range v.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s := client.NewStore()
			var changed []string
			told := 0
			s.OnChange(func(keys []string) { changed = append(changed, keys...); told++ })
			for i, step := range c.Steps {
				changed, told = nil, 0
				before := s.Values()
				switch {
				case step.Connect != nil:
					s.Connect(step.Connect.Epoch, step.Connect.Incarnation, step.Connect.LastSeq)
				case step.Apply != nil:
					s.Apply(step.Apply.Epoch, step.Apply.Key, step.Apply.Value, step.Apply.Seq, step.Apply.Rev)
				case step.Unavailable != nil:
					u := step.Unavailable
					s.Unavailable(u.Epoch, u.Key, client.Unavailable{Code: u.Code, Seq: u.Seq, Message: u.Message}, u.Rev)
				case step.Remove != nil:
					s.Remove(step.Remove.Epoch, step.Remove.Key, step.Remove.Rev)
				case step.Seed != nil:
					s.Seed(step.Seed)
				case step.Partial != nil:
					s.SeedPartial(step.Partial)
				default:
					t.Fatalf("step %d says nothing", i)
				}
				if !slices.Equal(changed, step.Changed) || told > 1 {
					t.Errorf("step %d changes %q in %d calls, want %q", i, changed, told, step.Changed)
				}
				if same := reflect.ValueOf(before).Pointer() == reflect.ValueOf(s.Values()).Pointer(); same != (len(step.Changed) == 0) {
					t.Errorf("step %d: the values are the same object: %v", i, same)
				}
				if step.Want == nil {
					continue
				}
				values := map[string]string{}
				for _, key := range []string{"a", "b", "c", "d"} {
					e, ok := s.Get(key)
					want, wanted := step.Want[key]
					if ok != wanted || ok && (string(e.Value) != string(want.Value) || e.Seq != want.Seq || e.Rev != want.Rev || e.Stale != want.Stale) {
						t.Errorf("step %d: %s is %v %+v %s, want %v %+v %s", i, key, ok, e, e.Value, wanted, want, want.Value)
					}
					if want.Value != nil {
						values[key] = string(want.Value)
					}
				}
				got := map[string]string{}
				for key, value := range s.Values() {
					got[key] = string(value)
				}
				if diff := cmp.Diff(values, got); diff != "" {
					t.Errorf("step %d: the values differ: %s", i, diff)
				}
			}
		})
	}
}

// Whatever the order in which the same updates come, and however often, the store ends with the newest of each key.
func TestTheOrderOfUpdatesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) update {
			return update{Epoch: rapid.SampledFrom([]string{"s.1", "s.2"}).Draw(t, "epoch"), Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
				Rev: rapid.Int64Range(1, 2).Draw(t, "rev"), Seq: rapid.Int64Range(0, 3).Draw(t, "seq")}
		}), 1, 12).Draw(t, "updates")
		for i := range list {
			// The value is one of its rank, as it is of a host.
			list[i].Value, _ = json.Marshal(list[i].Epoch + string(rune('0'+list[i].Rev)) + string(rune('0'+list[i].Seq)))
		}
		apply := func(list []update) map[string]json.RawMessage {
			s := client.NewStore()
			for _, u := range list {
				s.Apply(u.Epoch, u.Key, u.Value, u.Seq, u.Rev)
			}
			return s.Values()
		}
		if diff := cmp.Diff(apply(list), apply(append(rapid.Permutation(list).Draw(t, "order"), list...))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A reset voids what the log does not have. What is only not to be read at the moment is as it was.
func TestAResetVoidsWhatTheLogDoesNotHave(t *testing.T) {
	s := client.NewStore()
	s.Connect("s.1", "I", 4)
	s.Apply("s.1", "a", json.RawMessage("1"), 7, 1)
	s.Take(&client.ResetFrame{Reason: "damaged"}, false)
	if e, ok := s.Get("a"); !ok || e.Seq != 7 {
		t.Errorf("damaged: %+v", e)
	}
	s.Apply("s.1", "b", json.RawMessage("1"), 3, 1)
	s.Take(&client.ResetFrame{Reason: "beyond-end"}, false)
	if e, ok := s.Get("a"); ok {
		t.Errorf("beyond the end: %+v", e)
	}
	if _, ok := s.Get("b"); !ok {
		t.Error("what the log has is gone")
	}
	s.Take(&client.ResetFrame{Reason: "incarnation"}, false)
	if e, ok := s.Get("b"); ok {
		t.Errorf("of another life: %+v", e)
	}
}

// A batch is told once.
func TestABatchIsToldOnce(t *testing.T) {
	s := client.NewStore()
	var told [][]string
	stop := s.OnChange(func(keys []string) { told = append(told, keys) })
	s.Batch(func() {
		s.Apply("s.1", "b", json.RawMessage("1"), 1, 1)
		s.Batch(func() { s.Apply("s.1", "a", json.RawMessage("1"), 1, 1) })
		s.Apply("s.1", "b", json.RawMessage("2"), 2, 1)
	})
	s.Batch(func() { s.Apply("s.1", "b", json.RawMessage("2"), 2, 1) })
	stop()
	s.Apply("s.1", "b", json.RawMessage("3"), 3, 1)
	if diff := cmp.Diff([][]string{{"a", "b"}}, told); diff != "" {
		t.Error(diff)
	}
}

// A store that takes the frames of a stream has what the server has.
func TestAStoreFollowsAStream(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	fill(t, c, "s", 2)
	store := client.NewStore()
	sent := false
	for f, err := range c.Stream(bounded(t), "s", client.StreamOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		store.Take(f, false)
		e, ok := store.Get("steps")
		if _, begun := f.(*client.BaselineFrame); begun && !sent {
			sent = true
			if !ok || string(e.Value) != "2" || e.Seq != 1 {
				t.Errorf("at the baseline it has %+v", e)
			}
			if _, err := c.Append(bounded(t), "s", []client.Item{step(2)}, client.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if string(e.Value) == "3" && !e.Stale {
			if err := c.Delete(bounded(t), "s"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(store.Values()) != 0 {
		t.Errorf("of a session that was deleted it has %v", store.Values())
	}
}

// Those who listen are told in the order in which they began, and those who have left are not.
func TestWhoListensIsToldInOrder(t *testing.T) {
	s := client.NewStore()
	var told []string
	listen := func(name string) (stop func()) {
		return s.OnChange(func([]string) { told = append(told, name) })
	}
	listen("a")
	stop := listen("b")
	listen("c")
	s.Apply("s.1", "k", json.RawMessage("1"), 1, 1)
	stop()
	stop()
	listen("d")
	s.Apply("s.1", "k", json.RawMessage("2"), 2, 1)
	if diff := cmp.Diff([]string{"a", "b", "c", "a", "c", "d"}, told); diff != "" {
		t.Error(diff)
	}
}
