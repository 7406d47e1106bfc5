package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/usage"
	"amends/internal/workload"
)

func (a *app) generate() *cobra.Command {
	var o workload.Options
	var law, config string
	cmd := &cobra.Command{
		Short: "Write a seeded history of source records, as a file for source load",
		Long: `Writes valid records, one a line, in order of arrival: late corrections, day moves, cancellations, reactivations and counts,
or a law of the benchmarks. The same flags give the same bytes. With the mixed law and one key the file loads into a namespace
of source create without -config; for everything else -config NAMESPACE writes the configuration file instead.`,
		Example: `  amends generate -seed 7 > history.jsonl
  amends generate -law retail -seed 7 -config shop > shop.json
  amends generate -law retail -seed 7 > shop.jsonl`,
		Args: usage.NoArgs,
	}
	f := cmd.Flags()
	f.Uint64Var(&o.Seed, "seed", 1, "`number` that everything random follows from")
	f.StringVar(&law, "law", workload.Mixed.String(), "`law` of the history: "+strings.Join(workload.Laws(), ", "))
	usage.Own(cmd, "law", "generate-law") // bench takes several, and not all
	f.IntVar(&o.Keys, "keys", 0, "stock keys (0: the law's own `number`)")
	f.IntVar(&o.Days, "days", 0, "business days (0: the law's own `number`)")
	f.IntVar(&o.Transactions, "records", 0, "records (0: the law's own `number`)")
	f.IntVar(&o.Conflicts, "conflicts", 0, "`percent` of records that contradict a recorded revision; mixed only")
	f.StringVar(&config, "config", "", "write the configuration file of this `namespace` instead of records")
	usage.Own(cmd, "config", "generate-config") // that of source create is a file
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var ok bool
		if o.Law, ok = workload.ParseLaw(law); !ok {
			return usage.Errorf("-law %s: one of %s", law, strings.Join(workload.Laws(), ", "))
		}
		if o.Keys < 0 || o.Keys > 1_000_000 || o.Days < 0 || o.Days > ledger.HorizonDays || o.Transactions < 0 || o.Conflicts < 0 || o.Conflicts > 100 {
			return usage.Errorf("%s: -keys is 0..1000000, -records 0 or more, -days 0..%d, -conflicts 0..100", cmd.CommandPath(), ledger.HorizonDays)
		}
		if o.Conflicts > 0 && o.Law != workload.Mixed {
			return usage.Errorf("-conflicts belongs to -law mixed")
		}
		out := bufio.NewWriterSize(writerOf(func(p []byte) (int, error) {
			if err := context.Cause(cmd.Context()); err != nil {
				return 0, err // it may go on for long
			}
			return a.Stdout.Write(p)
		}), 1<<20)
		if config != "" {
			if !manifest.ValidNamespace(config) {
				return usage.Errorf("-config %q: a namespace is [a-z0-9][a-z0-9._-]{0,63}", config)
			}
			if err := workload.WriteConfig(out, config, o); err != nil {
				return err
			}
			return out.Flush()
		}
		if err := workload.Generate(out, o); err != nil {
			return err
		}
		return out.Flush()
	}
	return cmd
}

// writerOf is a function that writes.
type writerOf func([]byte) (int, error)

var _ io.Writer = writerOf(nil)

// Write calls it.
func (w writerOf) Write(p []byte) (int, error) { return w(p) }
