package config

import (
	"errors"
	"math/big"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/foldhost/foldhost/event"
)

// The numbers of YAML, underscores left out: integers in four bases, and decimals. The parser holds them in an int64, a uint64 or a double, and
// rounds, or takes for text, what does not fit; here they keep every digit.
var (
	based   = regexp.MustCompile(`^[-+]?0([xX][0-9a-fA-F]+|[oO]?[0-7]+|[bB][01]+)$`)
	decimal = regexp.MustCompile(`^([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]+)?$`)
)

// maxBased is how long an integer in another base than ten may be: a double ends at 1,024 binary digits, and more would only be work.
const maxBased = 1100

// isNumber says whether plain text is meant as a number.
func isNumber(text string) bool {
	_, ok := numberOf(text)
	return ok
}

// numberOf writes a number of YAML as JSON, to the last digit. A decimal is left as it was written where JSON can.
func numberOf(text string) (number string, ok bool) {
	if strings.HasPrefix(text, "_") {
		return "", false
	}
	text = strings.ReplaceAll(text, "_", "")
	if len(text) <= maxBased && based.MatchString(text) {
		i, ok := new(big.Int).SetString(text, 0)
		return i.String(), ok
	}
	m := decimal.FindStringSubmatch(text)
	if m == nil || m[2]+m[3] == "" {
		return "", false
	}
	number = strings.TrimLeft(m[2], "0")
	if number == "" {
		number = "0"
	}
	if m[1] == "-" && (number != "0" || m[3]+m[4] != "") { // An integer has no negative zero.
		number = "-" + number
	}
	if m[3] != "" {
		number += "." + m[3]
	}
	return number + m[4], true
}

func (r *reader) appendNumber(dst []byte, n *yaml.Node, path string) []byte {
	number, ok := numberOf(n.Value)
	if !ok {
		r.fail(n, path, "is %q, which is no number in JSON", n.Value)
		return dst
	}
	if n.ShortTag() == "!!int" && strings.ContainsAny(number, ".eE") {
		r.fail(n, path, "is %q, which is no integer", n.Value)
		return dst
	}
	var lossy *event.Error
	if err := event.CheckLossless([]byte(number), path); errors.As(err, &lossy) {
		r.fail(n, path, "is %s: %s", n.Value, lossy.Reason)
		return dst
	}
	return append(dst, number...)
}
