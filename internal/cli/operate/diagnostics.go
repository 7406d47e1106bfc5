package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/diagnose"
	"amends/internal/inspect"
	"amends/internal/phrase"
	"amends/internal/usage"
)

// Diagnostics lists what was wrong with the input.
func Diagnostics(e *target.Env) *cobra.Command {
	job := &diagnose.Job{Limit: 20}
	var export, only string
	cmd := &cobra.Command{
		Short: "List rejected records and conflicts, with the records that resolve them",
		Long: `Rejected records with their code, coordinates and bytes as text and hex; then what blocks a key now, each candidate with its
coordinates and the record that would resolve it, as source load takes it; then conflicts that a higher revision settled.
Only the database is read: it answers while the broker is away. -export raw writes every rejected record for source load
-format raw; those of which only the beginning is kept (TOO_LARGE) are named on stderr and left out.`,
		Example: `  amends diagnostics -manifest pipeline.json
  amends diagnostics -manifest pipeline.json -only current -o json
  amends diagnostics -manifest pipeline.json -only rejected -limit 100 -after 0/4711
  amends diagnostics -manifest pipeline.json -export raw > rejected.jsonl`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.SpareBrokersFlag(cmd)
	e.OutputFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&only, "only", "", "one `section`: rejected, current or superseded")
	f.IntVar(&job.Limit, "limit", job.Limit, "at most that `many` entries of a section, 1..1000")
	usage.Own(cmd, "only", "diagnostics-only") // those of tail and bench are others
	usage.Own(cmd, "limit", "diagnostics-limit")
	f.StringVar(&job.After, "after", "", "go on behind this `place`, as the page before named it; needs -only")
	f.StringVar(&export, "export", "", "write every rejected record in this `format`: raw")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		job.Only = diagnose.Section(only)
		switch {
		case !job.Only.Valid():
			return usage.Errorf("-only %s: rejected, current or superseded", only)
		case job.Limit < 1 || job.Limit > diagnose.MaxLimit:
			return usage.Errorf("-limit %d: 1..%d", job.Limit, diagnose.MaxLimit)
		case job.After != "" && job.Only == diagnose.All:
			return usage.Errorf("-after needs -only rejected, current or superseded")
		case export != "" && export != "raw":
			return usage.Errorf("-export %s: raw", export)
		case export != "" && (asJSON || only != ""):
			return usage.Errorf("-export writes the rejected records alone: leave out -only and -o")
		}
		return opened(cmd.Context(), e, func(t *target.Target, s *target.Session) error {
			if export != "" {
				return exported(cmd, e, s)
			}
			job.Look, job.Namespace, job.Scale = s.Namespace, t.Manifest.Config.Namespace, t.Manifest.Config.QuantityScale
			r, err := job.Run(cmd.Context())
			if errors.Is(err, diagnose.ErrPlace) {
				return usage.Errorf("-after %v; the page before names it", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return inspect.WriteJSON(e.Stdout, r)
			}
			return inspect.DiagnosticsText(e.Stdout, r, job.Only, again(cmd, e, job.Limit))
		})
	}
	return watch.Wrap(e, cmd)
}

// again is the command that asks for more, as it can be pasted.
func again(cmd *cobra.Command, e *target.Env, limit int) string {
	line := target.Quote(e.Program) + " " + cmd.Name()
	if path := cmd.Flags().Lookup("manifest").Value.String(); path != "" {
		line += " -manifest " + target.Quote(path)
	}
	return fmt.Sprintf("%s -limit %d", line, limit)
}

// exported writes the rejected records to stdout and what is left out to stderr.
func exported(cmd *cobra.Command, e *target.Env, s *target.Session) error {
	left := 0
	n, err := diagnose.Export(cmd.Context(), s.Namespace, e.Stdout, func(r *diagnose.Record) {
		left++
		fmt.Fprintf(e.Stderr, "left out %d/%d: %v, of %d key and %d value bytes the first %d and %d are kept\n", r.Partition, r.Offset, r.Code,
			r.Evidence.KeyLength, r.Evidence.ValueLength, len(r.Evidence.Key), len(r.Evidence.Value))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Stderr, "exported %s, left out %d\n", phrase.Counted(n, "rejected record"), left)
	return nil
}
