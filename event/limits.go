package event

import "fmt"

// CheckSize refuses an event whose encoded size is above limit bytes, with code too-large; a limit of 0 is DefaultMaxBytes.
func CheckSize(e *Event, limit int) error {
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	if size := e.EncodedSize(); size > limit {
		return tooLarge(size, limit)
	}
	return nil
}

// CheckType refuses a type that JSON cannot carry unchanged, with code envelope-invalid. It is for types that come from Go.
func CheckType(typ string) error {
	if !carries(typ) {
		return envelopeFault("type-invalid", "$.type", "type holds bytes that are not UTF-8")
	}
	return nil
}

func tooLarge(size, limit int) *Error {
	return &Error{Code: TooLarge, Rule: "event-size", Size: size, Limit: limit,
		Reason: fmt.Sprintf("the event has %d bytes and the limit is %d; store what is large elsewhere and refer to it", size, limit)}
}
