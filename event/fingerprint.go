package event

import (
	"crypto/sha256"
	"encoding/hex"
)

// fingerprintBytes of a SHA-256 are 128 bits, too many for two events to agree by accident in any number of logs.
const fingerprintBytes = 16

// Fingerprint identifies an event by its content; rows use it to prove that the log still holds the event they stand on.
// It is 32 hexadecimal digits, the start of the SHA-256 of what AppendJSON gives, and so the same on every host and in
// every release. Two spellings of the same data have different fingerprints.
func Fingerprint(e *Event) string {
	var buf [1024]byte
	sum := sha256.Sum256(e.AppendJSON(buf[:0]))
	return hex.EncodeToString(sum[:fingerprintBytes])
}
