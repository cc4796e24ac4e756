package client

import "bytes"

// message is one server-sent event.
type message struct {
	kind string
	// id is that of this message or, when it has none, of the last before it that had one.
	id   string
	data []byte
}

// messages reads server-sent events. It holds one at a time, of at most as many bytes as a line may have. A rest that no empty line ends is dropped.
type messages struct {
	lines lineReader
	id    string
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
				return message{kind, m.id, data}, nil
			}
			kind, size = "", 0 // Without data it is none.
			continue
		}
		if size += len(line); size > m.lines.max {
			return message{}, errTooLong
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) { // A comment has an empty field.
		case "event":
			kind = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				m.id = string(value)
			}
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		}
	}
}
