package api

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// maxKey is how long an Idempotency-Key may be.
const maxKey = 255

// once gives the idempotency key of a request, empty for none, and the digest that it is bound to: of method, path, query and body.
func (c *call) once(body []byte) (key, digest string, err error) {
	keys := c.r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", "", nil
	}
	if key = keys[0]; len(keys) > 1 || !visible(key) {
		return "", "", bodyInvalid("", fmt.Sprintf("the Idempotency-Key must be one of 1 to %d visible ASCII characters", maxKey))
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(c.r.Method), []byte(c.r.URL.EscapedPath()), []byte(c.r.URL.RawQuery), body} {
		// With its length, so that no two requests are the same sequence of bytes.
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return key, hex.EncodeToString(h.Sum(nil)), nil
}

func visible(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxKey
}
