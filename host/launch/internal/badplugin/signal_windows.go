package main

import (
	"os"
	"os/exec"
)

func signalSelf(string)    { os.Exit(1) }
func ignoreTerm()          {}
func joinGroup() error     { return nil }
func leaveGroup(*exec.Cmd) {}
