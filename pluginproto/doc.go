// Package pluginproto is the contract between the host and a plugin process: the protobuf messages and the service, the
// go-plugin handshake, the protocol versions, and the limits that both sides keep. README.md is the protocol as a document.
//
// It holds no behaviour beyond wiring the service into go-plugin, knows no other package of foldhost, and has no state.
package pluginproto

//go:generate ./generate.sh
