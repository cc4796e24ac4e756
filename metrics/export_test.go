package metrics

// Names are those of all that can be exposed.
func Names() (names []string) {
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}
