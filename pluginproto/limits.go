package pluginproto

// MaxMessageBytes is the largest encoded message, in both directions and on both sides: 16 MiB. gRPC's own 4 MiB for servers is
// below one event of the largest size (4 MiB) with anything beside it; go-plugin's 2 GiB for clients lets a plugin make the
// host allocate as much. 16 MiB carries the largest event and the largest tool result, and a host with fifty plugins that
// all send their worst stays below 1 GiB.
const MaxMessageBytes = 16 << 20

// A sender of batches and replies starts a new message once one has reached TargetMessageBytes, or TargetEvents events.
const (
	// TargetMessageBytes keeps one message from standing long in the way of others on the same connection.
	TargetMessageBytes = 1 << 20
	// TargetEvents: 100 events a message are about 40 times as fast as one, and past that the gain is small. 256 is on the flat
	// part of the curve and still one page of a log.
	TargetEvents = 256
)
