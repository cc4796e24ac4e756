package api

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/foldhost/foldhost/session"
)

// maxKey is how long an Idempotency-Key may be.
const maxKey = 255

// once gives the idempotency key of a request, the zero Once for none, with the digest that it is bound to: of method, path, query and body.
func (c *call) once(body []byte) (session.Once, error) {
	keys := c.r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return session.Once{}, nil
	}
	if len(keys) > 1 || !visible(keys[0]) {
		return session.Once{}, bodyInvalid("", fmt.Sprintf("the Idempotency-Key must be one of 1 to %d visible ASCII characters", maxKey))
	}
	digest := digestOf(c.r.Method, c.r.URL.EscapedPath(), c.r.URL.RawQuery, string(body))
	return session.Once{Key: keys[0], Digest: hex.EncodeToString(digest.Sum(nil))}, nil
}

// madeID is the id of a session that a request with a key makes without naming one: the same for the same key in the same place, so that a repeated request finds what the
// first has made.
func madeID(once session.Once, place ...string) string {
	digest := digestOf(append(place, once.Key)...).Sum(nil)
	// 130 bits, as many as an id that is made up has.
	return base32.StdEncoding.EncodeToString(digest)[:26]
}

// digestOf digests parts, each with its length, so that no two lists of parts are the same bytes.
func digestOf(parts ...string) hash.Hash {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h
}

func visible(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxKey
}
