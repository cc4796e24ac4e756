package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// Tokens are those that a server takes, each with what its bearer may do. It holds their digests alone, so that no way of printing it tells one. It is not changed
// once it is made.
type Tokens struct{ known []token }

type token struct {
	digest [sha256.Size]byte
	held   scopes
}

// maxTokenFile bounds a token file: 1 MiB. Thousands of tokens fit.
const maxTokenFile = 1 << 20

// TokenFileError is a token file that is refused. It tells nothing of what stands in the file but the place.
type TokenFileError struct {
	File string
	// Line counts from 1; 0 is the file as a whole.
	Line int
	// Reason says what is wrong and what to do.
	Reason string
	Err    error
}

func (e *TokenFileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	msg := fmt.Sprintf("token file %s: %s", at, e.Reason)
	if e.Err != nil {
		cause := e.Err
		if of, ok := cause.(*fs.PathError); ok && of.Path == e.File {
			cause = of.Err // Without the file once more.
		}
		msg += fmt.Sprintf(": %v", cause)
	}
	return msg
}

func (e *TokenFileError) Unwrap() error { return e.Err }

// ReadTokens reads a token file: a line "TOKEN scope[,scope…]" for each, blank lines and those that begin with # aside. Scopes are read, append and admin. The error is a
// *TokenFileError: for a file that others than its owner can get at, that breaks the form, or that has no token.
func ReadTokens(path string) (*Tokens, error) {
	t := &Tokens{}
	err := eachToken(path, func(text string, held scopes) { t.known = append(t.known, token{sha256.Sum256([]byte(text)), held}) })
	if err != nil {
		return nil, err
	}
	return t, nil
}

// FirstToken gives the first token of a token file, for a client. The error is as that of ReadTokens.
func FirstToken(path string) (string, error) {
	first := ""
	err := eachToken(path, func(text string, _ scopes) {
		if first == "" {
			first = text
		}
	})
	return first, err
}

// eachToken reads a token file.
func eachToken(path string, each func(text string, held scopes)) error {
	text, err := readPrivate(path)
	if err != nil {
		return err
	}
	grants, refused := parseTokens(text)
	if refused != nil {
		refused.File = path
		return refused
	}
	for _, one := range grants {
		each(one.text, one.held)
	}
	return nil
}

// readPrivate reads a file that nobody but its owner may get at.
func readPrivate(path string) ([]byte, error) {
	// Without waiting for one who writes to a named pipe, as the configuration is read.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &TokenFileError{File: path, Reason: "it cannot be read", Err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &TokenFileError{File: path, Reason: "it cannot be read", Err: err}
	}
	if info.IsDir() {
		return nil, &TokenFileError{File: path, Reason: "it is a directory: name a file in it"}
	}
	// Windows has no such bits: there it is what the directory allows.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, &TokenFileError{File: path, Reason: fmt.Sprintf("others than its owner can get at it (mode %04o), so its tokens may be known: run chmod 600 %s, and change the tokens if others use this machine", mode, path)}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, &TokenFileError{File: path, Reason: "it cannot be read", Err: err}
	}
	if len(text) > maxTokenFile {
		return nil, &TokenFileError{File: path, Reason: fmt.Sprintf("it is larger than %d bytes: is it another file?", maxTokenFile)}
	}
	return text, nil
}

// grant is a line of a token file.
type grant struct {
	text string
	held scopes
}

// parseTokens reads the text of a token file. No reason repeats a part of a line: who swaps the two fields has a token where a scope is expected.
func parseTokens(text []byte) ([]grant, *TokenFileError) {
	var all []grant
	seen := map[string]int{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		refuse := func(format string, args ...any) ([]grant, *TokenFileError) {
			return nil, &TokenFileError{Line: number, Reason: fmt.Sprintf(format, args...)}
		}
		if len(fields) != 2 {
			return refuse("it does not have two words but %d: a line is a token, a space and its scopes, with commas and no spaces between them, such as read,append", len(fields))
		}
		if strings.ContainsFunc(fields[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
			return refuse("a token has visible ASCII characters alone: no header carries others")
		}
		if first := seen[fields[0]]; first > 0 {
			return refuse("the token stands in line %d already: give it all of its scopes there", first)
		}
		seen[fields[0]] = number
		held := anonymous | 1<<scopeKnown
		for name := range strings.SplitSeq(fields[1], ",") {
			one, ok := named[name]
			if !ok {
				return refuse("scopes are read, append and admin, with commas between them, and another stands there")
			}
			held |= 1 << one
		}
		all = append(all, grant{fields[0], held})
	}
	if len(all) == 0 {
		return nil, &TokenFileError{Reason: "it has no token: add a line such as TOKEN read,append,admin, with a long random token"}
	}
	return all, nil
}

// held says what the bearer of a token may do. It takes as long whatever the token is: all are compared, by digests of one length, without a branch.
func (t *Tokens) held(given string) scopes {
	digest := sha256.Sum256([]byte(given))
	held := anonymous
	for i := range t.known {
		match := subtle.ConstantTimeCompare(digest[:], t.known[i].digest[:])
		held |= scopes(match) * t.known[i].held
	}
	return held
}
