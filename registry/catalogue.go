package registry

import "encoding/json"

// Offer is a key of a set whose values go out, and who computes it. Shared: do not write to it.
type Offer struct {
	Key string
	By  Registrant
	// StateVersion and Events are those of the definition; Events nil is every type.
	StateVersion int64
	Events       []string
	ViewSchema   json.RawMessage
}

// Offers are the keys of a named set whose values go out, sorted: those of Keys without the host-only ones.
func (r *Registry) Offers(set string) []Offer {
	var all []Offer
	for _, b := range r.setBindings(set) {
		if !b.HostOnly() {
			all = append(all, Offer{Key: b.Key, By: b.by, StateVersion: b.StateVersion, Events: b.Events, ViewSchema: b.ViewSchema})
		}
	}
	return all
}
