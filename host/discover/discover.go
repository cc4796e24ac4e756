// Package discover finds plugins in a directory. It looks at names and files and runs nothing.
//
// The rule: every executable regular file directly in the directory is a plugin, named after the file less ".exe"; links are followed.
// Everything else is passed over, and never silently: each file that is not a plugin is in the result with the reason. The package
// holds no state.
package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/host/launch"
)

// Found is a file that is a plugin.
type Found struct {
	// Name is the plugin's, Path absolute.
	Name, Path string
	Format     launch.Format
	// Warnings are what an operator should change and that does not stop the plugin.
	Warnings []string
}

// Passed is a file that is no plugin.
type Passed struct {
	Name, Path string
	// Rule is one of the File constants of launch, or RuleHidden or RuleNameTaken.
	Rule           string
	Reason, Remedy string
	// Refused says that it would be a plugin, and is not safe to run or cannot be; otherwise it is simply something else.
	Refused bool
}

// Rules of this package.
const (
	RuleHidden    = "hidden"
	RuleNameTaken = "name-taken"
)

// Error is a directory that could not be read, or must not be.
type Error struct {
	Dir    string
	Reason string
	Remedy string
	Err    error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("plugin directory %s: %s", e.Dir, e.Reason)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}
func (e *Error) Unwrap() error { return e.Err }

// Dir looks through a directory. Both lists are sorted by name. A directory that is missing is an error only if somebody named it. The
// error is an *Error.
func Dir(dir string, named bool) (plugins []Found, passed []Passed, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, &Error{Dir: dir, Reason: "has no absolute path", Err: err}
	}
	entries, err := os.ReadDir(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &Error{Dir: abs, Reason: "does not exist", Remedy: "make it, or name another", Err: err}
	case err != nil:
		return nil, nil, &Error{Dir: abs, Reason: "cannot be read: " + plain(err), Err: err}
	}
	taken := map[string]string{}
	for _, entry := range entries { // Sorted by file name: "todo" comes before "todo.exe".
		f, p := look(abs, entry.Name())
		if p == nil {
			if other, is := taken[f.Name]; is {
				p = &Passed{Name: f.Name, Path: f.Path, Rule: RuleNameTaken, Refused: true,
					Reason: fmt.Sprintf("%s has the name %q already", other, f.Name), Remedy: "rename or remove one of the two"}
			}
		}
		if p != nil {
			passed = append(passed, *p)
			continue
		}
		taken[f.Name] = entry.Name()
		plugins = append(plugins, *f)
	}
	slices.SortFunc(plugins, func(a, b Found) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(passed, func(a, b Passed) int { return strings.Compare(a.Path, b.Path) })
	return plugins, passed, nil
}

// look judges one entry of a directory: a plugin, or passed over.
func look(dir, file string) (*Found, *Passed) {
	path := filepath.Join(dir, file)
	p := &Passed{Name: Name(file), Path: path}
	if strings.HasPrefix(file, ".") {
		p.Rule, p.Reason = RuleHidden, "is hidden"
		return nil, p
	}
	f, err := launch.Inspect(path)
	if err != nil {
		p.Rule, p.Reason, p.Refused = launch.FileUnreadable, err.Error(), true
		var fault *launch.FileError
		if errors.As(err, &fault) {
			p.Rule, p.Reason, p.Remedy = fault.Rule, fault.Reason, fault.Remedy
			p.Refused = fault.Rule != launch.FileDirectory && fault.Rule != launch.FileNotExecutable && fault.Rule != launch.FileIrregular
		}
		return nil, p
	}
	defer f.Close()
	return &Found{Name: p.Name, Path: path, Format: f.Format, Warnings: f.Warnings}, nil
}

// Name is the name of the plugin in a file.
func Name(file string) string {
	file = filepath.Base(file)
	if ext := filepath.Ext(file); strings.EqualFold(ext, ".exe") && len(ext) < len(file) {
		file = strings.TrimSuffix(file, ext)
	}
	return file
}

func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
