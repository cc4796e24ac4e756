package render

import "io"

// Serving says where a server is, and how to begin with it. tokens: it asks for one.
func Serving(w io.Writer, url, data string, tokens bool) error {
	token := ""
	if tokens {
		token = ` -H "Authorization: Bearer $TOKEN"`
	}
	return Printf(w, "serving %s, data in %s\n"+
		"begin with\n"+
		"  curl %s/v1/sessions"+token+" -H 'Content-Type: application/json' -d '{\"id\":\"first\"}'\n", url, data, url)
}
