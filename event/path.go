package event

import (
	"strconv"
	"strings"
)

// A path shown to a reader is bounded: an attacker chooses how deep and how long it gets.
const (
	maxPathSteps = 32
	maxPathKey   = 64
)

// step is one level on the way to a place: an element of an array or a member of an object.
type step struct {
	array bool
	index int
	key   []byte // encoded, without quotes; nil before the first key
}

// pathAt names the place of the byte at offset: $.a[3]["odd key"]. All before offset is JSON as far as it goes. A place
// inside a key belongs to the object.
func pathAt(src []byte, offset int, prefix string) string {
	var steps []step
	wantKey := false
	for i := 0; i < len(src) && i < offset; {
		top := len(steps) - 1
		switch src[i] {
		case '{':
			steps, wantKey = append(steps, step{}), true
		case '[':
			steps, wantKey = append(steps, step{array: true}), false
		case '}', ']':
			if top >= 0 {
				steps = steps[:top]
			}
			wantKey = false
		case ',':
			if top >= 0 && steps[top].array {
				steps[top].index++
			} else if top >= 0 {
				steps[top].key, wantKey = nil, true
			}
		case '"':
			end := skipString(src, i)
			if wantKey && end <= offset && top >= 0 {
				steps[top].key, wantKey = src[i+1:end-1], false
			}
			i = end
			continue
		}
		i++
	}
	var b strings.Builder
	b.WriteString(prefix)
	for i, st := range steps {
		if len(steps) > maxPathSteps && i >= maxPathSteps/2 && i < len(steps)-maxPathSteps/2 {
			if i == maxPathSteps/2 {
				b.WriteString("…")
			}
			continue
		}
		switch {
		case st.array:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(st.index))
			b.WriteByte(']')
		case st.key != nil:
			b.WriteString(PathKey(string(appendDecoded(nil, st.key))))
		}
	}
	return b.String()
}

// PathKey is how a key goes into a path, in errors everywhere: .name when it is a plain word, ["odd key"] otherwise. A long key is cut.
func PathKey(key string) string {
	plain := key != ""
	for i := 0; i < len(key) && plain; i++ {
		c := key[i]
		plain = c == '_' || c == '$' || c == '-' && i > 0 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) && i > 0
	}
	if plain && len(key) <= maxPathKey {
		return "." + key
	}
	tail := `"]`
	if len(key) > maxPathKey {
		key = strings.ToValidUTF8(key[:maxPathKey], "")
		tail = `…"]`
	}
	quoted := AppendString([]byte{'['}, key)
	return string(quoted[:len(quoted)-1]) + tail
}

// quoteByte shows one byte of a text in an error.
func quoteByte(c byte) string {
	if c > ' ' && c < 0x7f {
		return strconv.QuoteRune(rune(c))
	}
	return "byte 0x" + strconv.FormatUint(uint64(c), 16)
}
