package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
)

// An export that is cut off is an error, wherever it is cut; and one that cannot be written is one of the writer.
func TestAnExportThatFails(t *testing.T) {
	s := serve(t, nil, api.Options{})
	fill(t, s.client(), "s", 200)
	for _, limit := range []int64{0, 100, 400, 5000} {
		proxy := cut(t, s.url, func() int64 { return limit })
		var out bytes.Buffer
		err := dial(t, client.Options{URL: proxy.url, Tries: 1}).Export(bounded(t), "s", &out, client.ExportOptions{Plain: true})
		if _, ok := errors.AsType[*client.NetworkError](err); !ok {
			t.Errorf("cut after %d bytes: %v, with %d bytes written", limit, err, out.Len())
		}
	}
	full := errors.New("full")
	err := s.client().Export(bounded(t), "s", writer(func([]byte) (int, error) { return 0, full }), client.ExportOptions{})
	if _, network := errors.AsType[*client.NetworkError](err); network || !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A log that cannot be read to its end leaves no session behind, and is not taken for one with a torn tail.
func TestAnImportThatBreaksOff(t *testing.T) {
	s := serve(t, nil, api.Options{})
	log := `{"type":"session","version":0,"id":"s","createdAt":1}` + "\n" + `{"type":"x","seq":0,"time":1,"data":null}` + "\n"
	broken := errors.New("broken")
	for name, c := range map[string]*client.Client{"over the network": s.client(), "in this process": s.inProcess()} {
		for _, rest := range []string{"", `{"type":"x","se`} {
			_, err := c.Import(bounded(t), io.MultiReader(strings.NewReader(log+rest), iotest.ErrReader(broken)), client.ImportOptions{})
			if err == nil {
				t.Errorf("%s: it is imported", name)
			}
			if _, err := c.Get(bounded(t), "s"); code(err) != client.CodeSessionNotFound {
				t.Errorf("%s: afterwards there is a session: %v", name, err)
			}
		}
	}
}

// A log is read once, so it is sent once: the error is that of the first try, and the file is its owner's to close.
func TestAnImportToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tries := 0
	_, err = dial(t, client.Options{URL: nobody, HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		tries++
		return http.DefaultTransport.RoundTrip(r)
	})}}).Import(bounded(t), file, client.ImportOptions{Key: "k"})
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if _, err := file.Write([]byte("x")); err != nil {
		t.Errorf("the file of the caller: %v", err)
	}
	s := serve(t, nil, api.Options{})
	for name, c := range map[string]*client.Client{"over the network": s.client(), "in this process": s.inProcess()} {
		if _, err := c.Import(bounded(t), file, client.ImportOptions{}); err == nil {
			t.Errorf("%s: nothing is imported", name)
		}
		if _, err := file.Write([]byte("x")); err != nil {
			t.Errorf("the file of the caller, %s: %v", name, err)
		}
	}
}

// What work that takes long says, line by line.
func TestWorkThatTakesLong(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		// steps are what is heard of progress.
		steps []string
		want  func(error) bool
	}{
		"done":        {`{"done":1,"total":2}` + "\n" + `{"done":2,"total":2}` + "\n" + `{"report":{"logs":2,"problems":[]}}` + "\n", []string{"1/2", "2/2"}, func(err error) bool { return err == nil }},
		"a problem":   {`{"done":1,"total":2}` + "\n" + `{"problem":{"status":507,"code":"disk-full","detail":"full"}}` + "\n", []string{"1/2"}, func(err error) bool { return code(err) == client.CodeDiskFull }},
		"no result":   {`{"done":2,"total":2}` + "\n", []string{"2/2"}, func(err error) bool { _, ok := errors.AsType[*client.AnswerError](err); return ok }},
		"nothing":     {"", nil, func(err error) bool { _, ok := errors.AsType[*client.AnswerError](err); return ok }},
		"another one": {`{"backup":{}}` + "\n", nil, func(err error) bool { _, ok := errors.AsType[*client.AnswerError](err); return ok }},
		"no JSON":     {"<html>\n", nil, func(err error) bool { _, ok := errors.AsType[*client.AnswerError](err); return ok }},
		"cut off":     {`{"done":1,"total":2}` + "\n" + `{"rep`, []string{"1/2"}, func(err error) bool { _, ok := errors.AsType[*client.NetworkError](err); return ok }},
	} {
		cl := dial(t, client.Options{URL: "http://x", HTTP: &http.Client{Transport: carrier(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: text(c.answer)}, nil
		})}})
		var steps []string
		r, err := cl.CheckStore(bounded(t), client.CheckOptions{Pages: true}, func(done, total int64) { steps = append(steps, fmt.Sprintf("%d/%d", done, total)) })
		if !c.want(err) || !slices.Equal(steps, c.steps) || err == nil && r.Logs != 2 {
			t.Errorf("%s: %+v %v after %q", name, r, err, steps)
		}
	}
}
