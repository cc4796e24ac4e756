package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/foldhost/foldhost/registry"
)

// shown is what a stream has said of one key last. Values are shared with the registry.
type shown struct {
	rev, seq int64
	value    json.RawMessage
	// down is why it has no value; gone says that it was removed.
	down *registry.Unavailable
	gone bool
}

// view is what a stream has shown of all keys, and decides what is news. It belongs to the stream.
type view struct {
	frames frames
	keys   []string // nil is all
	shown  map[string]shown
}

// baseline notes a block that is sent as a whole.
func (v *view) baseline(b *registry.Block) {
	for key, value := range b.Values {
		v.shown[key] = shown{rev: b.Revs[key], seq: b.AsOfSeq, value: value}
	}
	for key, down := range b.Unavailable {
		v.shown[key] = shown{seq: down.Seq, down: &down}
	}
}

// news notes a change of the feed, and says whether it is to be sent: changes that were on their way while a block was cut are in the block already.
func (v *view) news(c *registry.Change) bool {
	if v.keys != nil && !slices.Contains(v.keys, c.Key) {
		return false
	}
	last, known := v.shown[c.Key]
	if c.Rev < last.rev {
		return false
	}
	switch c.Kind {
	case registry.KindValue:
		if known && last.down == nil && c.Rev == last.rev && c.Seq <= last.seq {
			return false
		}
		v.shown[c.Key] = shown{rev: c.Rev, seq: c.Seq, value: c.Value}
	case registry.KindUnavailable:
		if last.down != nil && last.down.Code == c.Unavailable.Code && last.down.Seq == c.Unavailable.Seq {
			return false
		}
		v.shown[c.Key] = shown{rev: c.Rev, seq: c.Seq, value: last.value, down: c.Unavailable}
	case registry.KindRemoved:
		if !known || last.gone {
			return false
		}
		v.shown[c.Key] = shown{rev: c.Rev, seq: c.Seq, gone: true}
	}
	return true
}

// compare appends what a block says otherwise than what was shown. The block is at least as new as that.
func (v *view) compare(dst []byte, b *registry.Block) []byte {
	for _, key := range slices.Sorted(maps.Keys(b.Values)) {
		last, known := v.shown[key]
		value, rev := b.Values[key], b.Revs[key]
		if known && !last.gone && last.down == nil && bytes.Equal(last.value, value) || rev < last.rev {
			continue
		}
		v.shown[key] = shown{rev: rev, seq: b.AsOfSeq, value: value}
		dst = v.frames.projection(dst, key, value, b.AsOfSeq, rev)
	}
	for _, key := range slices.Sorted(maps.Keys(b.Unavailable)) {
		last, down := v.shown[key], b.Unavailable[key]
		if last.down == nil || last.down.Code != down.Code {
			v.shown[key] = shown{rev: last.rev, seq: down.Seq, value: last.value, down: &down}
			dst = v.frames.unavailable(dst, key, &down, last.rev)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.shown)) {
		_, up := b.Values[key]
		_, down := b.Unavailable[key]
		if last := v.shown[key]; !up && !down && !last.gone {
			v.shown[key] = shown{rev: last.rev, seq: last.seq, gone: true}
			dst = v.frames.removed(dst, key, last.rev)
		}
	}
	return dst
}
