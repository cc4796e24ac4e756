package serve

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/pluginproto"
)

// socket is the plugin's socket as its handshake line names it, so that it can be removed when the host is gone. mu guards path.
type socket struct {
	// asked says that the host has asked the process to exit.
	asked atomic.Bool

	mu   sync.Mutex
	path string
	line chan struct{} // closed once the line was said
}

// relay lets go-plugin print its line into a pipe, and passes it on to out. It sets os.Stdout, to which go-plugin prints.
func (s *socket) relay(out *os.File) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the handshake: %w", err)
	}
	os.Stdout = w
	s.line = make(chan struct{})
	go func() {
		defer close(s.line)
		defer r.Close()
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		s.path = socketOf(line)
		s.mu.Unlock()
		io.WriteString(out, line)
	}()
	return nil
}

// said says whether the line went out. Where go-plugin has returned without one, nobody will.
func (s *socket) said() bool {
	select {
	case <-s.line:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// socketOf reads the address out of a handshake line: core version, protocol version, network, address, and more.
func socketOf(line string) string {
	parts := strings.SplitN(line, "|", 5)
	if len(parts) < 5 || parts[2] != "unix" {
		return ""
	}
	return parts[3]
}

// grace is how long a process that was asked to exit has for what its main does after Serve, once the lifeline has ended. A host
// kills after two seconds.
const grace = time.Second

// watch reads the lifeline until it ends: then the host has ended, or has done with the process. It removes the socket, and the
// directory where that was made for it and is empty, and calls exit.
func (s *socket) watch(lifeline io.Reader, exit func()) {
	io.Copy(io.Discard, lifeline)
	if s.asked.Load() {
		time.Sleep(grace)
	}
	s.remove()
	exit()
}

func (s *socket) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return
	}
	os.Remove(s.path)
	if dir := os.Getenv(pluginproto.SocketDirEnv); dir != "" && filepath.Dir(s.path) == filepath.Clean(dir) {
		os.Remove(dir) // Fails where somebody else's socket is in it.
	}
}
