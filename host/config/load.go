package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// maxBytes bounds a file: 4 MiB. A true one has a few KiB, and the parser holds it many times over.
const maxBytes = 4 << 20

// Load reads the file that is named, or foldhost.yaml in the current directory if name is empty and there is one. Without
// any it gives the zero File. Errors: *ReadError, *Error.
func Load(name string) (*File, error) {
	named := name != ""
	if !named {
		name = DefaultName
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, &ReadError{File: name, Err: err}
	}
	text, err := read(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	if err != nil {
		return nil, &ReadError{File: path, Err: err}
	}
	return Parse(path, text)
}

func read(path string) ([]byte, error) {
	// Without waiting: opening a named pipe that nobody writes to would hang where no signal is heard. One that somebody writes to, such as a
	// shell's <(…), is read to its end.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch info, _ := f.Stat(); {
	case err != nil:
	case len(text) > maxBytes:
		err = fmt.Errorf("%s is larger than %d bytes", path, maxBytes)
	case len(text) == 0 && info != nil && info.Mode()&fs.ModeNamedPipe != 0:
		err = fmt.Errorf("%s is a pipe that nobody wrote to", path)
	}
	return text, err
}

// Parse reads a configuration. path names it in errors, and relative paths in it count from path's directory. The error is an *Error.
func Parse(path string, text []byte) (file *File, err error) {
	r := &reader{dir: filepath.Dir(path)}
	// The parser is a port of a C library and has been seen to panic on rubbish.
	defer func() {
		if v := recover(); v != nil {
			file, err = nil, &Error{File: path, Problems: []Problem{{Reason: fmt.Sprintf("the parser gave up: %v", v)}}}
		}
	}()
	f := &File{Path: path, Plugins: map[string]Plugin{}, Presets: map[string]Preset{}}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, nil
	case err != nil:
		return nil, &Error{File: path, Problems: []Problem{syntax(err, text)}}
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, &Error{File: path, Problems: []Problem{syntax(err, text)}}
		}
		r.fail(&more, "", "holds a second document; one file is one configuration")
	}
	if len(doc.Content) == 1 {
		r.file(doc.Content[0], f)
	}
	if len(r.problems) > 0 {
		return nil, &Error{File: path, Problems: r.problems}
	}
	return f, nil
}

// syntax makes a problem of what the parser says, which has a line at best.
func syntax(err error, text []byte) Problem {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{Reason: said}
	var line int
	if n, _ := fmt.Sscanf(said, "line %d:", &line); n == 1 {
		_, rest, _ := strings.Cut(said, ": ")
		p.Line, p.Column, p.Reason = line, 1, rest
	}
	p.Reason = "is not YAML: " + p.Reason
	if line, column := tabbed(text, p.Line); line > 0 {
		p.Line, p.Column = line, column
		p.Reason += "; the line is indented with a tab, where YAML takes spaces"
	}
	return p
}

// tabbed finds a tab in the indentation of a line that the parser stumbled over, which it calls a character and no more. The parser names the line or one
// beside it, or none (0) where it is the first. 0: there is no tab.
func tabbed(text []byte, near int) (line, column int) {
	at := 0
	for l := range bytes.Lines(text) {
		if at++; at < near-1 || at > near+1 {
			continue
		}
		indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]
		if i := bytes.IndexByte(indent, '\t'); i >= 0 && (line == 0 || at == near) {
			line, column = at, i+1
		}
	}
	return line, column
}
