package event

import "encoding/json"

// MaxInteger is the largest size of seq and time: 2^53−1, what a double (and so every JSON reader) carries exactly.
const MaxInteger = 1<<53 - 1

// MaxDepth is how deep data may nest. Deeper values are refused: readers in other languages recurse.
const MaxDepth = 1000

// DefaultMaxBytes is the default limit on one encoded event: 4 MiB. A log must stay readable page by page, and one
// event is the least that a page can hold.
const DefaultMaxBytes = 4 << 20

// Core types: the only ones that mean something to the core. Every other type is carried as it is.
const (
	TurnStart        = "turn/start"
	TurnEnd          = "turn/end"
	StepStart        = "step/start"
	StepEnd          = "step/end"
	UserMessage      = "user/message"
	AssistantMessage = "assistant/message"
	AssistantChunk   = "assistant/chunk"
	ToolCall         = "tool/call"
	ToolResult       = "tool/result"
	RequestHeader    = "request/header"
	RequestContext   = "request/context"
	EndSeed          = "session/end-seed"
)

// Event is one committed entry of a log. Treat it, and what it points to, as immutable.
type Event struct {
	Type string
	// Seq is the index in the log: contiguous from 0, forever.
	Seq int64
	// Time is in milliseconds since the epoch. It may be negative and may go back.
	Time int64
	// Data is lossless JSON without white space outside strings; never empty ("null" counts as present).
	Data json.RawMessage
	// Op says what the event does to the surface; the zero Op is absent.
	Op Op
	// Sources are the seqs that the event was made from. nil is absent, empty is present and empty: they differ.
	Sources []int64
	// Ignorable says that a reader that does not know Type may skip the event.
	Ignorable bool
}

// OpKind is what a surfaceOp does.
type OpKind uint8

const (
	// OpNone is the absent surfaceOp.
	OpNone OpKind = iota
	// OpAppend puts the event at the end of the surface.
	OpAppend
	// OpReplace puts the event in the place of a range of nodes.
	OpReplace
)

// Op is a surfaceOp. Start and End belong to OpReplace: the seqs of the first and last node replaced, both inclusive,
// meant as positions in the surface and not as numbers.
type Op struct {
	Kind       OpKind
	Start, End int64
}

// Append is the surfaceOp that appends.
func Append() Op { return Op{Kind: OpAppend} }

// Replace is the surfaceOp that replaces the nodes from start to end.
func Replace(start, end int64) Op { return Op{Kind: OpReplace, Start: start, End: end} }

// Draft is an event that has passed the JSON and envelope rules and not yet those of the surface. Faults of its surface
// fields are kept rather than reported, because the rules before them are checked first.
type Draft struct {
	Event
	// OpFault says why a present surfaceOp is neither "append" nor a well-formed replacement.
	OpFault string
	// SourcesFault says why present sourceEventSeqs are not an array of integers ≥ 0.
	SourcesFault string
}

// HasOp says whether surfaceOp is present, well-formed or not.
func (d *Draft) HasOp() bool { return d.Op.Kind != OpNone || d.OpFault != "" }

// HasSources says whether sourceEventSeqs is present, well-formed or not.
func (d *Draft) HasSources() bool { return d.Sources != nil || d.SourcesFault != "" }

// Eligible says whether events of the type can be on the surface.
func Eligible(typ string) bool {
	return typ == UserMessage || typ == AssistantMessage || typ == ToolResult
}
