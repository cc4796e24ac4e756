package render

import "io"

// Serving says where a server is, and how to begin with it.
func Serving(w io.Writer, url, data string) error {
	return Printf(w, "serving %s, data in %s\n"+
		"begin with\n"+
		"  curl %s/v1/sessions -H 'Content-Type: application/json' -d '{\"id\":\"first\"}'\n", url, data, url)
}
