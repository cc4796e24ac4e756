package session

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/foldhost/foldhost/surface"
)

// Whatever lies in a row, reading it neither panics nor takes more memory than a few times the row; and what is read is written the same.
func FuzzSurfaceRow(f *testing.F) {
	f.Add((&surfaceRow{nodes: []int64{0, 3, 9, 4}, generation: 2, next: 12, anchor: "abc"}).encode())
	f.Add((&surfaceRow{next: 1}).encode())
	f.Add([]byte{surfaceFormat, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		// The checksum is put right, else nothing would come past it.
		if n := len(raw) - crc32.Size; n > 0 {
			raw = binary.BigEndian.AppendUint32(bytes.Clone(raw[:n]), crc32.Checksum(raw[:n], castagnoli))
		}
		r, err := decodeSurfaceRow(raw)
		if err != nil {
			return
		}
		if len(r.nodes) > len(raw) {
			t.Fatalf("%d nodes out of %d bytes", len(r.nodes), len(raw))
		}
		again, err := decodeSurfaceRow(r.encode())
		if err != nil || len(again.nodes) != len(r.nodes) || again.next != r.next || again.anchor != r.anchor {
			t.Fatalf("%+v came back as %+v, %v", r, again, err)
		}
		_, _ = surface.Restore(r.nodes, r.generation, r.next, nil)
	})
}
