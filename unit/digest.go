package unit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
)

// digestBytes is how much of the hash is kept. 128 bits: rows are compared with one definition, not searched for, and every row
// of every session carries it.
const digestBytes = 16

// digest is the same for definitions that mean the same: the order of keys in a schema and of event types does not count. The key
// and the state version are not in it, because a row is compared by them anyway.
func digest(c *Compiled) string {
	h := sha256.New()
	part(h, "foldhost unit 1")
	part(h, c.state.canonical())
	if c.view == nil {
		part(h, "host-only")
	} else {
		part(h, "view")
		part(h, c.view.canonical())
	}
	if c.Events == nil {
		part(h, "every type")
	} else {
		part(h, "types")
		types := slices.Sorted(slices.Values(c.Events))
		binary.Write(h, binary.BigEndian, uint64(len(types)))
		for _, typ := range types {
			part(h, typ)
		}
	}
	if c.ConfigBound {
		part(h, "config")
		part(h, c.ConfigDigest)
	}
	return hex.EncodeToString(h.Sum(nil)[:digestBytes])
}

// part writes s with its length first, so that no two lists of parts run together into the same bytes.
func part(h hash.Hash, s string) {
	binary.Write(h, binary.BigEndian, uint64(len(s)))
	h.Write([]byte(s))
}

// canonical is the schema with its keys sorted; numbers keep their spelling.
func (s *schema) canonical() string {
	text, err := json.Marshal(s.doc)
	if err != nil {
		// Only what json.Marshal cannot write fails, and doc was read from JSON.
		return string(s.text)
	}
	return string(text)
}
