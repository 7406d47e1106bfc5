package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/explain"
	"amends/internal/inspect"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store/postgres/reader"
	"amends/internal/usage"
)

// Bounds of -interval.
const (
	shortestPoll = 50 * time.Millisecond
	longestPoll  = time.Minute
)

// follower is one tail.
type follower struct {
	*request
	since    string
	only     string
	interval time.Duration
	lines    bool // one JSON a line
	end      bool // ends at the end
}

// Tail is the command tail.
func Tail(e *target.Env) *cobra.Command {
	f := &follower{request: &request{env: e}}
	cmd := &cobra.Command{
		Short: "Follow what is told: every output version as it is committed, corrections marked",
		Long: `Prints every output version as it is committed, those of a partition in the order of their emission: the first telling of
an output as told, a later version as corrected, a withdrawal as withdrawn. It begins now, or at -since; with -e it begins
at the first record and ends at the present end. It is stopped by an interrupt or SIGTERM, with code 0.
A version that has no delivery receipt yet says so; it is not printed again when it is published.`,
		Example: `  amends tail
  amends tail -J -only corrections -since 0/3
  amends tail -e -J | jq -c 'select(.output == "alert")'`,
		Args: usage.NoArgs,
	}
	f.env.ManifestFlag(cmd)
	f.env.SpareBrokersFlag(cmd)
	e.OutputFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&f.lines, "json-lines", "J", false, "one JSON a line, the same as -o json")
	flags.BoolVarP(&f.end, "exit", "e", false, "exit at the present end")
	flags.StringVar(&f.only, "only", "", "tell only `these`: corrections (versions above 1, withdrawals included) or first")
	usage.Own(cmd, "only", "tail-only") // that of diagnostics is another
	flags.StringVar(&f.since, "since", "", "begin at a `point`: "+explain.PointForms)
	flags.DurationVar(&f.interval, "interval", 500*time.Millisecond, "`time` between two looks, 50ms to 1m")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		f.lines = f.lines || asJSON
		if f.only != "" && f.only != "corrections" && f.only != "first" {
			return usage.Errorf("-only %s: corrections or first", f.only)
		}
		if f.interval < shortestPoll || f.interval > longestPoll {
			return usage.Errorf("-interval %v: %v to %v", f.interval, shortestPoll, longestPoll)
		}
		since, err := point("since", f.since)
		if err != nil {
			return err
		}
		return refused(f.follow(cmd.Context(), since))
	}
	return cmd
}

// follow looks again and again; being stopped is no failure.
func (f *follower) follow(ctx context.Context, since *explain.Point) error {
	t, s, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var tail *explain.Tail
	out := bufio.NewWriter(f.env.Stdout)
	for {
		err := f.patiently(ctx, func() error {
			err := s.Namespace.Look(ctx, func(from *reader.Snapshot) (err error) {
				if tail == nil {
					tail, err = explain.Start(ctx, from, t.Manifest.Config, since, f.end && since == nil)
					if err != nil {
						return err
					}
				}
				return tail.Round(ctx, from, func(v *explain.Version) error { return f.print(out, t.Manifest.Config, v) })
			})
			return errors.Join(err, out.Flush())
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil || f.end:
			return err
		}
		if pause.For(ctx, f.interval) != nil {
			return nil
		}
	}
}

// patiently waits for a database that is away, as long as any command does.
func (f *follower) patiently(ctx context.Context, round func() error) error {
	waiting, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	return f.env.Patiently(waiting, "PostgreSQL", round)
}

// telling says whether a version is the first of its output.
func telling(v *explain.Version) string {
	switch {
	case !v.Change.Present:
		return "withdrawn"
	case v.Change.Version > 1:
		return "corrected"
	}
	return "told"
}

func (f *follower) print(out *bufio.Writer, cfg *manifest.Config, v *explain.Version) error {
	if first := v.Change.Version == 1; f.only == "corrections" && first || f.only == "first" && !first {
		return nil
	}
	if f.lines {
		text, err := encode(struct {
			Schema  int    `json:"schema"`
			Telling string `json:"telling"`
			jsonVersion
		}{1, telling(v), versionOf(v, false)})
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	w, c := words{cfg.QuantityScale}, &v.Cause
	about := v.Output.Kind.String() + " " + key(v.Output.Key)
	if v.Output.Day != 0 {
		about += " " + v.Output.Day.String()
	}
	_, err := fmt.Fprintf(out, "%s  %-9s  %s: %s  (version %d, source %s, %s revision %d, published %s)\n", clock(c.Committed), telling(v), about,
		w.value(&v.Change, v.Threshold), v.Change.Version, coordinates(c.Partition, c.Offset), inspect.Name(c.Assertion.TxnID), c.Assertion.Revision,
		published(v.Published, c.Partition))
	return err
}
