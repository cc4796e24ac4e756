package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What messages and documents tell a user to call is there: each command of foldhost, its flags, and each page.
func TestWhatIsRecommendedExists(t *testing.T) {
	// What follows the name of the program in sentences that are about it.
	prose := []string{"at", "database", "folds", "sdk", "this", "unit"}
	commands, pages := 0, 0
	for path, text := range texts(t) {
		lines := coded(text)
		if filepath.Ext(path) == ".go" {
			lines = literals(text)
		}
		for _, text := range lines {
			for _, call := range calls(text) {
				if len(call.words) > 0 && slices.Contains(prose, call.words[0]) {
					continue
				}
				commands++
				if wrong := call.wrong(root()); wrong != "" {
					t.Errorf("%s: %q: %s", path, text, wrong)
				}
			}
			for _, name := range page.FindAllString(text, -1) {
				pages++
				if _, err := os.Stat(filepath.Join(module, name)); err != nil {
					t.Errorf("%s: %q: %v", path, text, err)
				}
			}
		}
	}
	if commands < 50 || pages < 5 {
		t.Errorf("only %d commands and %d pages were found: has the form of messages changed?", commands, pages)
	}
}

const module = "../.."

// Links of documents lead to files that there are, and to headings that these have.
func TestLinksLeadSomewhere(t *testing.T) {
	anchors := func(text string) (all []string) {
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			all = append(all, strings.ReplaceAll(regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
		}
		return all
	}
	links := 0
	for path, text := range texts(t) {
		if filepath.Ext(path) != ".md" {
			continue
		}
		for _, link := range regexp.MustCompile(`\]\(([^)"]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(link[1], "#")
			target := text
			if file != "" {
				raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				target = string(raw)
			}
			if anchor != "" && !slices.Contains(anchors(target), anchor) {
				t.Errorf("%s: %s: there is no such heading", path, link[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// texts are the sources and documents by their paths, tests aside.
func texts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if name != module && (strings.HasPrefix(name, ".") && name != ".." || slices.Contains([]string{"node_modules", "testdata", "bin"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(path)
		if strings.HasSuffix(path, "_test.go") || ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all[path] = string(text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// literals are the lines of the strings of a Go source.
func literals(text string) (all []string) {
	var s scanner.Scanner
	file := token.NewFileSet()
	s.Init(file.AddFile("", -1, len(text)), []byte(text), nil, 0)
	for {
		switch _, tok, lit := s.Scan(); tok {
		case token.EOF:
			return all
		case token.STRING:
			if value, err := strconv.Unquote(lit); err == nil {
				all = append(all, strings.Split(value, "\n")...)
			}
		}
	}
}

// coded are the lines of the code blocks of a document and the code within its lines.
func coded(text string) (all []string) {
	block := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			block = !block
		case block:
			all = append(all, line)
		default:
			for i, part := range strings.Split(line, "`") {
				if i%2 == 1 {
					all = append(all, part)
				}
			}
		}
	}
	return all
}

// said is a command as it is written somewhere.
type said struct{ words, flags []string }

var (
	program = regexp.MustCompile(`(?:^|[^-\w./]|\bbin/)foldhost ([a-z][a-z-]*(?: [a-z][a-z-]*)?)?`)
	flag    = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	// part ends a part of a sentence, or a command.
	part = regexp.MustCompile("[.,;:](?:\\s|$)|[|&`'(]")
	page = regexp.MustCompile(`\bdocs/[a-z-]+\.md\b`)
)

// calls are the commands in a line; the flags of one stand before whatever ends a part of a sentence.
func calls(line string) (all []said) {
	places := program.FindAllStringSubmatchIndex(line, -1)
	for i, at := range places {
		rest := line[at[1]:]
		if i+1 < len(places) {
			rest = line[at[1]:max(at[1], places[i+1][0])]
		}
		if end := part.FindStringIndex(rest); end != nil {
			rest = rest[:end[0]]
		}
		one := said{}
		if at[2] >= 0 {
			one.words = strings.Fields(line[at[2]:at[3]])
		}
		for _, f := range flag.FindAllStringSubmatch(rest, -1) {
			one.flags = append(one.flags, f[1])
		}
		if len(one.words)+len(one.flags) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// wrong says what of a command there is not.
func (s *said) wrong(cmd *cobra.Command) string {
	for _, word := range s.words {
		i := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word })
		switch {
		case i >= 0:
			cmd = cmd.Commands()[i]
		case cmd.HasSubCommands():
			return "there is no command " + strconv.Quote(cmd.CommandPath()+" "+word)
		}
	}
	cmd.InitDefaultHelpFlag()
	for _, name := range s.flags {
		has := func(flags *pflag.FlagSet) bool { return flags.Lookup(name) != nil }
		if !has(cmd.Flags()) && !has(cmd.InheritedFlags()) {
			return strconv.Quote(cmd.CommandPath()) + " has no flag --" + name
		}
	}
	return ""
}
