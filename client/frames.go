package client

import (
	"encoding/json"
	"errors"

	"github.com/foldhost/foldhost/event"
)

// Frame is what comes on a stream: *SubscribedFrame, *ResetFrame, *EventFrame, *BaselineFrame, *ProjectionFrame, *UnavailableFrame, *RemovedFrame, *DeletedFrame or *UnknownFrame.
type Frame interface {
	// Session is the id of the session that it is about, and JSON the frame as it came.
	Session() string
	JSON() json.RawMessage
}

// frame is what all have.
type frame struct {
	session string
	json    json.RawMessage
}

func (f *frame) Session() string       { return f.session }
func (f *frame) JSON() json.RawMessage { return f.json }

// String is JSON, for logs.
func (f *frame) String() string { return string(f.json) }

// SubscribedFrame begins each connection.
type SubscribedFrame struct {
	frame
	// LastSeq is the last event of the log, −1 for none.
	LastSeq            int64
	Incarnation, Epoch string
	HeartbeatMs        int64
}

// ResetFrame: the log does not have the position from which the stream was to go on. What is known of the session is void; a baseline follows. With the reason "damaged" none does: the server cannot
// read the log, and Follow goes on with the other sessions, and with this one once a later connection finds it whole.
type ResetFrame struct {
	frame
	// Reason is "incarnation", "beyond-end", "unknown" or "damaged".
	Reason string
}

// EventFrame is an event, in the order of the log and without gaps but for those that were not asked for.
type EventFrame struct {
	frame
	Event event.Event
	// Position is where a stream may go on behind it.
	Position string
}

// BaselineFrame is all values, once on each connection, after the events that are behind its position.
type BaselineFrame struct {
	frame
	Block    Block
	Position string
}

// ProjectionFrame is a value that changed, after the event that changed it.
type ProjectionFrame struct {
	frame
	Key      string
	Value    json.RawMessage
	Seq, Rev int64
}

// UnavailableFrame: a key has no value any more, or not yet.
type UnavailableFrame struct {
	frame
	Key string
	Unavailable
	Rev int64
}

// RemovedFrame: nobody computes the key any more.
type RemovedFrame struct {
	frame
	Key string
	Rev int64
}

// DeletedFrame: the session was deleted. Nothing of it follows.
type DeletedFrame struct{ frame }

// UnknownFrame: there is no such session, of those that Follow was to follow. Nothing of it follows.
type UnknownFrame struct{ frame }

// readFrame reads a message of a stream. It is nil for a kind that this version does not know. Positions are for who follows the session to set.
func readFrame(m message) (Frame, error) {
	var in struct {
		SessionID   string          `json:"sessionId"`
		LastSeq     int64           `json:"lastSeq"`
		Incarnation string          `json:"incarnation"`
		Epoch       string          `json:"epoch"`
		HeartbeatMs int64           `json:"heartbeatMs"`
		Reason      string          `json:"reason"`
		Event       json.RawMessage `json:"event"`
		Key         string          `json:"key"`
		Value       json.RawMessage `json:"value"`
		Code        string          `json:"code"`
		Message     string          `json:"message"`
		Seq         int64           `json:"seq"`
		Rev         int64           `json:"rev"`
	}
	if err := json.Unmarshal(m.data, &in); err != nil {
		return nil, err
	}
	all := frame{in.SessionID, m.data}
	switch m.kind {
	case "session/subscribed":
		if in.Incarnation == "" {
			return nil, errors.New("a subscription without an incarnation")
		}
		return &SubscribedFrame{all, in.LastSeq, in.Incarnation, in.Epoch, in.HeartbeatMs}, nil
	case "session/reset":
		return &ResetFrame{all, in.Reason}, nil
	case "session/event":
		ev, err := readEvent(in.Event)
		return &EventFrame{frame: all, Event: ev}, err
	case "session/baseline":
		f := &BaselineFrame{frame: all}
		return f, json.Unmarshal(m.data, &f.Block)
	case "session/projection":
		return &ProjectionFrame{all, in.Key, in.Value, in.Seq, in.Rev}, nil
	case "session/projection-unavailable":
		return &UnavailableFrame{all, in.Key, Unavailable{in.Code, in.Seq, in.Message}, in.Rev}, nil
	case "session/projection-removed":
		return &RemovedFrame{all, in.Key, in.Rev}, nil
	case "session/deleted":
		return &DeletedFrame{all}, nil
	case "session/unknown":
		return &UnknownFrame{all}, nil
	}
	return nil, nil
}
