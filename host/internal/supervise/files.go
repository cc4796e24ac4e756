package supervise

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/launch"
)

// Files remembers what is known of plugin files, so that one that has not changed is hashed and asked what it is once: fifty plugins
// of 20 MB would be hashed for a second. A file counts as the same while the system says so and its size and times are the same.
//
// Where there is a directory, descriptions are also kept in it, by the digest of the file and what it is started with: after a new start of the host it is known which event
// types a plugin owns before it is up, and also when it does not come up at all. What lies there is a shortcut: what is damaged or cannot be
// written is as if it were not there. Safe for concurrent use.
type Files struct {
	// Dir keeps descriptions; empty keeps none.
	Dir string

	mu    sync.Mutex
	known map[string]*fileFacts
}

// fileFacts are those of one version of a file.
type fileFacts struct {
	info fs.FileInfo
	// hashing has room for the one who hashes; others wait for it, or for their contexts.
	hashing chan struct{}
	// Guarded by Files.mu: digest is empty until the file was hashed, descriptions are there once the plugin was asked, by variant.
	digest       string
	descriptions map[string]*life.Description
}

// look finds the facts of the file at path, or begins new ones. nil when there is no file.
func (f *Files) look(path string) *fileFacts {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.known[path]; k != nil && os.SameFile(k.info, info) && k.info.Size() == info.Size() && k.info.ModTime().Equal(info.ModTime()) {
		return k
	}
	k := &fileFacts{info: info, hashing: make(chan struct{}, 1)}
	// Links to one file share its facts.
	for _, other := range f.known {
		if os.SameFile(other.info, info) && other.info.Size() == info.Size() && other.info.ModTime().Equal(info.ModTime()) {
			k = other
			break
		}
	}
	if f.known == nil {
		f.known = map[string]*fileFacts{}
	}
	f.known[path] = k
	return k
}

// Digest hashes a file, unless it was hashed before: then it answers also where ctx has ended.
func (f *Files) Digest(ctx context.Context, path string) (string, error) {
	k := f.look(path)
	if k == nil {
		_, err := launch.Inspect(path)
		return "", err
	}
	return f.digest(ctx, path, k)
}

// errReplaced says that the version of a file that was to be hashed is there no more.
var errReplaced = errors.New("the file was replaced before it was hashed")

// digest is Digest of one version of the file, which may have been replaced by now.
func (f *Files) digest(ctx context.Context, path string, k *fileFacts) (string, error) {
	if digest := f.hashed(k); digest != "" {
		return digest, nil
	}
	select {
	case k.hashing <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-k.hashing }()
	if digest := f.hashed(k); digest != "" {
		return digest, nil
	}
	file, err := launch.Inspect(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, err := file.Sum(ctx)
	if err != nil {
		return "", err
	}
	if f.look(path) != k {
		return "", errReplaced
	}
	digest := hex.EncodeToString(sum[:])
	f.mu.Lock()
	k.digest = digest
	f.mu.Unlock()
	return digest, nil
}

func (f *Files) hashed(k *fileFacts) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return k.digest
}

// variant tells apart what one file is started as: an interpreter is as many plugins as it is given scripts. Empty for no arguments and no
// variables.
func variant(s *life.Spec) string {
	if len(s.Args) == 0 && len(s.Env) == 0 {
		return ""
	}
	raw, _ := json.Marshal([2][]string{s.Args, s.Env}) // strings have no error
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func (f *Files) description(k *fileFacts, variant string) *life.Description {
	if k == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return k.descriptions[variant]
}

func (f *Files) describe(k *fileFacts, variant string, d *life.Description) {
	if k == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if k.descriptions == nil {
		k.descriptions = map[string]*life.Description{}
	}
	k.descriptions[variant] = d
}

// recall looks in the directory for what the plugin said about itself the last time; nil when nothing is known. An error is one of reading
// the plugin's file or the directory.
func (f *Files) recall(ctx context.Context, spec *life.Spec) (*life.Description, error) {
	if f.Dir == "" {
		return nil, nil
	}
	digest, err := f.Digest(ctx, spec.Path)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(f.kept(digest, variant(spec)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := life.DecodeDescription(raw)
	if err != nil {
		return nil, nil // damaged, or of another version: it is asked again
	}
	return d, nil
}

// keep puts a description into the directory.
func (f *Files) keep(ctx context.Context, spec *life.Spec, d *life.Description) error {
	if f.Dir == "" {
		return nil
	}
	digest, err := f.Digest(ctx, spec.Path)
	if err != nil {
		return err
	}
	kept := f.kept(digest, variant(spec))
	if had, err := os.ReadFile(kept); err == nil && bytes.Equal(had, d.Raw) {
		return nil
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	// Whole or not at all: another host may read it meanwhile.
	tmp, err := os.CreateTemp(f.Dir, "new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(d.Raw)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), kept)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

func (f *Files) kept(digest, variant string) string {
	if variant != "" {
		sum := sha256.Sum256([]byte(digest + variant)) // two digests in one name would be too long for some file systems
		digest = hex.EncodeToString(sum[:])
	}
	return filepath.Join(f.Dir, digest+".describe")
}
