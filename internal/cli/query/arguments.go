package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store/postgres/reader"
	"amends/internal/usage"
)

// request is what the commands have in common.
type request struct {
	env    *target.Env
	known  string // -known-at
	kinds  string // -kind
	quoted bool
}

// flags adds the flags that every command here has.
func (r *request) flags(cmd *cobra.Command) {
	r.env.ManifestFlag(cmd)
	r.env.SpareBrokersFlag(cmd)
	cmd.Flags().BoolVar(&r.quoted, "quoted", false, "ITEM and LOCATION are written as the text shows strange ones: \"with \\u0000 escapes\"")
}

func (r *request) knownFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.known, "known-at", "", "answer as it was known at a `point`: "+explain.PointForms)
}

func (r *request) kindFlag(cmd *cobra.Command, otherwise string) {
	cmd.Flags().StringVar(&r.kinds, "kind", "", "only these `outputs`: balance, alert, status, with commas ("+otherwise+")")
}

// between refuses another number of arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			_, arguments, _ := strings.Cut(cmd.Use, " ")
			return usage.Errorf("%s needs %s; try: %s -help", cmd.CommandPath(), arguments, cmd.CommandPath())
		case len(args) > most:
			return usage.Errorf("%s takes no argument %q; try: %s -help", cmd.CommandPath(), args[most], cmd.CommandPath())
		}
		return nil
	}
}

// key reads ITEM and LOCATION.
func (r *request) key(args []string) (ledger.StockKey, error) {
	names := [2]string{args[0], args[1]}
	for i, name := range names {
		if r.quoted && strings.HasPrefix(name, `"`) {
			plain, err := strconv.Unquote(name)
			if err != nil {
				return ledger.StockKey{}, usage.Errorf("%s: not a quoted string", name)
			}
			names[i] = plain
		}
		if !ledger.ValidIdentifier(names[i]) || !utf8.ValidString(names[i]) {
			return ledger.StockKey{}, usage.Errorf("%s: an item or location is 1 to %d bytes of UTF-8", cut(names[i]), ledger.MaxIdentifierBytes)
		}
	}
	return ledger.StockKey{Item: names[0], Location: names[1]}, nil
}

// cut quotes what was typed, the beginning alone where it is long.
func cut(s string) string {
	const most = 60 // characters
	if quoted := fmt.Sprintf("%.*q", most, s); quoted != strconv.Quote(s) {
		return fmt.Sprintf("%s... of %d bytes", quoted, len(s))
	}
	return strconv.Quote(s)
}

// day reads a business day that was typed; "" is none.
func day(text string) (ledger.Day, error) {
	if text == "" {
		return 0, nil
	}
	d, ok := ledger.ParseDay(text)
	if !ok {
		return 0, usage.Errorf("%q is no business day: YYYY-MM-DD", text)
	}
	return d, nil
}

// point reads a point that was typed; "" is none.
func point(flag, text string) (*explain.Point, error) {
	if text == "" {
		return nil, nil
	}
	p, err := explain.ParsePoint(text)
	if err != nil {
		return nil, usage.Errorf("-%s %v", flag, err)
	}
	return &p, nil
}

// only reads -kind; nil is every kind.
func (r *request) only() ([]ledger.OutputKind, error) {
	if r.kinds == "" {
		return nil, nil
	}
	var kinds []ledger.OutputKind
	for _, name := range strings.Split(r.kinds, ",") {
		kind := ledger.OutputKind(0)
		for _, k := range []ledger.OutputKind{ledger.Balance, ledger.Alert, ledger.TrustStatus} {
			if k.String() == name {
				kind = k
			}
		}
		if kind == 0 {
			return nil, usage.Errorf("-kind %s: balance, alert or status", name)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// question reads ITEM LOCATION [DAY], -known-at and -kind; with DAY and without -kind it is about the outputs of the day.
func (r *request) question(args []string) (*explain.Question, error) {
	q := &explain.Question{}
	var err error
	if q.Key, err = r.key(args); err != nil {
		return nil, err
	}
	if len(args) > 2 {
		if args[2] == "" {
			return nil, usage.Errorf("%q is no business day: YYYY-MM-DD", args[2])
		}
		if q.Day, err = day(args[2]); err != nil {
			return nil, err
		}
	}
	if q.At, err = point("known-at", r.known); err != nil {
		return nil, err
	}
	if q.Kinds, err = r.only(); q.Kinds == nil && q.Day != 0 {
		q.Kinds = []ledger.OutputKind{ledger.Balance, ledger.Alert} // a status is of no day
	}
	return q, err
}

// answer is an answer that is being given: the snapshot that it comes from, and the words and the writer that it goes to.
type answer struct {
	words
	from *reader.Snapshot
	cfg  *manifest.Config
	out  *bufio.Writer
}

// look opens the namespace, read only, and calls fn to answer from one snapshot of it on stdout.
func (r *request) look(ctx context.Context, fn func(context.Context, *answer) error) error {
	t, s, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	a := &answer{cfg: t.Manifest.Config, words: words{t.Manifest.Config.QuantityScale}, out: bufio.NewWriter(r.env.Stdout)}
	err = s.Namespace.Look(ctx, func(from *reader.Snapshot) error {
		a.from = from
		return fn(ctx, a)
	})
	return refused(errors.Join(err, a.out.Flush()))
}

func (r *request) open(ctx context.Context) (*target.Target, *target.Session, error) {
	t, err := r.env.Target()
	if err != nil {
		return nil, nil, err
	}
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := r.env.Open(opening, t, target.ReadOnly)
	if err != nil {
		return nil, nil, err
	}
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		s.Close()
		return nil, nil, err
	}
	return t, s, nil
}

// refused makes a point that does not fit a wrong usage (exit 2).
func refused(err error) error {
	var p *explain.PointError
	if errors.As(err, &p) {
		return usage.Errorf("%v", p)
	}
	return err
}
