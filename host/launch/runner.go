package launch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"github.com/hashicorp/go-plugin/runner"
)

// run is go-plugin's view of the process that is being started, and what is learned meanwhile. go-plugin gets one checked
// handshake line and no other output.
//
// mu guards what follows it.
type run struct {
	start func(env []string) (*child, error)
	// env is what go-plugin wants in the environment.
	env   []string
	rules handshakeRules
	// rest takes what comes on stdout after the handshake.
	rest io.WriteCloser
	// line carries the handshake to go-plugin, and ends when the process has none to give or has ended.
	line      *io.PipeReader
	lineWrite *io.PipeWriter

	mu       sync.Mutex
	child    *child
	startErr error
	refused  *HandshakeError
	// hs counts when got is set; instead is the beginning of what came on stdout in its place.
	hs      handshake
	got     bool
	instead string
	// ended: whatever is started from now on is ended at once.
	ended string
}

var _ runner.Runner = (*run)(nil)

func newRun(rules handshakeRules, rest io.WriteCloser) *run {
	r := &run{rules: rules, rest: rest}
	r.line, r.lineWrite = io.Pipe()
	return r
}

// Start implements runner.Runner. go-plugin's context is not ours: the start has a deadline of its own.
func (r *run) Start(context.Context) error {
	c, err := r.start(r.env)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // The path may be that of a descriptor; whose file it is stands in the StartError.
	}
	r.mu.Lock()
	r.child, r.startErr = c, err
	ended := r.ended
	r.mu.Unlock()
	if err != nil {
		r.lineWrite.Close()
		return err
	}
	if ended != "" {
		c.kill(ended)
	}
	return nil
}

// end kills the process, or the one that is about to be.
func (r *run) end(reason string) {
	r.mu.Lock()
	r.ended = reason
	c := r.child
	r.mu.Unlock()
	if c != nil {
		c.kill(reason)
	}
}

// process is what was started; nil when nothing was.
func (r *run) process() *child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.child
}

// why says in our words what went wrong; nil when that is not known here.
func (r *run) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.startErr != nil:
		return r.startErr
	case r.refused != nil:
		return r.refused
	}
	return nil
}

// endsByItself says that the process may be about to end: stdout is at its end, or holds something else, as with a program that is
// no plugin and says how it is used; or the connection that it promised is at its end.
func (r *run) endsByItself() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got || r.refused != nil && (r.refused.Rule == "missing" || r.refused.Rule == "form")
}

func (r *run) shookHands() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// said is what came on stdout instead of a handshake.
func (r *run) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instead
}

// readStdout takes the first line for a handshake and hands on the rest.
func (r *run) readStdout(f *os.File) {
	first := make([]byte, 0, 256)
	buf := make([]byte, pipeBuffer)
	waiting := true
	for {
		n, err := f.Read(buf)
		p := buf[:n]
		if waiting {
			end := bytes.IndexByte(p, '\n')
			switch {
			case end >= 0 && len(first)+end <= maxHandshake:
				r.handshake(append(first, p[:end]...), p[end+1:])
				waiting, p = false, p[end+1:]
			case len(first)+len(p) > maxHandshake:
				r.noHandshake(append(first, p...), true)
				waiting, p = false, nil
			case err != nil:
				if len(first)+len(p) > 0 {
					r.handshake(append(first, p...), nil)
				} else {
					r.noHandshake(nil, false)
				}
				waiting, p = false, nil
			default:
				first, p = append(first, p...), nil
			}
		}
		r.rest.Write(p)
		if err != nil {
			r.rest.Close()
			r.lineWrite.Close()
			return
		}
	}
}

func (r *run) handshake(line, after []byte) {
	hs, refused := parseHandshake(line, r.rules)
	if refused != nil {
		text := line
		if len(after) > 0 {
			text = append(append(text, '\n'), after...)
		}
		r.refuse(refused, text)
		return
	}
	r.mu.Lock()
	r.hs, r.got = hs, true
	r.mu.Unlock()
	r.lineWrite.Write(append(line, '\n'))
}

func (r *run) noHandshake(read []byte, tooLong bool) { r.refuse(noHandshake(tooLong), read) }

// insteadBytes is how much of what came instead of a handshake is kept: 4 KiB, a screenful.
const insteadBytes = 4 << 10

func (r *run) refuse(why *HandshakeError, text []byte) {
	r.mu.Lock()
	r.refused, r.instead = why, printable(string(text[:min(len(text), insteadBytes)]))
	r.mu.Unlock()
	r.lineWrite.Close()
}

// Wait implements runner.AttachedRunner: it waits for the process.
func (r *run) Wait(context.Context) error {
	r.mu.Lock()
	c := r.child
	r.mu.Unlock()
	<-c.exited
	return nil
}

// Kill implements runner.AttachedRunner. go-plugin kills what does not shake hands; so do we, once its exit code is known.
func (r *run) Kill(context.Context) error { return nil }

func (r *run) Stdout() io.ReadCloser { return r.line }

// Stderr is empty for go-plugin, whose parser panics on what some programs write.
func (r *run) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

func (r *run) Name() string { return "plugin" }

func (r *run) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.child == nil {
		return ""
	}
	return strconv.Itoa(r.child.pid())
}

// Diagnose guesses in go-plugin's own runner; ours has facts, and they stand in the StartError.
func (r *run) Diagnose(context.Context) string { return "" }

func (r *run) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (r *run) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
