package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
)

func sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Work on stored sessions: list, show, tail, create, append, fork, compact, recover, retry, verify, delete",
		Long: "session commands talk to the server that owns the data directory, or to the one that --url names. When nobody owns the\n" +
			"directory they open it themselves, start the plugins and stop them again.",
		Args: wrongUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Help()
			return &usageError{fmt.Errorf("say what to do with sessions, for example: foldhost session list")}
		},
	}
	cmd.AddCommand(sessionListCommand(), sessionShowCommand(), sessionTailCommand(), sessionCreateCommand(), sessionAppendCommand(), sessionForkCommand(),
		sessionCompactCommand(), sessionRecoverCommand(), sessionRetryCommand(), sessionVerifyCommand(), sessionDeleteCommand())
	return cmd
}

// keysFlag reads a list of keys: nil when it is not given or "*", which is all.
func keysFlag(cmd *cobra.Command, keys []string) []string {
	if !cmd.Flags().Changed("keys") || len(keys) == 1 && keys[0] == "*" {
		return nil
	}
	return append([]string{}, keys...)
}

func sessionListCommand() *cobra.Command {
	var p place
	var keys []string
	limit, all := int64(0), false
	cmd := &cobra.Command{
		Use: "list", Short: "List sessions, latest commit first", Args: cobra.NoArgs,
		Example: "  foldhost session list\n  foldhost session list --keys title --all --json",
	}
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "also give values of these keys, as far as they are known without folding; '*' is all")
	numberFlag(cmd.Flags(), &limit, "limit", "", 50, 1, takesSome, "list so many at most")
	cmd.Flags().BoolVar(&all, "all", false, "list all")
	return p.command(cmd, need{valuesFlag: "keys"}, func(ctx context.Context, t *task) error {
		q := client.ListQuery{Keys: []string{}, Limit: int(min(limit, 1000))}
		if cmd.Flags().Changed("keys") {
			q.Keys = keysFlag(cmd, keys)
		}
		if all {
			q.Limit = 1000
		}
		list := render.NewSessions(t.out, t.style, q.Keys)
		n := int64(0)
		for s, err := range t.Sessions(ctx, q) {
			if err != nil {
				return err
			}
			if n == limit && !all {
				render.Printf(t.notes, "foldhost: there are more; --all lists them\n")
				break
			}
			n++
			if !p.asJSON {
				list.Add(&s)
			} else if err := t.print(s); err != nil {
				return err
			}
		}
		if p.asJSON {
			return nil
		}
		return list.End()
	})
}

// shown is what show --json prints.
type shown struct {
	Session     client.Session  `json:"session"`
	Projections client.Block    `json:"projections"`
	Surface     *client.Surface `json:"surface,omitempty"`
}

func sessionShowCommand() *cobra.Command {
	var p place
	var keys []string
	at := int64(0)
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a session: what it is, its values, its surface", Args: exactly("ID"),
		Example: "  foldhost session show first\n  foldhost session show first --keys title --at 3 --json",
	}
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "values of these keys alone")
	numberFlag(cmd.Flags(), &at, "at", "", 0, -1, takesSeqOrNone, "values right after the event of this seq; -1 is before the first")
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		q := client.ValuesQuery{Keys: keysFlag(cmd, keys)}
		past := cmd.Flags().Changed("at")
		if past {
			q.At = &at
		}
		var out shown
		var err error
		if out.Session, err = t.Get(ctx, t.args[0]); err != nil {
			return err
		}
		if err = t.checkPreset(ctx, &out.Session); err != nil {
			return err
		}
		if out.Projections, err = t.Projections(ctx, t.args[0], q); err != nil {
			return err
		}
		t.noteUnknown(q.Keys, &out.Projections)
		if !past {
			surface, err := t.Surface(ctx, t.args[0])
			if err != nil {
				return err
			}
			out.Surface = &surface
		}
		if p.asJSON {
			return t.print(out)
		}
		if !past && slices.ContainsFunc(slices.Collect(maps.Values(out.Projections.Unavailable)), func(u client.Unavailable) bool { return u.Code == "faulted" }) {
			render.Printf(t.notes, "foldhost: what has faulted is folded no further; once its plugin is mended, foldhost session retry %s tries it again\n", t.args[0])
		}
		return render.Session(t.out, t.style, &out.Session, &out.Projections, out.Surface)
	})
}

// noteUnknown tells people which of the keys that they asked for no unit of the session has. An answer leaves them out without a word.
func (t *task) noteUnknown(keys []string, b *client.Block) {
	for _, key := range keys {
		_, has := b.Values[key]
		_, late := b.Unavailable[key]
		if key != "" && !has && !late {
			render.Printf(t.notes, "foldhost: no unit has the key %q here; foldhost plugin list shows the units of each plugin\n", key)
		}
	}
}

// checkPreset tells people when a session names a preset that there is not.
func (t *task) checkPreset(ctx context.Context, s *client.Session) error {
	preset := s.Header.AgentPreset
	if preset == nil || *preset == "" {
		return nil
	}
	_, err := t.PresetOffers(ctx, *preset)
	var said *client.Error
	if errors.As(err, &said) && said.Code == client.CodePresetUnknown {
		return render.Printf(t.notes, "foldhost: the session has the preset %q, which the configuration does not have; the default set serves it\n", *preset)
	}
	return err
}

func sessionTailCommand() *cobra.Command {
	var p place
	var keys, types []string
	last, from, once := int64(0), int64(0), false
	cmd := &cobra.Command{
		Use: "tail ID", Short: "Print the last events of a session and follow it", Args: exactly("ID"),
		Long: "tail prints the last events and then what comes, until it is interrupted or the session is deleted. With --keys it prints values as\n" +
			"well, once as they are and then where they change. A connection that breaks is made again, and no event is left out.",
		Example: "  foldhost session tail first\n  foldhost session tail first --from 0 --no-follow --json\n  foldhost session tail first --types user/message --keys title",
	}
	numberFlag(cmd.Flags(), &last, "lines", "n", 10, 0, takesAny, "begin with so many events, whatever their types")
	numberFlag(cmd.Flags(), &from, "from", "", 0, 0, takesSeq, "begin with the event of this seq; with -n, with the last so many of those from there on")
	cmd.Flags().BoolVar(&once, "no-follow", false, "print what is there and end")
	cmd.Flags().StringSliceVar(&types, "types", nil, "events of these types alone")
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "also values of these keys; '*' is all")
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		s, err := t.Get(ctx, t.args[0])
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("from") || cmd.Flags().Changed("lines") {
			from = max(from, s.Seq-last)
		}
		o := client.StreamOptions{After: s.Incarnation + ":" + client.Position(min(from, s.Seq)-1), Keys: []string{}}
		if cmd.Flags().Changed("types") {
			o.Events = types
		}
		if cmd.Flags().Changed("keys") {
			o.Keys = keysFlag(cmd, keys)
		}
		tail := &tail{task: t, people: render.NewTail(t.out, t.style), values: cmd.Flags().Changed("keys"), unseen: o.Keys}
		o.Broken = tail.broken
		for f, err := range t.Stream(ctx, t.args[0], o) {
			if err != nil {
				return err
			}
			if err := tail.frame(f); err != nil {
				return err
			}
			if _, cut := f.(*client.BaselineFrame); cut && once {
				return nil
			}
		}
		return nil
	})
}

// tail prints a stream.
type tail struct {
	*task
	people *render.Tail
	values bool
	// unseen are the keys that were asked for, until the first values tell which of them there are.
	unseen []string
	// lost says that the connection was, and has not come back yet.
	lost bool
}

// broken tells people once that the connection is gone.
func (l *tail) broken(err error, _ time.Duration) {
	if !l.lost {
		render.Printf(l.notes, "foldhost: %s; trying again\n", err)
	}
	l.lost = true
}

func (l *tail) frame(f client.Frame) error {
	switch f := f.(type) {
	case *client.SubscribedFrame:
		if l.lost {
			render.Printf(l.notes, "foldhost: the connection is back\n")
		}
		l.lost = false
		return nil
	case *client.BaselineFrame:
		l.noteUnknown(l.unseen, &f.Block)
		l.unseen = nil
		if !l.values {
			return nil
		}
		if !l.place.asJSON {
			return l.people.Baseline(&f.Block)
		}
	case *client.EventFrame:
		if !l.place.asJSON {
			return l.people.Event(&f.Event)
		}
	case *client.ProjectionFrame:
		if !l.place.asJSON {
			return l.people.Value(f.Key, f.Value, f.Seq)
		}
	case *client.UnavailableFrame:
		if !l.place.asJSON {
			return l.people.Unavailable(f.Key, f.Unavailable)
		}
	case *client.RemovedFrame:
		if !l.place.asJSON {
			return l.people.Note(f.Key + " is computed by nobody any more")
		}
	case *client.ResetFrame:
		if !l.place.asJSON {
			return l.people.Note("the log does not have what was printed last any more; what follows is how it is now")
		}
	case *client.DeletedFrame:
		if !l.place.asJSON {
			return l.people.Note("the session was deleted")
		}
	}
	_, err := l.out.Write(append(f.JSON(), '\n'))
	return err
}

func sessionCreateCommand() *cobra.Command {
	var p place
	var n client.NewSession
	cmd := &cobra.Command{
		Use: "create [ID]", Short: "Create an empty session", Args: oneOf(map[int]string{0: "nothing", 1: "ID"}),
		Example: "  foldhost session create first --cwd /home/me/project\n  foldhost session create second --preset single",
	}
	cmd.Flags().StringVar(&n.CWD, "cwd", "", "the directory that it is about, an absolute path")
	cmd.Flags().StringVar(&n.Preset, "preset", "", "the set of plugins that serves it, one of the configuration's presets (default every plugin, with its own config)")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if n.ID = strings.Join(args, ""); len(args) > 0 && n.ID == "" {
			return &usageError{errors.New("ID is empty: leave it out to have one made up")}
		}
		if cmd.Flags().Changed("preset") && n.Preset == "" {
			return &usageError{errors.New("--preset is empty: leave it out for the default set")}
		}
		return nil
	}
	return p.command(cmd, need{make: true, valuesFlag: "preset"}, func(ctx context.Context, t *task) error {
		s, created, err := t.Create(ctx, n)
		if err != nil {
			return err
		}
		if p.asJSON {
			return t.print(s)
		}
		if !created {
			return render.Printf(t.out, "session %s was there already\n", s.Header.ID)
		}
		return render.Printf(t.out, "created session %s\n", s.Header.ID)
	})
}

func sessionAppendCommand() *cobra.Command {
	var p place
	var o client.AppendOptions
	var keys []string
	expected := int64(0)
	cmd := &cobra.Command{
		Use: "append ID [EVENT…]", Short: "Append events, all or none", Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("it takes ID, and then EVENTs if they do not come from standard input")
			}
			return nil
		},
		Long: "append takes events as JSON, each {\"type\", \"data\"} and what else docs/events.md names: from the arguments, or from standard input,\n" +
			"one or one a line. All are appended together, or none.",
		Example: "  foldhost session append first '{\"type\":\"session/title\",\"data\":{\"title\":\"A session\"}}'\n  foldhost session append first --expected-seq 4 < events.jsonl",
	}
	numberFlag(cmd.Flags(), &expected, "expected-seq", "", 0, 0, takesLength, "append only if the first event gets this seq, which is the length of the log")
	cmd.Flags().StringVar(&o.Key, "key", "", "idempotency key: the same append with the same key is done once")
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "also give values of these keys, which contain the events; '*' is all")
	var items []client.Item
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		items, err = readItems(newInterruptible(cmd.Context(), cmd.InOrStdin()), args[1:])
		return err
	}
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		if cmd.Flags().Changed("expected-seq") {
			o.ExpectedSeq = &expected
		}
		if o.Projections = cmd.Flags().Changed("keys"); o.Projections {
			o.Keys = keysFlag(cmd, keys)
		}
		a, err := t.Append(ctx, t.args[0], items, o)
		if err != nil {
			return err
		}
		if a.Projections != nil {
			t.noteUnknown(o.Keys, a.Projections)
		}
		return t.appended(a, "appended")
	})
}

// readItems reads the events of the arguments or, when there are none, of standard input.
func readItems(stdin io.Reader, args []string) (items []client.Item, err error) {
	if len(args) > 0 {
		for i, text := range args {
			if !json.Valid([]byte(text)) {
				return nil, &usageError{fmt.Errorf("EVENT %d is not JSON: %.100s", i+1, text)}
			}
			items = append(items, client.RawItem([]byte(text)))
		}
		return items, nil
	}
	in := json.NewDecoder(stdin)
	for {
		var raw json.RawMessage
		err := in.Decode(&raw)
		if err == io.EOF {
			break
		}
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("standard input, event %d: %w", len(items)+1, err)}
		}
		items = append(items, client.RawItem(bytes.Clone(raw)))
	}
	if len(items) == 0 {
		return nil, &usageError{errors.New("there is no event: name at least one, or give some on standard input")}
	}
	return items, nil
}

// appended says where events went.
func (t *task) appended(a client.Appended, verb string) error {
	if t.place.asJSON {
		return t.print(a)
	}
	n := len(a.Events)
	switch n {
	case 0:
		render.Printf(t.out, "nothing was open; the log has %s\n", render.Count(a.Seq, "event"))
	case 1:
		render.Printf(t.out, "%s event %d\n", verb, a.Events[0].Seq)
	default:
		render.Printf(t.out, "%s events %d to %d\n", verb, a.Events[0].Seq, a.Events[n-1].Seq)
	}
	if a.Projections != nil {
		return render.Values(t.out, t.style, a.Projections)
	}
	return nil
}

func sessionForkCommand() *cobra.Command {
	var p place
	var f client.Fork
	at := int64(0)
	cmd := &cobra.Command{
		Use: "fork ID", Short: "Make a session that begins with the log of another", Args: exactly("ID"),
		Example: "  foldhost session fork first --at 12 --id second",
	}
	numberFlag(cmd.Flags(), &at, "at", "", 0, 0, takesSeq, "the child ends with the turn that contains this seq, and what follows it before the next turn; without it all is taken")
	cmd.Flags().StringVar(&f.ID, "id", "", "id of the child (default one that is made up)")
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		if cmd.Flags().Changed("at") {
			f.AtSeq = &at
		}
		child, err := t.Fork(ctx, t.args[0], f)
		if err != nil {
			return err
		}
		if p.asJSON {
			return t.print(child)
		}
		return render.Printf(t.out, "forked session %s at %s\n", child.Header.ID, render.Count(child.Seq, "event"))
	})
}

func sessionCompactCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "compact ID START END [MESSAGE]", Short: "Put one message in the place of a range of the surface", Args: oneOf(map[int]string{3: "ID, START and END", 4: "ID, START, END and MESSAGE"}),
		Long: "compact replaces the nodes of the surface from the seq START to the seq END by one message, which is JSON, from the argument or from\n" +
			"standard input; docs/events.md has its form. The events stay in the log.",
		Example: "  foldhost session compact first 3 17 < summary.json",
	}
	var c client.Compaction
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		for i, to := range []*int64{&c.Start, &c.End} {
			if (&number{to, 0, takesSeq}).Set(args[i+1]) != nil {
				return &usageError{fmt.Errorf("%q is no seq: START and END are those of nodes of the surface", args[i+1])}
			}
		}
		var message []byte
		if len(args) == 4 {
			message = []byte(args[3])
		} else if message, err = io.ReadAll(newInterruptible(cmd.Context(), cmd.InOrStdin())); err != nil {
			return err
		}
		if !json.Valid(message) {
			return &usageError{errors.New("MESSAGE is not JSON")}
		}
		c.Message = message
		return nil
	}
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		a, err := t.Compact(ctx, t.args[0], c)
		if err != nil {
			return err
		}
		return t.appended(a, "compacted by")
	})
}

func sessionRecoverCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "recover ID", Short: "Close a turn whose program is gone", Args: exactly("ID"),
		Long: "recover appends what closes a turn that was left open: results for calls without one, and the ends of steps and of the turn. Where\n" +
			"nothing is open it appends nothing.",
	}
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		a, err := t.Recover(ctx, t.args[0], client.Once{})
		if err != nil {
			return err
		}
		return t.appended(a, "recovered by")
	})
}

func sessionRetryCommand() *cobra.Command {
	var p place
	var keys []string
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Try units again that failed in a session", Args: exactly("ID"),
		Long: "retry folds again, from the last value that is known, the units that failed at an event of this session, and gives the values then.\n" +
			"Exit code 1 says that some are unavailable still.",
	}
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "these units alone")
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		only := keysFlag(cmd, keys)
		b, err := t.Retry(ctx, t.args[0], only)
		if err != nil {
			return err
		}
		t.noteUnknown(only, &b)
		if p.asJSON {
			err = t.print(b)
		} else {
			err = render.Values(t.out, t.style, &b)
		}
		if err == nil && len(b.Unavailable) > 0 {
			err = &reportedError{fmt.Errorf("%d units are unavailable", len(b.Unavailable))}
		}
		return err
	})
}

func sessionVerifyCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "verify ID", Short: "Compare what is served of a session with a fold from zero", Args: exactly("ID"),
		Long: "verify folds the whole log and compares, byte by byte, with the values that are served and with those that are kept. It changes\n" +
			"nothing. Exit code 1 says that something differs or could not be compared.",
	}
	return p.command(cmd, need{values: true}, func(ctx context.Context, t *task) error {
		v, err := t.Verify(ctx, t.args[0])
		if err != nil {
			return err
		}
		if p.asJSON {
			err = t.print(v)
		} else {
			err = render.Verification(t.out, t.args[0], &v)
		}
		if err == nil && !v.OK {
			err = &reportedError{errors.New("not everything that is served is what the log gives")}
		}
		return err
	})
}

func sessionDeleteCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a session for good", Args: exactly("ID"),
		Long: "delete takes the log, its values and its idempotency keys away. It does not ask and cannot be undone; foldhost export --session ID keeps a copy.",
	}
	return p.command(cmd, need{}, func(ctx context.Context, t *task) error {
		if err := t.Delete(ctx, t.args[0]); err != nil {
			return err
		}
		if p.asJSON {
			return t.print(map[string]string{"deleted": t.args[0]})
		}
		return render.Printf(t.out, "deleted session %s\n", t.args[0])
	})
}
