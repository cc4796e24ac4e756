package sdk

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"hash/maphash"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/foldhost/foldhost/event"
)

// fingerprinter tells values of one type apart as their JSON would, without writing it where the type allows: that is most of the time
// of a fold over large states. Immutable.
//
// A fingerprint has 64 bits under a seed that is drawn anew in each process and never leaves it: two states are taken for one by
// accident once in 10^19 times, and nobody can aim at it.
type fingerprinter struct {
	// members are those of each struct type within; nil where the type has parts whose JSON only encoding/json knows.
	members map[reflect.Type][]member
}

// member is a field that is encoded.
type member struct {
	index               int
	omitEmpty, omitZero bool
}

var seed = maphash.MakeSeed()

// maxWalk is how deep a value is walked; one that is deeper, perhaps without end, is left to event.Encode. Real states are ten deep.
const maxWalk = 100

func newFingerprinter(t reflect.Type) fingerprinter {
	f := fingerprinter{members: map[reflect.Type][]member{}}
	if !f.walks(t) {
		f.members = nil
	}
	return f
}

// of returns the fingerprint of a value, or the error of a value that JSON cannot carry.
func (f fingerprinter) of(v reflect.Value) (uint64, error) {
	if f.members != nil {
		var h maphash.Hash
		h.SetSeed(seed)
		if f.write(&h, v, 0) {
			return h.Sum64(), nil
		}
	}
	encoded, err := event.Encode(v.Interface())
	if err != nil {
		return 0, err
	}
	return maphash.Bytes(seed, encoded), nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	isZeroer      = reflect.TypeFor[interface{ IsZero() bool }]()
)

// walks says whether two values of a type have the same JSON exactly when write makes no difference between them.
func (f fingerprinter) walks(t reflect.Type) bool {
	if p := reflect.PointerTo(t); p.Implements(jsonMarshaler) || p.Implements(textMarshaler) || t == reflect.TypeFor[json.Number]() {
		return false
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return f.walks(t.Elem())
	case reflect.Map:
		return isKey(t.Key().Kind()) && f.walks(t.Key()) && f.walks(t.Elem())
	case reflect.Struct:
		return f.walksStruct(t)
	}
	return false
}

// isKey says whether encoding/json takes keys of a kind. That leaves out those that write themselves, which are not walked.
func isKey(k reflect.Kind) bool {
	return k == reflect.String || reflect.Int <= k && k <= reflect.Uint64
}

func (f fingerprinter) walksStruct(t reflect.Type) bool {
	if _, ok := f.members[t]; ok {
		return true
	}
	f.members[t] = nil // it may hold itself
	var members []member
	names := map[string]bool{}
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" || !sf.IsExported() && !sf.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		m := member{index: i}
		for o := range strings.SplitSeq(options, ",") {
			m.omitEmpty = m.omitEmpty || o == "omitempty"
			m.omitZero = m.omitZero || o == "omitzero"
		}
		// Fields may hide each other where structs are embedded or names are equal.
		if sf.Anonymous || names[name] || m.omitZero && reflect.PointerTo(sf.Type).Implements(isZeroer) || !f.walks(sf.Type) {
			return false
		}
		names[name] = true
		members = append(members, m)
	}
	f.members[t] = members
	return true
}

// write adds a value to a hash. It says false, and what it has written means nothing, for what event.Encode must look at: text and numbers
// that JSON cannot carry, and what is too deep.
func (f fingerprinter) write(h *maphash.Hash, v reflect.Value, depth int) bool {
	if depth > maxWalk {
		return false
	}
	switch v.Kind() {
	case reflect.Bool:
		writePresence(h, v.Bool(), 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		writeUint(h, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		writeUint(h, v.Uint())
	case reflect.Float32, reflect.Float64:
		n := v.Float()
		writeUint(h, math.Float64bits(n))
		return !math.IsNaN(n) && !math.IsInf(n, 0) && (n != 0 || !math.Signbit(n))
	case reflect.String:
		s := v.String()
		writeUint(h, uint64(len(s)))
		h.WriteString(s)
		return utf8.ValidString(s)
	case reflect.Pointer:
		writePresence(h, !v.IsNil(), 0)
		return v.IsNil() || f.write(h, v.Elem(), depth+1)
	case reflect.Slice:
		writePresence(h, !v.IsNil(), v.Len())
		return f.writeElements(h, v, depth)
	case reflect.Array:
		return f.writeElements(h, v, depth)
	case reflect.Map:
		writePresence(h, !v.IsNil(), v.Len())
		return f.writeEntries(h, v, depth)
	case reflect.Struct:
		for _, m := range f.members[v.Type()] {
			field := v.Field(m.index)
			if m.omitEmpty || m.omitZero {
				omitted := m.omitEmpty && isEmpty(field) || m.omitZero && field.IsZero()
				writePresence(h, !omitted, 0)
				if omitted {
					continue
				}
			}
			if !f.write(h, field, depth+1) {
				return false
			}
		}
	default:
		return false
	}
	return true
}

func (f fingerprinter) writeElements(h *maphash.Hash, v reflect.Value, depth int) bool {
	for i := range v.Len() {
		if !f.write(h, v.Index(i), depth+1) {
			return false
		}
	}
	return true
}

// writeEntries adds the fingerprints of the entries up, because they come in any order.
func (f fingerprinter) writeEntries(h *maphash.Hash, v reflect.Value, depth int) bool {
	var sum uint64
	for it := v.MapRange(); it.Next(); {
		var entry maphash.Hash
		entry.SetSeed(seed)
		if !f.write(&entry, it.Key(), depth+1) || !f.write(&entry, it.Value(), depth+1) {
			return false
		}
		sum += entry.Sum64()
	}
	writeUint(h, sum)
	return true
}

// writePresence tells what is present and empty from what is absent.
func writePresence(h *maphash.Hash, present bool, length int) {
	if present {
		writeUint(h, uint64(length)+1)
	} else {
		writeUint(h, 0)
	}
}

func writeUint(h *maphash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

// isEmpty is what omitempty leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
