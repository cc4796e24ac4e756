package launch

import (
	"os"
	"os/exec"
	"syscall"
)

// Windows compiles and is not supported: the process is ended without what it started.

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{HideWindow: true} }
func awaitExit(int) bool                      { return false }
func killGroup(cmd *exec.Cmd)                 { cmd.Process.Kill() }
func terminateGroup(*exec.Cmd)                {}
func signalOf(*os.ProcessState) string        { return "" }
