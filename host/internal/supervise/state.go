package supervise

import (
	"encoding/json"
	"time"

	"github.com/foldhost/foldhost/host/internal/life"
)

// State is how a plugin stands, as operators see it.
type State string

// The states, in the order of a life.
const (
	Starting State = "starting"
	Ready    State = "ready"
	// Backoff waits for the next start, at Status.Until.
	Backoff State = "backoff"
	// Parked does not start again by itself; Status.Reason says why.
	Parked   State = "parked"
	Draining State = "draining"
	Stopped  State = "stopped"
)

// Status is a plugin at one time.
type Status struct {
	Name, Path string
	State      State
	// Since is when it came into the state. Until is when a backoff ends; zero otherwise.
	Since, Until time.Time
	// Reason says why it is in backoff or parked; empty otherwise.
	Reason string
	// Successor says why the process that was to take over last did not start, while the one before serves on; empty otherwise.
	Successor string
	// Pid is 0 without a process. Generation counts the processes of the whole host.
	Pid        int
	Generation uint64
	// Restarts counts the processes after the first, LastError is the last failure of any, and Tail the end of what it wrote to stderr.
	Restarts        int
	LastError, Tail string
	// Deaths counts the processes that were up and failed. It is counted before anybody else hears of one.
	Deaths int
	// Description is nil until the plugin has said what it is once.
	Description *life.Description
	// Units and Tools are what it serves, and Refused what it offered and did not get.
	Units   []Unit
	Tools   []life.Tool
	Refused []life.Refusal
}

// Unit is a unit as it is registered.
type Unit struct {
	Key          string
	StateVersion int64
	// Events are nil for every type.
	Events                  []string
	StateSchema, ViewSchema json.RawMessage
	ConfigBound             bool
}
