package api

// Routes are the scopes of the calls, by pattern.
func Routes() map[string]string {
	all := map[string]string{}
	for pattern, r := range routes() {
		all[pattern] = r.scope.String()
		switch r.scope {
		case scopeOpen:
			all[pattern] = "open"
		case scopeKnown:
			all[pattern] = "known"
		}
	}
	return all
}

// Followers counts those who follow sessions.
func (a *API) Followers() (n int) {
	a.hub.mu.RLock()
	defer a.hub.mu.RUnlock()
	for _, t := range a.hub.topics {
		t.mu.Lock()
		n += len(t.followers)
		t.mu.Unlock()
	}
	return n
}

// ParseTokens reads the text of a token file.
func ParseTokens(text []byte) (tokens []string, err *TokenFileError) {
	grants, err := parseTokens(text)
	for _, g := range grants {
		tokens = append(tokens, g.text)
	}
	return tokens, err
}

// Description is the OpenAPI document.
func Description() []byte { return description }
