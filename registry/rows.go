package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// of says whether the rows belong to this life of this log.
func (r *Rows) of(session, incarnation string) bool {
	return r.Session == session && r.Incarnation == incarnation
}

// AppendJSON appends the row as one JSON object, val and view byte for byte.
func (r *Row) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"ver":`...)
	dst = strconv.AppendInt(dst, r.Ver, 10)
	dst = append(dst, `,"def":`...)
	dst = event.AppendString(dst, r.Def)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, r.Seq, 10)
	dst = append(dst, `,"val":`...)
	dst = append(dst, r.Val...)
	if len(r.View) > 0 {
		dst = append(dst, `,"view":`...)
		dst = append(dst, r.View...)
	}
	if r.Config != "" {
		dst = append(dst, `,"config":`...)
		dst = event.AppendString(dst, r.Config)
	}
	dst = append(dst, `,"anchor":`...)
	dst = event.AppendString(dst, r.Anchor)
	return append(dst, '}')
}

// MarshalJSON always fails: encoding/json would rewrite <, > and & in the state and the view. Use AppendJSON.
func (r Row) MarshalJSON() ([]byte, error) {
	return nil, errors.New("registry: encoding/json would change the state and view of a row; use Row.AppendJSON")
}

// DecodeRow reads what AppendJSON wrote. It takes exactly the keys of a row; whether the row can be used for anything is decided where
// it is used. The error is a *RowError.
func DecodeRow(raw []byte) (Row, error) {
	text, err := event.Compact(raw, "$")
	if err != nil {
		return Row{}, &RowError{Reason: err.Error()}
	}
	var (
		row   Row
		seen  int
		wrong string
	)
	isObject := event.Members(text, func(key string, value json.RawMessage) bool {
		ok := true
		switch key {
		case "ver":
			row.Ver, ok = event.Integer(value)
			seen |= 1
		case "def":
			row.Def, ok = event.String(value)
			seen |= 2
		case "seq":
			row.Seq, ok = event.Integer(value)
			seen |= 4
		case "val":
			row.Val = value
			seen |= 8
		case "view":
			row.View = value
		case "config":
			row.Config, ok = event.String(value)
		case "anchor":
			row.Anchor, ok = event.String(value)
			seen |= 16
		default:
			wrong = fmt.Sprintf("there is a key %q", key)
			return false
		}
		if !ok {
			wrong = fmt.Sprintf("%s is %.40s", key, value)
		}
		return ok
	})
	switch {
	case !isObject:
		wrong = "it is not an object"
	case wrong == "" && seen != 31:
		wrong = "it must have ver, def, seq, val and anchor"
	}
	if wrong != "" {
		return Row{}, &RowError{Reason: wrong}
	}
	return row, nil
}

// RowError: what was stored is not a row.
type RowError struct{ Reason string }

func (e *RowError) Error() string {
	return "a stored checkpoint row is malformed and will not be used: " + e.Reason
}

// mismatch says why a row was not made by this definition, or has not the form of a row, or is empty.
func (b *binding) mismatch(row Row) string {
	switch {
	case row.Ver != b.StateVersion:
		return fmt.Sprintf("it has stateVersion %d, the unit has %d", row.Ver, b.StateVersion)
	case row.Def != b.Digest:
		return "it was made by another definition of the unit"
	case row.Seq < -1 || row.Seq > event.MaxInteger:
		return fmt.Sprintf("its seq is %d", row.Seq)
	case (row.Anchor == "") != (row.Seq == -1):
		return fmt.Sprintf("its anchor is %q at seq %d", row.Anchor, row.Seq)
	}
	return ""
}

// ViewRows gives values straight from rows: no log is read, no plugin asked. Rows that do not match, those whose view was made with another config, and those
// whose state or view is against its schema, leave their key out, and host-only units have no value. AsOfSeq is the lowest seq among the rows served, −1 without any; the
// values may contain more. keys narrows the answer; none is all. That the rows belong to the log, and do not stand beyond its
// head, is the caller's to know.
func (r *Registry) ViewRows(set string, rows Rows, keys ...string) Block {
	block := r.blank()
	for _, b := range narrow(r.setBindings(set), keys) {
		row, ok := rows.Rows[b.Key]
		if !ok || b.HostOnly() || b.mismatch(row) != "" || row.Config != b.ConfigDigest || b.CheckState(row.Val, r.o.MaxStateBytes) != nil {
			continue
		}
		view, err := b.AcceptView(row.View, r.o.MaxViewBytes)
		if err != nil {
			continue
		}
		if len(block.Values) == 0 || row.Seq < block.AsOfSeq {
			block.AsOfSeq = row.Seq
		}
		block.Values[b.Key], block.Revs[b.Key] = view, b.revision()
	}
	return block
}

// RestoreFloor gives the seq from which a log must be read so that Restore can go on from the rows; ok is false when nothing is registered in the
// set and nothing need be read. It is one below the first event that any unit still has to fold, so that reading from there
// proves that the log still has the event the lowest row stands on.
func (r *Registry) RestoreFloor(set string, rows Rows) (floor int64, ok bool) {
	return restoreFloor(r.setBindings(set), rows)
}

func restoreFloor(bindings []*binding, rows Rows) (floor int64, ok bool) {
	need := int64(event.MaxInteger)
	for _, b := range bindings {
		need = min(need, b.need(rows))
	}
	return max(need-1, 0), len(bindings) > 0
}

// need is the first event that is still to be folded if the row of the key holds.
func (b *binding) need(rows Rows) int64 {
	row, has := rows.Rows[b.Key]
	if !has || b.mismatch(row) != "" {
		return 0
	}
	return row.Seq + 1
}

// Need says what a restore has to do for one key.
type Need struct {
	Key string
	// HostOnly keys have a row and no value.
	HostOnly bool
	// From is the first event that is still to be folded if the row holds, 0 without a row that could.
	From int64
}

// Needs gives what a restore from the rows has to do, by who computes the keys: those of one group share what is read and wait for each other, so
// several groups are better restored apart. keys narrows it; none is all. Nothing is read.
func (r *Registry) Needs(set string, rows Rows, keys ...string) [][]Need {
	groups := map[*process][]Need{}
	var order []*process
	for _, b := range narrow(r.setBindings(set), keys) {
		p, _ := b.process()
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], Need{Key: b.Key, HostOnly: b.HostOnly(), From: b.need(rows)})
	}
	needs := make([][]Need, len(order))
	for i, p := range order {
		needs[i] = groups[p]
	}
	return needs
}

// blank gives an empty block. Ask for it before asking for bindings: a block may know of more registrations than its generation says,
// never of less.
func (r *Registry) blank() Block {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Block{
		Epoch: r.o.Epoch, Gen: r.gen, AsOfSeq: -1,
		Values: map[string]json.RawMessage{}, Revs: map[string]int64{}, Unavailable: map[string]Unavailable{},
	}
}

// narrow leaves the bindings of the keys, or all when there are no keys.
func narrow(bindings []*binding, keys []string) []*binding {
	if len(keys) == 0 {
		return bindings
	}
	wanted := make(map[string]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	var some []*binding
	for _, b := range bindings {
		if wanted[b.Key] {
			some = append(some, b)
		}
	}
	return some
}
