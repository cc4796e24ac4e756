package event

import (
	"bytes"
	"encoding/json"
)

// The functions below read JSON that has been checked. Given anything else they answer something, never panic and always end.

// Lookup returns the member of a JSON object by path of keys, as it stands, or nil when it is not there or a value on the
// way is not an object. raw must be valid JSON; the result is a piece of it. It allocates nothing.
func Lookup(raw json.RawMessage, path ...string) json.RawMessage {
	value := trim(raw)
	for _, name := range path {
		var found []byte
		eachMember(value, func(key, member []byte) bool {
			if keyIs(key, name) {
				found = member
				return false
			}
			return true
		})
		if found == nil {
			return nil
		}
		value = found
	}
	return value
}

// Elements calls yield for each element of a JSON array in order, until yield says false; it reports whether raw is an array.
func Elements(raw json.RawMessage, yield func(elem json.RawMessage) bool) bool {
	raw = trim(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return false
	}
	for i := skipBlank(raw, 1); i < len(raw) && raw[i] != ']'; {
		end := skipValue(raw, i)
		if !yield(raw[i:end:end]) {
			return true
		}
		i = skipBlank(raw, end)
		if i < len(raw) && raw[i] == ',' {
			i = skipBlank(raw, i+1)
		}
	}
	return true
}

// Members calls yield for each member of a JSON object in order, key decoded, until yield says false; it reports whether
// raw is an object.
func Members(raw json.RawMessage, yield func(key string, value json.RawMessage) bool) bool {
	return eachMember(raw, func(key, value []byte) bool {
		if bytes.IndexByte(key, '\\') >= 0 {
			key = appendDecoded(nil, key)
		}
		return yield(string(key), value)
	})
}

// eachMember is Members with keys as they are encoded, without quotes, so that most callers need no copy of them.
func eachMember(raw []byte, yield func(key, value []byte) bool) bool {
	raw = trim(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	for i := skipBlank(raw, 1); i < len(raw) && raw[i] == '"'; {
		keyEnd := skipString(raw, i)
		key := raw[i+1 : max(keyEnd-1, i+1)]
		i = skipBlank(raw, keyEnd)
		if i < len(raw) && raw[i] == ':' {
			i = skipBlank(raw, i+1)
		}
		end := skipValue(raw, i)
		if !yield(key, raw[i:end:end]) {
			return true
		}
		i = skipBlank(raw, end)
		if i < len(raw) && raw[i] == ',' {
			i = skipBlank(raw, i+1)
		}
	}
	return true
}

// keyIs says whether an encoded key stands for name. An escape is always longer than what it stands for.
func keyIs(encoded []byte, name string) bool {
	switch {
	case len(encoded) < len(name):
		return false
	case len(encoded) == len(name):
		return string(encoded) == name && bytes.IndexByte(encoded, '\\') < 0
	case bytes.IndexByte(encoded, '\\') < 0:
		return false
	}
	var buf [128]byte
	return string(appendDecoded(buf[:0], encoded)) == name
}

// textIs says whether raw is a JSON string that stands for s.
func textIs(raw []byte, s string) bool {
	text, ok := inner(raw)
	return ok && keyIs(text, s)
}

// trim takes white space off both ends.
func trim(raw []byte) []byte {
	i, j := skipBlank(raw, 0), len(raw)
	for j > i && isSpace(raw[j-1]) {
		j--
	}
	return raw[i:j]
}

// skipBlank returns the index of the first byte from i on that is not white space.
func skipBlank(raw []byte, i int) int {
	for i < len(raw) && isSpace(raw[i]) {
		i++
	}
	return i
}

// skipValue returns the index behind the value that starts at i. It counts brackets instead of recursing.
func skipValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			if depth == 0 {
				return i
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
			if depth <= 0 {
				return i
			}
		default:
			if depth == 0 {
				return skipAtom(raw, i)
			}
			i++
		}
	}
	return i
}

// skipAtom returns the index behind the number or literal at i, and at least i+1.
func skipAtom(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\n', '\r', '\t':
			return i
		}
	}
	return i
}

// skipString returns the index behind the string whose opening quote stands at i. Most strings are short keys, for which a
// plain loop beats the vector search that long texts want.
func skipString(raw []byte, i int) int {
	j := i + 1
	for short := min(len(raw), j+16); j < short; {
		switch raw[j] {
		case '"':
			return j + 1
		case '\\':
			j += 2
		default:
			j++
		}
	}
	// No escape is cut at start, so backslashes before it do not count.
	for start := min(j, len(raw)); ; {
		k := bytes.IndexByte(raw[min(j, len(raw)):], '"')
		if k < 0 {
			return len(raw)
		}
		j += k
		slash := j
		for slash > start && raw[slash-1] == '\\' {
			slash--
		}
		j++
		if (j-1-slash)%2 == 0 {
			return j
		}
	}
}
