package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/bench"
	"amends/internal/usage"
	"amends/internal/workload"
)

func (a *app) bench() *cobra.Command {
	var quick bool
	var laws, what []string
	var o bench.Options
	cmd := &cobra.Command{
		Short: "Measure amends beside what people would build instead",
		Long: `Brings the same records through amends, through the obvious one-transaction-a-record design and through a database trigger,
on a PostgreSQL and a broker of its own with fsync on, compares what they published and prints the ratios. History is written
straight into every store before a clock starts. Other parts: the worker alone beside COPY, one correction under many later
movements, and the time from a claim to the first commit.`,
		Example: `  amends bench -quick
  amends bench -what correction,takeover
  amends bench -law long-deep -records 20000 -limit 30s -o json`,
		Args: usage.NoArgs,
	}
	a.OutputFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "path and correction; short and long-deep, 20,000 records or 30 s each")
	f.StringSliceVar(&what, "what", nil, "`parts` to measure, with commas: path, worker, correction, takeover (default: all)")
	f.StringSliceVar(&laws, "law", nil, "`laws` to measure, with commas: short, long-shallow, long-deep")
	usage.Own(cmd, "law", "bench-law") // generate takes one, and others
	f.IntVar(&o.Records, "records", 0, "measured `records` of each law (0: 20,000 with -quick, else 60,000)")
	f.IntVar(&o.Keys, "keys", 0, "stock keys (0: the law's own `number`)")
	f.Uint64Var(&o.Seed, "seed", 0, "`number` that the records follow from")
	f.DurationVar(&o.Limit, "limit", 0, "`time` for each peer (0: 30s with -quick, else 60s)")
	usage.Own(cmd, "limit", "bench-limit") // that of diagnostics is another
	f.StringVar(&o.Dir, "dir", "", "`directory` for the data, removed at the end (default: the system's temporary one)")
	usage.Own(cmd, "dir", "bench-dir") // elsewhere it is the directory of the embedded stack
	f.StringVar(&o.BinDir, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: they are looked for)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		if err := benchOptions(&o, quick, laws, what); err != nil {
			return err
		}
		o.Say = func(line string) { fmt.Fprintln(a.Stderr, line) }
		r, err := bench.Run(cmd.Context(), o)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(a.Stdout).Encode(r)
		}
		return r.WriteText(a.Stdout)
	}
	return cmd
}

// benchOptions completes what was not told.
func benchOptions(o *bench.Options, quick bool, laws, what []string) error {
	if o.Records < 0 || o.Keys < 0 || o.Limit < 0 {
		return usage.Errorf("-records, -keys and -limit are 0 or more")
	}
	standard := bench.Full()
	if quick {
		standard = bench.Quick()
	}
	for _, name := range laws {
		law, ok := workload.ParseLaw(strings.TrimSpace(name))
		if !ok || law != workload.Short && law != workload.LongShallow && law != workload.LongDeep {
			return usage.Errorf("-law %s: short, long-shallow or long-deep", name)
		}
		o.Laws = append(o.Laws, law)
	}
	for _, name := range what {
		part := bench.Part(strings.TrimSpace(name))
		if !slices.Contains(bench.Parts(), part) {
			return usage.Errorf("-what %s: path, worker, correction or takeover", name)
		}
		o.What = append(o.What, part)
	}
	if len(o.What) == 0 {
		o.What = standard.What
	}
	o.Movements, o.Transactions = standard.Movements, standard.Transactions
	if len(o.Laws) == 0 {
		o.Laws = standard.Laws
	}
	if o.Records == 0 {
		o.Records = standard.Records
	}
	if o.Limit == time.Duration(0) {
		o.Limit = standard.Limit
	}
	return nil
}
