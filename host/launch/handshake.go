package launch

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/pluginproto"
)

// maxHandshake bounds the handshake line: 8 KiB. The longest true one carries a certificate of about 1 KiB.
const maxHandshake = 8 << 10

// handshake is the one line that a plugin writes to stdout: CORE|VERSION|NETWORK|ADDRESS|PROTOCOL[|CERTIFICATE[|MULTIPLEX]].
type handshake struct {
	version          int
	network, address string
	certificate      bool
}

// handshakeRules are what a handshake must keep besides its form.
type handshakeRules struct {
	// socketDir is where the socket must lie; empty where there are no such sockets.
	socketDir string
	mtls      bool
}

// HandshakeError says why the first line on a plugin's stdout is no handshake that the host accepts.
type HandshakeError struct {
	// Rule is "missing", "form", "core-version", "version", "network", "address", "protocol" or "certificate".
	Rule   string
	Reason string
	// Remedy says what to do, where that follows from the rule.
	Remedy string
}

func (e *HandshakeError) Error() string { return e.Reason }

// coreVersion is the version of go-plugin's handshake itself.
const coreVersion = 1

// parseHandshake reads the line. It takes any bytes.
func parseHandshake(line []byte, rules handshakeRules) (handshake, *HandshakeError) {
	refuse := func(rule, remedy, format string, args ...any) (handshake, *HandshakeError) {
		return handshake{}, &HandshakeError{Rule: rule, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	fields := strings.Split(string(bytes.TrimSpace(line)), "|")
	if len(fields) < 4 {
		return refuse("form", "a plugin must write nothing to stdout before its handshake; messages belong on stderr",
			"the first line on stdout is not a handshake")
	}
	core, err := strconv.Atoi(fields[0])
	if err != nil {
		return refuse("form", "a plugin must write nothing to stdout before its handshake; messages belong on stderr",
			"the first line on stdout is not a handshake")
	}
	if core != coreVersion {
		return refuse("core-version", "build the plugin with a go-plugin of version 1",
			"the handshake has core version %d, and the host speaks %d", core, coreVersion)
	}
	version, err := strconv.Atoi(fields[1])
	if err != nil {
		return refuse("form", "", "the protocol version in the handshake is %q, which is not a number", printable(fields[1]))
	}
	if reason, remedy := wrongVersion(version, pluginproto.Versions()); reason != "" {
		return refuse("version", remedy, "%s", reason)
	}
	hs := handshake{version: version, network: fields[2], address: fields[3], certificate: len(fields) > 5 && len(fields[5]) > 50}
	switch hs.network {
	case "unix":
		switch dir, file := filepath.Split(hs.address); {
		case rules.socketDir == "":
			return refuse("network", "listen on 127.0.0.1", "the plugin listens on a unix socket, and the host cannot use one here")
		case filepath.Clean(dir) != rules.socketDir || file == "" || strings.ContainsRune(hs.address, 0):
			return refuse("address", "make the socket in the directory that "+pluginproto.SocketDirEnv+" names",
				"the socket %q is not in the directory that the host made for it", printable(hs.address))
		}
	case "tcp":
		host, port, err := net.SplitHostPort(hs.address)
		n, _ := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || n == 0 || !net.ParseIP(host).IsLoopback():
			return refuse("address", "listen on 127.0.0.1", "%q is not an address of the loopback interface", printable(hs.address))
		case !rules.mtls:
			return refuse("network", "listen on a unix socket in the directory that "+pluginproto.SocketDirEnv+" names, or set mtls: true for the plugin",
				"the plugin listens on TCP, which everybody on this machine can reach, and mutual TLS is off")
		}
	default:
		return refuse("network", "listen on a unix socket or on 127.0.0.1", "%q is no network that the host speaks", printable(hs.network))
	}
	if len(fields) < 5 || fields[4] != "grpc" {
		return refuse("protocol", "serve gRPC", "the plugin does not serve gRPC")
	}
	if rules.mtls && !hs.certificate {
		return refuse("certificate", "answer PLUGIN_CLIENT_CERT with a certificate in the sixth field of the handshake, or set mtls: false for the plugin",
			"mutual TLS is on and the handshake has no certificate")
	}
	return hs, nil
}

// wrongVersion names both sides' versions and who has to move.
func wrongVersion(theirs int, ours []int) (reason, remedy string) {
	lowest, highest := ours[0], ours[0]
	for _, v := range ours {
		if v == theirs {
			return "", ""
		}
		lowest, highest = min(lowest, v), max(highest, v)
	}
	span := strconv.Itoa(lowest)
	if highest != lowest {
		span = fmt.Sprintf("%d to %d", lowest, highest)
	}
	reason = fmt.Sprintf("the plugin speaks protocol version %d, and this host speaks %s", theirs, span)
	if theirs > highest {
		return reason, "the plugin is too new: upgrade the host, or use an older release of the plugin"
	}
	return reason, "the plugin is too old: rebuild it with the SDK of this host, or use a newer release of it"
}

// noHandshake is the reason when there was no line at all, or none that ended.
func noHandshake(tooLong bool) *HandshakeError {
	if tooLong {
		return &HandshakeError{Rule: "form", Reason: fmt.Sprintf("the first line on stdout is longer than %d bytes and no handshake", maxHandshake),
			Remedy: "a plugin must write nothing to stdout before its handshake; messages belong on stderr"}
	}
	return &HandshakeError{Rule: "missing", Reason: "stdout ended before a handshake came"}
}
