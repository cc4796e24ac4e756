package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
)

// styleOf is how to print to w: colour and a width on a terminal, neither elsewhere.
func styleOf(w io.Writer) render.Style {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return render.Style{}
	}
	s := render.Style{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = width
	}
	return s
}

// 16 MiB are read in well under a second; a bar for less would only flicker.
const longLog = 16 << 20

// progress shows how far some files are worked through, in bytes. The nil progress shows nothing. Safe for concurrent use.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress shows a bar on stderr when that is a terminal and the files are long. Each file is gone through so many times.
func newProgress(stderr io.Writer, doing string, times int64, files ...string) *progress {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	total := int64(0)
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	if total < longLog {
		return nil
	}
	bar := progressbar.NewOptions64(times*total,
		progressbar.OptionSetWriter(stderr),
		progressbar.OptionSetDescription(doing),
		progressbar.OptionShowBytes(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	bar.StartWithoutRender() // By itself it would start at the first bytes, and show a rate of many GB/s for them.
	return &progress{bar}
}

// add counts bytes.
func (p *progress) add(n int64) {
	if p != nil {
		p.bar.Add64(n)
	}
}

// clear takes the bar away for what is printed next.
func (p *progress) clear() {
	if p != nil {
		p.bar.Clear()
	}
}

// end takes the bar away for good.
func (p *progress) end() {
	if p != nil {
		p.bar.Finish()
		p.bar.Clear()
	}
}

// What takes long enough for a bar: logs are looked at by the thousand within a second, pages of 4 KiB are copied as fast as a log is read.
const (
	manyLogs  = 10_000
	manyPages = longLog / 4096
)

// steps shows how many of some things are done, on a terminal and where there are many. Belongs to one goroutine. The nil steps show nothing.
type steps struct {
	stderr *os.File
	doing  string
	many   int64
	bar    *progressbar.ProgressBar
}

func newSteps(stderr io.Writer, doing string, many int64) *steps {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &steps{stderr: f, doing: doing, many: many}
}

// at says how far it is. The total may change on the way.
func (s *steps) at(done, total int64) {
	if s == nil || total < s.many {
		return
	}
	if s.bar == nil {
		s.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(s.stderr), progressbar.OptionSetDescription(s.doing), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	s.bar.ChangeMax64(max(total, done))
	s.bar.Set64(done)
}

func (s *steps) end() {
	if s != nil && s.bar != nil {
		s.bar.Finish()
		s.bar.Clear()
	}
}
