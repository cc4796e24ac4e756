package pluginproto

// MaxMessageBytes is the largest encoded message, in both directions and on both sides: 16 MiB. gRPC's own 4 MiB for servers is
// below one event of the largest size (4 MiB) with anything beside it; go-plugin's 2 GiB for clients lets a plugin make the
// host allocate as much. 16 MiB carries the largest event and the largest tool result, and a host with fifty plugins that
// all send their worst stays below 1 GiB.
const MaxMessageBytes = 16 << 20

// A sender of batches and replies starts a new message once one has reached TargetMessageBytes; a host also ends a batch at TargetEvents events.
const (
	// TargetMessageBytes keeps one message from standing long in the way of others on the same connection.
	TargetMessageBytes = 1 << 20
	// TargetEvents: a batch costs some 0.2 ms of wake-ups on two busy cores, whatever is in it. Four batches of 512 events in flight hide that,
	// twice as fast as two of 256, and more gain nothing. A batch of 512 is still folded within a millisecond or two, and tried one by one soon
	// enough.
	TargetEvents = 512
)
