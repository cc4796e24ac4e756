package client_test

import (
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
)

// Values come without the life of the session that they are of.
func TestAStoreFollowsASessionIntoItsNextLife(t *testing.T) {
	s := serve(t, nil, api.Options{})
	c := s.client()
	for _, cold := range []bool{false, true} {
		store := client.NewStore()
		read := func() {
			t.Helper()
			if cold {
				if _, err := c.Detach(bounded(t), "s"); err != nil {
					t.Fatal(err)
				}
			}
			block, err := c.Projections(bounded(t), "s", client.ValuesQuery{})
			if err != nil {
				t.Fatal(err)
			}
			store.Seed(&block)
		}
		want := func(value string) {
			t.Helper()
			if e, _ := store.Get("steps"); string(e.Value) != value {
				t.Errorf("cold %v: the store has %s (seq %d, revision %d), want %s", cold, e.Value, e.Seq, e.Rev, value)
			}
		}
		fill(t, c, "s", 100)
		read()
		want("100")
		if err := c.Delete(bounded(t), "s"); err != nil {
			t.Fatal(err)
		}
		fill(t, c, "s", 2)
		read()
		want("2")

		// A list and a stream have the same to say.
		page, err := c.List(bounded(t), client.ListQuery{Keys: []string{"steps"}})
		if err != nil || len(page.Sessions) != 1 || page.Sessions[0].Projections == nil {
			t.Fatalf("%+v (%v)", page, err)
		}
		store.SeedPartial(page.Sessions[0].Projections)
		want("2")
		if err := c.Delete(bounded(t), "s"); err != nil {
			t.Fatal(err)
		}
	}
}
