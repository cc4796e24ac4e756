// Package event owns what one entry of a session log is: the envelope and its rules, the lossless-JSON rule that keeps
// its bytes, the log's header, and the shapes of the few types that mean something to the core.
//
// It never re-encodes a caller's JSON: data goes out byte for byte as it came in, white space outside strings aside.
// It knows neither surfaces nor logs; whether an event fits into one is decided above.
//
// All values here are immutable once made and hold no locks; every function may be called concurrently.
package event
