package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// dataFlag is the directory of a store, for commands that serve it, talk to its owner or open it themselves.
type dataFlag struct{ data string }

func (f *dataFlag) register(to *pflag.FlagSet) {
	to.StringVar(&f.data, "data", "", "data directory (default what the configuration says, or "+config.DefaultData+"; $FOLDHOST_DATA)")
}

// dir is the directory, absolute.
func (f *dataFlag) dir(file *config.File) (string, error) {
	return filepath.Abs(cmp.Or(f.data, os.Getenv("FOLDHOST_DATA"), file.Data, config.DefaultData))
}

// place is where sessions are: a server, or a data directory.
type place struct {
	plugins pluginFlags
	dataFlag
	url, tokenFile string
	asJSON         bool
}

func (p *place) register(to *pflag.FlagSet) {
	p.plugins.register(to)
	p.dataFlag.register(to)
	to.StringVar(&p.url, "url", "", "a running server, instead of the one that the data directory names, or of opening the directory")
	to.StringVar(&p.tokenFile, "token-file", "", "file whose first token is sent to the server ($FOLDHOST_TOKEN_FILE, and for the server of the data directory the tokenFile of the configuration)")
	to.BoolVar(&p.asJSON, "json", false, "print JSON, a line each")
}

// need is what a command needs of a store.
type need struct {
	// values: units are to fold, so plugins are started; or only if this flag is given.
	values     bool
	valuesFlag string
	// make: a store that is not there is made. Otherwise it is an error, and nothing is made.
	make bool
}

// task is a command at work: it talks to a server, in another process or in this one.
type task struct {
	*client.Client
	place *place
	args  []string
	// out is for what was asked for, notes for people.
	out, notes io.Writer
	style      render.Style
}

// command makes a command of what it does with a server. Its PreRunE, if it has one, looks at the flags before anything else is done.
func (p *place) command(cmd *cobra.Command, n need, run func(context.Context, *task) error) *cobra.Command {
	cmd.Args = wrongUsage(cmd.Args)
	p.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.report(cmd.OutOrStdout(), p.at(cmd, args, n, run))
	}
	return cmd
}

// at runs a command where the sessions are.
func (p *place) at(cmd *cobra.Command, args []string, n need, run func(context.Context, *task) error) error {
	t := &task{place: p, args: args, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), style: styleOf(cmd.OutOrStdout())}
	n.values = n.values || n.valuesFlag != "" && cmd.Flags().Changed(n.valuesFlag)
	leave, err := t.connect(cmd.Context(), n)
	if err == nil {
		err = run(cmd.Context(), t)
		if said, ok := errors.AsType[*client.Error](err); ok && said.Code != "" {
			said.Doing = "" // It stands in the command line, and what the server says names the session.
		}
		err = errors.Join(err, leave())
	}
	return guide(err)
}

// report gives an error to those who read JSON, in their form.
func (p *place) report(out io.Writer, err error) error {
	var usage *usageError
	if err == nil || !p.asJSON || isReported(err) || errors.As(err, &usage) || errors.Is(err, context.Canceled) {
		return err
	}
	text, failed := event.Encode(struct {
		Error failure `json:"error"`
	}{failureOf(err)})
	if failed != nil {
		return err
	}
	if _, failed := out.Write(append(text, '\n')); failed != nil {
		return err
	}
	return &reportedError{err}
}

// print prints a line of JSON.
func (t *task) print(v any) error {
	text, err := event.Encode(v)
	if err != nil {
		return err
	}
	_, err = t.out.Write(append(text, '\n'))
	return err
}

// How long a directory is waited for whose owner does not serve, or not yet: another command, or a server that starts. It is looked at so often.
const (
	ownerTime = 2 * time.Second
	ownerLook = 50 * time.Millisecond
)

// inProcess is the URL of the server of this process, which nothing looks up.
const inProcess = "http://in-process"

// connect finds the server or becomes it. leave lets go of it again.
func (t *task) connect(ctx context.Context, n need) (leave func() error, err error) {
	p := t.place
	if p.url != "" {
		return t.talk(p.named())
	}
	plugins, err := p.plugins.options()
	if err != nil {
		return nil, err
	}
	file := plugins.Config
	data, err := p.dir(file)
	if err != nil {
		return nil, err
	}
	durability, err := sqlite.ParseDurability(cmp.Or(os.Getenv("FOLDHOST_DURABILITY"), file.Durability, sqlite.Full.String()))
	if err != nil {
		return nil, &usageError{err}
	}
	if _, err := os.Stat(filepath.Join(data, "foldhost.db")); errors.Is(err, fs.ErrNotExist) && !n.make {
		return nil, &noStoreError{data}
	}
	for began := time.Now(); ; {
		store, err := sqlite.Open(ctx, data, sqlite.Options{Durability: durability, Logger: p.plugins.logger()})
		if err == nil {
			if !n.values {
				plugins = nil
			}
			return t.embed(ctx, store, data, plugins)
		}
		var owner *sqlite.LockedError
		if !errors.As(err, &owner) {
			return nil, err
		}
		if owner.URL != "" {
			return t.talk(dial(owner.URL, cmp.Or(p.tokens(), file.TokenFile)))
		}
		if time.Since(began) > ownerTime {
			return nil, err
		}
		select {
		case <-time.After(ownerLook):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// talk talks to a server, unless that cannot be.
func (t *task) talk(server *client.Client, err error) (leave func() error, _ error) {
	if err != nil {
		return nil, err
	}
	t.Client = server
	return func() error { server.Close(); return nil }, nil
}

// tokens is the file whose first token is sent, of the flag or the environment; empty for none.
func (p *place) tokens() string { return cmp.Or(p.tokenFile, os.Getenv("FOLDHOST_TOKEN_FILE")) }

// named is the server of --url, which no configuration is about.
func (p *place) named() (*client.Client, error) {
	if p.data != "" {
		return nil, &usageError{errors.New("--url and --data exclude each other: one is a server, the other a directory")}
	}
	return dial(p.url, p.tokens())
}

// dial makes a client of a server, with the first token of a file, if one is named.
func dial(url, tokenFile string) (c *client.Client, err error) {
	token := ""
	if tokenFile != "" {
		if token, err = api.FirstToken(tokenFile); err != nil {
			return nil, err
		}
	}
	if c, err = client.New(client.Options{URL: url, Token: token}); err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// running gives the server that is named, or that serves the data directory dir; nil when none does. The store is left alone: what it is asked for is not in there.
func (p *place) running(ctx context.Context) (server *client.Client, dir string, err error) {
	if p.url != "" {
		server, err := p.named()
		return server, "", err
	}
	plugins, err := p.plugins.options()
	if err != nil {
		return nil, "", err
	}
	if dir, err = p.dir(plugins.Config); err != nil {
		return nil, "", err
	}
	url, err := sqlite.Announced(dir)
	if url == "" || err != nil {
		return nil, dir, err
	}
	if server, err = dial(url, cmp.Or(p.tokens(), plugins.Config.TokenFile)); err != nil {
		return nil, dir, err
	}
	// Who announced it may have ended since. One look, where others would be patient.
	once, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	if conn, err := new(net.Dialer).DialContext(once, "tcp", addressOf(server.URL())); err == nil {
		conn.Close()
		return server, dir, nil
	}
	server.Close()
	return nil, dir, ctx.Err()
}

// addressOf is the address of a URL that a server announced, with its port.
func addressOf(announced string) string {
	u, err := url.Parse(announced)
	if err != nil {
		return ""
	}
	return u.Host
}

// noServerError: what was to be done is a server's to do, and none runs.
type noServerError struct{ dir string }

func (e *noServerError) Error() string { return "no server runs on the data directory " + e.dir }

// embed makes a server of a store, for this process alone.
func (t *task) embed(ctx context.Context, store *sqlite.Store, data string, plugins *host.PluginOptions) (leave func() error, err error) {
	logger := t.place.plugins.logger()
	o := host.Options{Store: store, Logger: logger}
	h := (*host.Host)(nil)
	if plugins == nil {
		h = host.New(o)
	} else {
		plugins.CacheDir = filepath.Join(data, "plugin-descriptions")
		o.Plugins = plugins
		if h, err = host.Open(o); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	a := api.New(api.Options{Host: h, Store: servedStore{store}, Logger: logger})
	leave = func() error {
		a.Close()
		late, cancel := context.WithTimeout(context.Background(), pluginGrace)
		defer cancel()
		return errors.Join(h.CloseWithin(late), store.Close())
	}
	if err := h.WaitPlugins(ctx); err != nil {
		return nil, errors.Join(err, leave())
	}
	// Without the digests of files: they take reading them, and are of no use here.
	none, cancel := context.WithCancel(ctx)
	cancel()
	for _, p := range h.Plugins(none) {
		if p.State != host.PluginReady && p.State != host.PluginDisabled {
			render.Printf(t.notes, "foldhost: plugin %s\n", render.Trouble(&p))
		}
	}
	t.Client, err = client.New(client.Options{URL: inProcess, HTTP: &http.Client{Transport: client.InProcess(a)}})
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	return leave, nil
}

// noStoreError: there is nothing in a directory yet, and nothing was made there.
type noStoreError struct{ dir string }

func (e *noStoreError) Error() string { return "there is no store in " + e.dir }

// guide adds the way out, in terms of this program.
func guide(err error) error {
	var no *noStoreError
	var none *noServerError
	var owner *sqlite.LockedError
	var said *client.Error
	var dial *net.OpError
	var stranger x509.UnknownAuthorityError
	way := ""
	switch {
	case errors.As(err, &stranger):
		way = "SSL_CERT_FILE names a file of the certificates that are trusted, in PEM (on Linux)"
	case errors.As(err, &dial) && dial.Op == "dial":
		way = "nothing answers there: start a server, or name one with --url, or a data directory with --data"
	case errors.As(err, &no):
		way = "--data or $FOLDHOST_DATA names another directory; foldhost serve, import and session create make a store"
	case errors.As(err, &none):
		way = "--url names a server, --data or $FOLDHOST_DATA the directory of one; without a server plugins start with each command"
	case errors.As(err, &owner) && owner.URL == "":
		way = "it does not serve: wait until it has ended, or end it"
	case errors.As(err, &said) && said.Code == client.CodeSessionNotFound:
		way = "foldhost session list shows which there are"
	case errors.As(err, &said) && said.Status == http.StatusUnauthorized:
		way = "--token-file or $FOLDHOST_TOKEN_FILE names the file whose first token is sent"
	}
	if way == "" {
		return err
	}
	return &guidedError{err, way}
}

// failure is an error as JSON. Code is one of docs/server.md for what a server says.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	Seq     *int64 `json:"seq,omitempty"`
	Index   *int64 `json:"index,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Path    string `json:"path,omitempty"`
}

// failureOf says what went wrong by codes.
func failureOf(err error) failure {
	f := failure{Code: "failed", Message: err.Error()}
	var guided *guidedError
	if errors.As(err, &guided) {
		f.Message, f.Remedy = guided.err.Error(), guided.way
	}
	var (
		said    *client.Error
		network *client.NetworkError
		answer  *client.AnswerError
		no      *noStoreError
		none    *noServerError
		owner   *sqlite.LockedError
		dir     *sqlite.DirError
		newer   *sqlite.NewerError
		foreign *sqlite.NotStoreError
		damaged *sqlite.DamagedError
		target  *sqlite.TargetError
		rule    *event.Error
		at      *event.IndexError
		tokens  *api.TokenFileError
	)
	switch {
	case errors.As(err, &said):
		f.Code, f.Seq, f.Index, f.Reason, f.Path = string(said.Code), said.Seq, said.Index, said.Reason, said.Path
		if f.Code == "" {
			f.Code = fmt.Sprintf("status-%d", said.Status)
		}
	case errors.As(err, &network):
		f.Code = "unreachable"
	case errors.As(err, &answer):
		f.Code = "answer-invalid"
	case errors.As(err, &no):
		f.Code = "no-store"
	case errors.As(err, &none):
		f.Code = "no-server"
	case errors.As(err, &owner):
		f.Code = "locked"
	case errors.As(err, &dir):
		f.Code = "directory-" + string(dir.Problem)
	case errors.As(err, &newer):
		f.Code = "format-newer"
	case errors.As(err, &foreign):
		f.Code = "not-a-store"
	case errors.As(err, &damaged):
		f.Code = "damaged"
	case errors.As(err, &tokens):
		f.Code = "token-file-invalid"
	case errors.As(err, &target):
		f.Code = "target-invalid"
	case errors.As(err, &rule):
		f.Code, f.Path = string(rule.Code), rule.Path
		if errors.As(err, &at) {
			f.Index = &at.Index
		}
	}
	return f
}
