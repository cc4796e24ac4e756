//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// nodes are programs that follow with the TypeScript client; its chaos-client.mjs says how they are spoken to.
type nodes struct {
	all []*node
}

type node struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    bytes.Buffer
	saying  sync.Mutex
}

// Write takes what it says of errors.
func (n *node) Write(p []byte) (int, error) {
	n.saying.Lock()
	defer n.saying.Unlock()
	return n.said.Write(p)
}

func (n *node) words() string {
	n.saying.Lock()
	defer n.saying.Unlock()
	return n.said.String()
}

// startNodes starts one that follows all sessions on one connection, and one that has a connection for each. Without Node, or without the client that `make client` builds, there are none,
// unless FOLDHOST_NEED_NODE asks for them.
func startNodes(t *testing.T, ctx context.Context, url string, sessions []string) *nodes {
	t.Helper()
	missing := t.Logf
	if os.Getenv("FOLDHOST_NEED_NODE") != "" {
		missing = t.Fatalf
	}
	dir := filepath.Join("..", "..", "clients", "typescript")
	binary, err := exec.LookPath("node")
	if err != nil {
		missing("skipped: the clients in TypeScript, since there is no node here")
		return &nodes{}
	}
	if _, err := os.Stat(filepath.Join(dir, "dist", "index.js")); err != nil {
		missing("skipped: the clients in TypeScript, which are not built: make client does it")
		return &nodes{}
	}
	all := &nodes{}
	for name, more := range map[string][]string{"node, all on one connection": nil, "node, one connection each": {"--single"}} {
		args := append([]string{filepath.Join(dir, "test", "chaos-client.mjs"), "--wait", "90000"}, more...)
		n := &node{name: name, process: exec.CommandContext(ctx, binary, append(append(args, url), sessions...)...)}
		n.process.Stderr = n
		n.process.WaitDelay = time.Second
		if n.in, err = n.process.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := n.process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		n.out = bufio.NewReaderSize(out, 1<<20)
		if err := n.process.Start(); err != nil {
			t.Fatal(err)
		}
		all.all = append(all.all, n)
		t.Cleanup(func() {
			n.in.Close()
			if n.process.ProcessState == nil {
				n.process.Process.Kill()
				n.process.Wait()
			}
		})
	}
	return all
}

// catchUp tells them what there is, and waits until they have it, or have given up.
func (all *nodes) catchUp(t *testing.T, truths map[string]*truth) (connections int) {
	t.Helper()
	type want struct {
		Seq    int                        `json:"seq"`
		Values map[string]json.RawMessage `json:"values"`
	}
	wants := map[string]want{}
	for id, log := range truths {
		w := want{len(log.events) - 1, map[string]json.RawMessage{}}
		for key, value := range log.values {
			w.Values[key] = value
		}
		wants[id] = w
	}
	line, err := json.Marshal(wants)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all.all {
		if _, err := n.in.Write(slices.Concat([]byte("end "), line, []byte("\n"))); err != nil {
			t.Errorf("%s: %v\n%s", n.name, err, n.words())
		}
	}
	for _, n := range all.all {
		var last string
		for {
			line, err := n.out.ReadString('\n')
			if err != nil {
				break
			}
			last = line
		}
		err := n.process.Wait()
		var report struct {
			OK       bool `json:"ok"`
			Sessions map[string]struct {
				Events, Connections int
				Complete            bool
				Gaps, Early, Resets []json.RawMessage
				End                 string
			} `json:"sessions"`
		}
		if bad := json.Unmarshal([]byte(last), &report); bad != nil || err != nil || !report.OK || len(report.Sessions) != len(truths) {
			t.Errorf("%s: %v, %v: %.3000s\n%s", n.name, err, bad, last, n.words())
			continue
		}
		for id, s := range report.Sessions {
			connections += s.Connections
			if s.Events != len(truths[id].events) || !s.Complete || len(s.Gaps)+len(s.Early)+len(s.Resets) > 0 || s.End != "" {
				t.Errorf("%s, session %s: %+v, and the host has %d events", n.name, id, s, len(truths[id].events))
			}
		}
	}
	return connections
}
