package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/host"
)

func TestAPluginFoldsInItsProcess(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	p := plugin(t, h, "wrong")
	if p.State != host.PluginReady || p.Pid == 0 || p.Version != "1.2.3" || len(p.Units) != 3 || len(p.Tools) != 2 || len(p.Digest) != 64 {
		t.Fatalf("%+v", p)
	}
	s := newSession(t, h, "s")
	same(t, "the value of the empty log", value(t, h, s, "count"), "0")
	for i := range 10 {
		step(t, s, i)
	}
	block := current(t, h, s, "count", "sum", "last")
	same(t, "asOfSeq", block.AsOfSeq, 9)
	same(t, "the values", fmt.Sprintf("%s %s %s", block.Values["count"], block.Values["sum"], block.Values["last"]), "10 45 9")
	past, err := h.SnapshotAt(context.Background(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the sum at seq 4", string(past.Values["sum"]), "10")
}

// What anybody may ask for says of plugins what Plugins does, less what costs.
func TestPluginStatesAreThoseOfPlugins(t *testing.T) {
	h := openHost(t, plugs{"todo": wrong(t), "gone": {Command: "/nowhere/gone"}})
	cheap, all := h.PluginStates(), h.Plugins(t.Context())
	for i := range all {
		if all[i].State == host.PluginReady && all[i].Digest == "" || cheap[i].Digest != "" {
			t.Errorf("%s has the digest %q, and at no cost %q", all[i].Name, all[i].Digest, cheap[i].Digest)
		}
		all[i].Digest, all[i].Tail, cheap[i].Tail = "", "", ""
	}
	same(t, "the states", fmt.Sprintf("%+v", cheap), fmt.Sprintf("%+v", all))
}
