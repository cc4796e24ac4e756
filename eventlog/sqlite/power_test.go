package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"
)

// powerDisk is the real disk, and knows what would be left of it if the power failed: what was synced, and of what was written since any sectors, in any order. At
// one operation the power does fail, and no later one works.
type powerDisk struct {
	vfs.VFSFilename
	random *rand.Rand

	mu    sync.Mutex
	files map[string]*platter
	// left is how many operations there are until the power fails.
	left int
	// image is what is on disk then, nil before.
	image map[string][]byte
}

// platter is one file: what was synced, and the writes since.
type platter struct {
	synced []byte
	since  []write
}

// write is some bytes at a place, or a new size.
type write struct {
	at   int64
	data []byte
}

const sector = 512

func (p *platter) apply(w write, keep func() bool) {
	if w.data == nil {
		if keep() {
			p.synced = resize(p.synced, int(w.at))
		}
		return
	}
	for off := 0; off < len(w.data); off += sector {
		part := w.data[off:min(off+sector, len(w.data))]
		if at := int(w.at) + off; keep() {
			p.synced = resize(p.synced, max(len(p.synced), at+len(part)))
			copy(p.synced[at:], part)
		}
	}
}

func resize(b []byte, n int) []byte {
	if n <= len(b) {
		return b[:n]
	}
	return append(b, make([]byte, n-len(b))...)
}

var errPower = errors.New("there is no power")

// step says whether an operation still takes place; fail is told when it is the one that does not.
func (d *powerDisk) step() error {
	if d.image != nil {
		return errPower
	}
	if d.left--; d.left > 0 {
		return nil
	}
	d.image = map[string][]byte{}
	for path, p := range d.files {
		// Sometimes nothing gets through, sometimes nearly all.
		chance := d.random.Float64()
		left := platter{synced: slices.Clone(p.synced)}
		for _, w := range p.since {
			left.apply(w, func() bool { return d.random.Float64() < chance })
		}
		d.image[filepath.Base(path)] = left.synced
	}
	return errPower
}

func (d *powerDisk) note(path string, w write) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step(); err != nil {
		return err
	}
	d.files[path].since = append(d.files[path].since, w)
	return nil
}

func (d *powerDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	path := name.String()
	if d.files[path] == nil {
		data, err := os.ReadFile(path)
		if err != nil {
			_ = f.Close()
			return nil, flags, err
		}
		d.files[path] = &platter{synced: data}
	}
	return &powerFile{f.(diskFile), d, path}, flags, nil
}

type powerFile struct {
	diskFile
	d    *powerDisk
	path string
}

func (f *powerFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.note(f.path, write{at: off, data: slices.Clone(p)}); err != nil {
		return 0, err
	}
	return f.diskFile.WriteAt(p, off)
}

func (f *powerFile) Truncate(size int64) error {
	if err := f.d.note(f.path, write{at: size}); err != nil {
		return err
	}
	return f.diskFile.Truncate(size)
}

// SizeHint is only a hint.
func (f *powerFile) SizeHint(int64) error { return nil }

func (f *powerFile) Sync(vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step(); err != nil {
		return err
	}
	p := f.d.files[f.path]
	for _, w := range p.since {
		p.apply(w, func() bool { return true })
	}
	p.since = nil
	return nil
}

// The power fails while several sessions are written to, rows are saved, logs made and deleted and the WAL is taken over: what was acknowledged under full durability
// is there, and whatever the durability nothing is half there.
func TestThePowerFails(t *testing.T) {
	rounds := 60
	if underRace {
		rounds = 3
	}
	for _, durability := range []Durability{Full, Relaxed} {
		for round := range rounds {
			t.Run(fmt.Sprint(durability, " ", round), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(round), 1))
				disk := &powerDisk{VFSFilename: vfs.Find("os").(vfs.VFSFilename), random: random, files: map[string]*platter{}, left: 1 << 30}
				dir := memoryDir(t)
				closeStore(t, reopen(t, dir, Options{}))
				s, err := Open(t.Context(), dir, Options{base: disk, Durability: durability, walPages: 5 + random.IntN(60)})
				if err != nil {
					t.Fatal(err)
				}
				disk.mu.Lock()
				disk.left = 10 + random.IntN(1500)
				disk.mu.Unlock()
				book := newLedger()
				w := workload{s: s, seed: uint64(round), workers: 4, report: book.take}
				if err := w.run(func() bool { return false }); !errors.Is(err, errPower) {
					t.Errorf("the workload ended with %v", err)
				}
				end(s)

				after := memoryDir(t)
				for name, data := range disk.image {
					if err := os.WriteFile(filepath.Join(after, name), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				s = reopen(t, after, Options{})
				book.check(t, s, durability)
				clean(t, s)
				// And it goes on.
				again := workload{s: s, seed: uint64(round) + 1000, workers: 2, report: book.take}
				n := 0
				var mu sync.Mutex
				if err := again.run(func() bool { mu.Lock(); defer mu.Unlock(); n++; return n > 20 }); err != nil {
					t.Errorf("afterwards: %v", err)
				}
				closeStore(t, s)
				book.check(t, reopen(t, after, Options{}), Full)
			})
		}
	}
}
