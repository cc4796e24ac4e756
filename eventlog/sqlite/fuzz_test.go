package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func FuzzExtra(f *testing.F) {
	for _, e := range []event.Event{
		{Ignorable: true}, {Op: event.Append()}, {Op: event.Replace(5, 3), Sources: []int64{5, 3, 4}}, {Sources: []int64{}}, {Sources: []int64{0, event.MaxInteger}, Ignorable: true},
	} {
		f.Add(appendExtra(nil, &e))
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"surfaceOp":"append","surfaceOp":"append"}`))
	f.Add([]byte(`{"ignorable":false}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e, again event.Event
		if decodeExtra(raw, &e) != nil {
			return
		}
		if err := decodeExtra(appendExtra(nil, &e), &again); err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%q is %+v, and written again %+v (%v)", raw, e, again, err)
		}
	})
}

// A file in the place of the database is judged by its header alone, and never written to.
func FuzzHeader(f *testing.F) {
	dir := f.TempDir()
	s := reopen(f, dir, Options{})
	closeStore(f, s)
	whole, err := os.ReadFile(filepath.Join(dir, dbName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:headerSize])
	f.Add(whole[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := inspectHeader("x", bytes.NewReader(raw))
		if err != nil && !told(err) {
			t.Errorf("%v (%T)", err, err)
		}
		if err == nil && len(raw) < headerSize {
			t.Errorf("%d bytes are a database", len(raw))
		}
	})
}

func FuzzLockFile(f *testing.F) {
	f.Add([]byte("123\n"))
	f.Add([]byte("-1\n"))
	f.Add([]byte("123"))
	f.Add([]byte("123\nhttp://127.0.0.1:7420\n"))
	path := filepath.Join(f.TempDir(), lockName)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if pid, url := readOwner(file); pid < 0 || len(url) > maxOwner || pid == 0 && url != "" {
			t.Errorf("pid %d, URL %q", pid, url)
		}
	})
}
