// Package launch starts plugin processes, talks to them over one connection, and ends them.
//
// It owns a process from the checks of its file to the last byte of its output: the file, the environment, the socket, the
// process group, stdin, stdout, stderr, the connection, the exit. It knows nothing of units, tools or restarts: what is asked over the
// connection and whether to try again is the caller's.
//
// A plugin is not trusted. Whatever it writes, wherever it stops, whoever holds its pipes: nothing here waits for it without a
// deadline, grows with what it says, or survives it. go-plugin does the handshake over a runner of our own; it never sees the
// plugin's output beyond a handshake line that was checked, and its connection, log parsing and killing are not used.
//
// State: a Launcher's set of processes is guarded by its mutex; a Process is guarded as its fields say. No lock is held across a
// start, a wait or an RPC. Each process has one goroutine that reaps it, one for each of stdout and stderr, and one that
// watches the connection; Exited and Launcher.Close wait for them.
package launch
