package main

import "os"

func signalSelf(string) { os.Exit(1) }
func ignoreTerm()       {}
func joinGroup() error  { return nil }
