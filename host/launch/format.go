package launch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Format is what a file's first bytes say it is. The zero Format is none that can be run.
type Format struct {
	// Kind is "elf", "mach-o", "pe", "script" or empty.
	Kind string
	// OS and Archs are in Go's names; a Mach-O file may hold several. An architecture that Go does not know is "unknown".
	OS    string
	Archs []string
	// Interpreter is what the first line of a script names, byte for byte; empty where it names none.
	Interpreter string
	// Truncated says that the file ends before what its header promises.
	Truncated bool
}

// headerBytes is how much of a file is read to tell its format: the headers of all formats lie in it.
const headerBytes = 4 << 10

func readFormat(r io.ReaderAt, size int64) Format {
	buf := make([]byte, headerBytes)
	n, _ := r.ReadAt(buf, 0)
	f := parseFormat(buf[:n])
	f.Truncated = f.Kind == "elf" && elfEnd(buf[:n]) > uint64(size)
	return f
}

// parseFormat reads the beginning of a file. It takes any bytes.
func parseFormat(b []byte) Format {
	switch {
	case bytes.HasPrefix(b, []byte("#!")):
		line, _, _ := bytes.Cut(b[2:], []byte{'\n'})
		// As the system reads it: a carriage return at the end belongs to the name.
		interpreter := strings.TrimLeft(string(line), " \t")
		if end := strings.IndexAny(interpreter, " \t\x00"); end >= 0 {
			interpreter = interpreter[:end]
		}
		return Format{Kind: "script", Interpreter: interpreter}
	case bytes.HasPrefix(b, []byte("\x7fELF")):
		return elfFormat(append(slices.Clip(b), make([]byte, max(0, elfHeader-len(b)))...))
	case bytes.HasPrefix(b, []byte("MZ")) && len(b) >= 0x40:
		at := int64(binary.LittleEndian.Uint32(b[0x3c:]))
		if at+6 > int64(len(b)) || string(b[at:at+4]) != "PE\x00\x00" {
			return Format{}
		}
		return Format{Kind: "pe", OS: "windows", Archs: named(peArchs, uint64(binary.LittleEndian.Uint16(b[at+4:])))}
	case len(b) >= 8:
		return machoFormat(b)
	}
	return Format{}
}

func elfFormat(b []byte) Format {
	order := binary.ByteOrder(binary.LittleEndian)
	if b[5] == 2 {
		order = binary.BigEndian
	}
	f := Format{Kind: "elf", OS: "linux"}
	switch b[7] {
	case 9:
		f.OS = "freebsd"
	case 12:
		f.OS = "openbsd"
	}
	machine := uint64(order.Uint16(b[18:]))
	f.Archs = named(elfArchs, machine)
	// Two machines are told apart by byte order and word size.
	switch machine {
	case 21: // 64-bit PowerPC
		f.Archs = []string{"ppc64"}
		if b[5] == 1 {
			f.Archs[0] = "ppc64le"
		}
	case 8: // MIPS
		name := "mips"
		if b[4] == 2 {
			name = "mips64"
		}
		if b[5] == 1 {
			name += "le"
		}
		f.Archs = []string{name}
	}
	return f
}

// elfHeader is as long as the longer of the two headers.
const elfHeader = 64

// elfEnd is where the last segment that is loaded ends, or the table of segments where that says nothing. It takes any bytes that begin as the format does.
func elfEnd(b []byte) uint64 {
	if len(b) < elfHeader {
		return elfHeader // No program is as short.
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[5] == 2 {
		order = binary.BigEndian
	}
	const load = 1
	count, size := uint64(order.Uint16(b[56:])), uint64(order.Uint16(b[54:]))
	table := order.Uint64(b[32:])
	segment := func(p []byte) (kind uint32, offset, bytes uint64) {
		return order.Uint32(p), order.Uint64(p[8:]), order.Uint64(p[32:])
	}
	least := uint64(56)
	if b[4] == 1 {
		count, size, table, least = uint64(order.Uint16(b[44:])), uint64(order.Uint16(b[42:])), uint64(order.Uint32(b[28:])), 32
		segment = func(p []byte) (uint32, uint64, uint64) {
			return order.Uint32(p), uint64(order.Uint32(p[4:])), uint64(order.Uint32(p[16:]))
		}
	}
	end := addUp(table, count*size)
	for i := range count {
		at := addUp(table, i*size)
		if size < least || at > uint64(len(b)) || uint64(len(b))-at < least {
			break // The rest of the table lies behind what was read; nearly never.
		}
		if kind, offset, bytes := segment(b[at:]); kind == load {
			end = max(end, addUp(offset, bytes))
		}
	}
	return end
}

// addUp adds without wrapping round.
func addUp(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func machoFormat(b []byte) Format {
	f := Format{Kind: "mach-o", OS: "darwin"}
	switch magic := binary.BigEndian.Uint32(b); magic {
	case 0xfeedface, 0xfeedfacf:
		f.Archs = named(machoArchs, uint64(binary.BigEndian.Uint32(b[4:])))
	case 0xcefaedfe, 0xcffaedfe:
		f.Archs = named(machoArchs, uint64(binary.LittleEndian.Uint32(b[4:])))
	case 0xcafebabe, 0xcafebabf:
		// Java classes begin alike; their second word is a version above 40, and no file holds as many architectures.
		count, size := binary.BigEndian.Uint32(b[4:]), 20
		if magic == 0xcafebabf {
			size = 32
		}
		if count == 0 || count > 40 {
			return Format{}
		}
		for i := range int(count) {
			at := 8 + i*size
			if at+4 > len(b) {
				break
			}
			f.Archs = append(f.Archs, named(machoArchs, uint64(binary.BigEndian.Uint32(b[at:])))...)
		}
	default:
		return Format{}
	}
	return f
}

// The machines that Go makes programs for, by the numbers of each format.
var (
	elfArchs   = map[uint64]string{3: "386", 22: "s390x", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64", 258: "loong64"}
	peArchs    = map[uint64]string{0x14c: "386", 0x1c4: "arm", 0x8664: "amd64", 0xaa64: "arm64"}
	machoArchs = map[uint64]string{7: "386", 12: "arm", 0x01000007: "amd64", 0x0100000c: "arm64"}
)

func named(names map[uint64]string, machine uint64) []string {
	if name, ok := names[machine]; ok {
		return []string{name}
	}
	return []string{"unknown"}
}

// String names the format as Go names platforms: "linux/arm64", "script for /bin/sh".
func (f Format) String() string {
	switch f.Kind {
	case "":
		return "neither a program nor a script with #!"
	case "script":
		if f.Interpreter == "" {
			return "a script that names no interpreter"
		}
		return "a script for " + printable(f.Interpreter)
	}
	return f.OS + "/" + strings.Join(f.Archs, "+")
}

// Native says whether this machine runs the format without help. A machine may have help (QEMU, Rosetta), so that a foreign
// format is a reason for a failed start and never a reason not to try.
func (f Format) Native() bool {
	switch f.Kind {
	case "":
		return false
	case "script":
		return true
	}
	if f.OS != runtime.GOOS {
		return false
	}
	return slices.Contains(f.Archs, runtime.GOARCH) ||
		runtime.GOARCH == "amd64" && slices.Contains(f.Archs, "386") && f.OS != "darwin" ||
		runtime.GOARCH == "arm64" && slices.Contains(f.Archs, "arm") && f.OS == "linux"
}

// needed names what has to be there for the file to start: a script's interpreter, or the loader of a dynamically linked program. Empty when
// that is nothing, or cannot be told. The error says why it does not serve; nil when it looks as if it did.
func needed(path string, f Format) (name string, err error) {
	name = f.Interpreter
	if f.Kind == "elf" {
		name = elfInterpreter(path)
	}
	if name == "" {
		return "", nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return name, err
	case info.IsDir():
		return name, syscall.EISDIR
	case !executable(name, info):
		return name, fs.ErrPermission
	}
	return name, nil
}

// elfInterpreter reads a foreign file with a parser that was made for true ones, so a panic of it counts as "cannot be told".
func elfInterpreter(path string) (interpreter string) {
	defer func() {
		if recover() != nil {
			interpreter = ""
		}
	}()
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < headerBytes {
			buf := make([]byte, p.Filesz)
			if _, err := io.ReadFull(p.Open(), buf); err != nil {
				return ""
			}
			return string(bytes.TrimRight(buf, "\x00"))
		}
	}
	return ""
}

func platform() string { return fmt.Sprintf("%s/%s", runtime.GOOS, runtime.GOARCH) }
