package client

import "bytes"

// message is one server-sent event. Its id is passed over: where a stream stands is told by what is in the frames, which is the same on a stream of one session and of many.
type message struct {
	kind string
	data []byte
}

// messages reads server-sent events. It holds one at a time, of at most as many bytes as a line may have. A rest that no empty line ends is dropped.
type messages struct {
	lines lineReader
	begun bool
}

// next gives the next message. Its data is its own.
func (m *messages) next() (message, error) {
	var kind string
	var data []byte
	some := false
	for size := 0; ; {
		line, err := m.lines.next()
		if err != nil {
			return message{}, err
		}
		if !m.begun {
			m.begun = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(line) == 0 {
			if some {
				return message{kind, data}, nil
			}
			kind, size = "", 0 // Without data it is none.
			continue
		}
		if size += len(line); size > m.lines.max {
			return message{}, errTooLong
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) { // Others are an id, or a comment, whose field is empty.
		case "event":
			kind = string(value)
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		}
	}
}
