package event

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// String decodes a JSON string; ok is false when raw is not one. An escaped lone surrogate comes out in WTF-8, as the
// three bytes that UTF-8 would give it if it could: Go then holds it without loss, and AppendString writes it back.
func String(raw json.RawMessage) (s string, ok bool) {
	text, ok := inner(raw)
	if !ok {
		return "", false
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text), true
	}
	var buf [128]byte
	return string(appendDecoded(buf[:0], text)), true
}

// inner is the text between the quotes of a JSON string, still encoded.
func inner(raw []byte) ([]byte, bool) {
	raw = trim(raw)
	if len(raw) < 2 || raw[0] != '"' || skipString(raw, 0) != len(raw) || raw[len(raw)-1] != '"' {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// AppendString appends s as a JSON string, escaping only what JSON asks for. WTF-8 surrogates, as String gives them, go
// out as escapes; other bytes that are not UTF-8 become U+FFFD, so check what comes from outside first.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
			dst = append(dst, s[start:i]...)
			if unit, ok := surrogate(s[i:]); ok {
				dst = append(dst, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
				i += 3
			} else {
				dst = append(dst, `\ufffd`...)
				i++
			}
			start = i
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// surrogate reads a surrogate in WTF-8 at the start of s.
func surrogate(s string) (unit rune, ok bool) {
	if len(s) < 3 || s[0] != 0xED || s[1] < 0xA0 || s[1] > 0xBF || s[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), true
}

// carries says whether s goes through AppendString and String unchanged.
func carries(s string) bool {
	for !utf8.ValidString(s) {
		i := 0
		for {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		if _, ok := surrogate(s[i:]); !ok {
			return false
		}
		s = s[i+3:]
	}
	return true
}

// appendDecoded appends what the inside of a JSON string stands for.
func appendDecoded(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c != '\\' || i+1 >= len(text) {
			next := bytes.IndexByte(text[i+1:], '\\')
			if next < 0 {
				return append(dst, text[i:]...)
			}
			dst = append(dst, text[i:i+1+next]...)
			i += 1 + next
			continue
		}
		switch c = text[i+1]; c {
		case 'u':
			r, ok := hex4(text[i:])
			if !ok {
				return append(dst, text[i:]...)
			}
			i += 6
			if r >= 0xD800 && r < 0xDC00 && i+1 < len(text) && text[i] == '\\' && text[i+1] == 'u' {
				if low, ok := hex4(text[i:]); ok && low >= 0xDC00 && low < 0xE000 {
					r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
					i += 6
				}
			}
			if r >= 0xD800 && r < 0xE000 {
				dst = append(dst, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			continue
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		}
		dst = append(dst, c)
		i += 2
	}
	return dst
}
