package api

// Routes are the scopes of the calls, by pattern.
func Routes() map[string]string {
	all := map[string]string{}
	for pattern, r := range routes() {
		all[pattern] = r.scope.String()
		if r.scope == scopeOpen {
			all[pattern] = "open"
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
