package registry

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// Block is the one shape in which values go out: what is known of some keys, all as of one seq. AppendJSON is its JSON; encoding/json is refused,
// because it would rewrite values.
type Block struct {
	// Epoch is "<storeId>.<boot>", Gen the registry's generation when the block was cut.
	Epoch string
	Gen   int64
	// AsOfSeq is the seq of the last event that the values contain, −1 for the empty log.
	AsOfSeq int64
	// Values are whole client values by key, Revs the revision of each.
	Values map[string]json.RawMessage
	Revs   map[string]int64
	// Unavailable are the keys that have no value as of AsOfSeq, and why. A key is here or in Values or, when nobody
	// registered it, in neither.
	Unavailable map[string]Unavailable
	// Historical marks a block of SnapshotAt: it never seeds a client store.
	Historical bool
}

// AppendJSON appends the block as one JSON object: epoch, gen, asOfSeq, historical (only when true), values, revs, unavailable
// (only when there are any). Keys are sorted and values stand byte for byte, so equal blocks are equal bytes.
func (b *Block) AppendJSON(dst []byte) []byte {
	dst = append(slices.Grow(dst, b.sizeHint()), '{')
	return append(b.AppendMembers(dst, func(dst, value []byte) []byte { return append(dst, value...) }), '}')
}

// AppendMembers appends what stands in the object of AppendJSON, between its brackets. put appends each value, and gives what is gone on with: it may send what there is so far, and the value itself, so
// that nobody needs a copy of all values.
func (b *Block) AppendMembers(dst []byte, put func(dst, value []byte) []byte) []byte {
	dst = append(dst, `"epoch":`...)
	dst = event.AppendString(dst, b.Epoch)
	dst = append(dst, `,"gen":`...)
	dst = strconv.AppendInt(dst, b.Gen, 10)
	dst = append(dst, `,"asOfSeq":`...)
	dst = strconv.AppendInt(dst, b.AsOfSeq, 10)
	if b.Historical {
		dst = append(dst, `,"historical":true`...)
	}
	dst = append(dst, `,"values":`...)
	dst = appendObject(dst, b.Values, func(dst []byte, v json.RawMessage) []byte {
		if len(v) == 0 {
			return append(dst, "null"...)
		}
		return put(dst, v)
	})
	dst = append(dst, `,"revs":`...)
	dst = appendObject(dst, b.Revs, func(dst []byte, rev int64) []byte { return strconv.AppendInt(dst, rev, 10) })
	if len(b.Unavailable) > 0 {
		dst = append(dst, `,"unavailable":`...)
		dst = appendObject(dst, b.Unavailable, func(dst []byte, u Unavailable) []byte { return u.AppendJSON(dst) })
	}
	return dst
}

// MarshalJSON always fails: encoding/json would rewrite <, > and & in values that must go out byte for byte. Use AppendJSON.
func (b Block) MarshalJSON() ([]byte, error) {
	return nil, errors.New("registry: encoding/json would change the values of a block; use Block.AppendJSON")
}

// sizeHint is close to what AppendJSON appends: 96 bytes are the fixed part, 48 what a key costs beside its value.
func (b *Block) sizeHint() int {
	n := 96 + len(b.Epoch)
	for _, v := range b.Values {
		n += 48 + len(v)
	}
	for _, u := range b.Unavailable {
		n += 96 + len(u.Message)
	}
	return n
}

func appendObject[V any](dst []byte, m map[string]V, value func(dst []byte, v V) []byte) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, k)
		dst = append(dst, ':')
		dst = value(dst, m[k])
	}
	return append(dst, '}')
}

// AppendJSON appends {"code","seq","message"}.
func (u *Unavailable) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = event.AppendString(dst, string(u.Code))
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, u.Seq, 10)
	dst = append(dst, `,"message":`...)
	dst = event.AppendString(dst, u.Message)
	return append(dst, '}')
}
