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
