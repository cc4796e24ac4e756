package event

import "strconv"

// AppendJSON appends the event as one JSON object in the fixed key order type, seq, time, data, surfaceOp,
// sourceEventSeqs, ignorable. Data is copied byte for byte. There is no newline.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"type":`...)
	dst = AppendString(dst, e.Type)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"time":`...)
	dst = strconv.AppendInt(dst, e.Time, 10)
	dst = append(dst, `,"data":`...)
	dst = append(dst, e.Data...)
	switch e.Op.Kind {
	case OpAppend:
		dst = append(dst, `,"surfaceOp":"append"`...)
	case OpReplace:
		dst = append(dst, `,"surfaceOp":{"op":"replace","start":`...)
		dst = strconv.AppendInt(dst, e.Op.Start, 10)
		dst = append(dst, `,"end":`...)
		dst = strconv.AppendInt(dst, e.Op.End, 10)
		dst = append(dst, '}')
	}
	if e.Sources != nil {
		dst = append(dst, `,"sourceEventSeqs":[`...)
		for i, seq := range e.Sources {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, seq, 10)
		}
		dst = append(dst, ']')
	}
	if e.Ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}')
}

// EncodedSize is len(AppendJSON(nil)) without making it.
func (e *Event) EncodedSize() int {
	n := len(`{"type":,"seq":,"time":,"data":}`) + stringSize(e.Type) + intSize(e.Seq) + intSize(e.Time) + len(e.Data)
	switch e.Op.Kind {
	case OpAppend:
		n += len(`,"surfaceOp":"append"`)
	case OpReplace:
		n += len(`,"surfaceOp":{"op":"replace","start":,"end":}`) + intSize(e.Op.Start) + intSize(e.Op.End)
	}
	if e.Sources != nil {
		n += len(`,"sourceEventSeqs":[]`) + max(len(e.Sources)-1, 0)
		for _, seq := range e.Sources {
			n += intSize(seq)
		}
	}
	if e.Ignorable {
		n += len(`,"ignorable":true`)
	}
	return n
}

func intSize(n int64) int {
	size := 1
	u := uint64(n)
	if n < 0 {
		size, u = 2, -u
	}
	for ; u >= 10; u /= 10 {
		size++
	}
	return size
}

func stringSize(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			return len(AppendString(nil, s))
		}
	}
	return len(s) + 2
}
