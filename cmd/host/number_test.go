package main

import (
	"errors"
	"strings"
	"testing"
)

// Every flag of a number says what it takes, whatever is wrong with what it was given, and that is wrong usage, found before a directory or a server is looked for.
func TestFlagsOfNumbers(t *testing.T) {
	for command, takes := range map[string]string{
		"session list --limit":                             takesSome,
		"session show a --at":                              takesSeqOrNone,
		"session tail a --lines":                           takesAny,
		"session tail a --from":                            takesSeq,
		"session append a {\"type\":\"x\"} --expected-seq": takesLength,
		"session fork a --at":                              takesSeq,
		"replay a.jsonl --at":                              takesSeqOrNone,
	} {
		for _, value := range []string{"x", "-2", "1.5", "1e3", "", "9007199254740992", "99999999999999999999", "0x10", "--json"} {
			out, err := call(t, append(strings.Fields(command), value)...)
			var usage *usageError
			if out != "" || !errors.As(err, &usage) || exitCode(err) != exitUsage {
				t.Errorf("%s %q: %q %v", command, value, out, err)
				continue
			}
			flag := strings.Fields(command)[len(strings.Fields(command))-1]
			for _, part := range []string{flag, "\"" + value + "\"", takes, "--help"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s %q: %v does not say %q", command, value, err, part)
				}
			}
			if strings.Contains(err.Error(), "strconv") {
				t.Errorf("%s %q: %v", command, value, err)
			}
		}
	}
	if _, err := call(t, "session", "list", "--all=perhaps"); err == nil || !strings.Contains(err.Error(), `--all "perhaps": it is true or false`) {
		t.Errorf("a flag that is true or false: %v", err)
	}
}
