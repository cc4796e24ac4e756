package event

import "errors"

var errMarshal = errors.New("encoding/json would rewrite the bytes of the event and fold its keys; use AppendJSON and DecodeDraft")

// MarshalJSON always fails: encoding/json rewrites <, > and & inside data. Use AppendJSON.
func (Event) MarshalJSON() ([]byte, error) { return nil, errMarshal }

// UnmarshalJSON always fails: encoding/json folds the case of keys and lets invalid JSON values through. Use DecodeDraft.
func (*Event) UnmarshalJSON([]byte) error { return errMarshal }
