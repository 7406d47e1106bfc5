package query

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/explain"
	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/store/postgres/reader"
	"amends/internal/usage"
)

// mostLines is how many movements are listed before they are summed up by day.
const mostLines = 1_000

// Explain is the command explain.
func Explain(e *target.Env) *cobra.Command {
	r := &request{env: e}
	most := 0
	cmd := &cobra.Command{
		Use:   "ITEM LOCATION [DAY]",
		Short: "Why a balance is what it is: every version with its cause, and the assertions that add up to it",
		Long: `Shows what was published of a day, version by version, each with the source record that caused it, what that record
changed, when it was committed and where it was published. Then the lines that add up to the balance: the opening balance
or the latest count, and every movement since, with the record that states it. The sum is checked against what was
published; a difference is exit 11.
Without DAY: the versions of the key's trust status, and the latest balance.
While a key is BLOCKED its balances stay as they were, so the lines are those from just before the record that blocked it.
A key without a valid record is exit 1, also where it is configured.`,
		Example: `  amends explain widget berlin 2026-01-02
  amends explain widget berlin 2026-01-03 -known-at 0/3
  amends explain widget berlin -o json | jq .lines`,
		Args: between(2, 3),
	}
	r.flags(cmd)
	r.knownFlag(cmd)
	r.kindFlag(cmd, "default balance,alert; without DAY status")
	e.OutputFlag(cmd)
	cmd.Flags().IntVar(&most, "lines", mostLines, "list up to `n` movements, sum them up by day where there are more")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		q, err := r.question(args)
		if err != nil {
			return err
		}
		if most < 0 {
			return usage.Errorf("-lines %d: 0 or more", most)
		}
		q.Most = most
		if q.Kinds == nil {
			q.Kinds = []ledger.OutputKind{ledger.TrustStatus}
		}
		return r.look(cmd.Context(), func(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, out io.Writer) error {
			x, err := explain.Of(ctx, from, cfg, q)
			if err != nil {
				return err
			}
			if asJSON {
				return explainJSON(out, cfg, x)
			}
			return explainText(out, words{cfg.QuantityScale}, x, q.At)
		})
	}
	return watch.Wrap(e, cmd)
}

func explainJSON(out io.Writer, cfg *manifest.Config, x *explain.Explanation) error {
	l, err := newList(out, answerOf(cfg.Namespace, cfg.QuantityScale, &x.Answer, x.Day), "versions")
	if err != nil {
		return err
	}
	for i := range x.Versions {
		if err := l.add(versionOf(&x.Versions[i], true)); err != nil {
			return err
		}
	}
	if err := l.next("lines"); err != nil {
		return err
	}
	for i := range x.Lines {
		if err := l.add(lineOf(&x.Lines[i], x.Key.Partition)); err != nil {
			return err
		}
	}
	return l.close()
}

func explainText(out io.Writer, w words, x *explain.Explanation, at *explain.Point) error {
	fmt.Fprintln(out, w.headline(&x.Answer, x.Day, at))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if len(x.Versions) == 0 {
		fmt.Fprintln(out, "\nNothing was ever published of it.")
	} else {
		fmt.Fprint(table, "\nOUTPUT\tDAY\tVERSION\tVALUE\tSOURCE\tCAUSE\tCOMMITTED\tPUBLISHED\n")
	}
	for i := range x.Versions {
		v := &x.Versions[i]
		fmt.Fprintf(table, "%v\t%v\t%d\t%s\t%s\t%s\t%s\t%s\n", v.Output.Kind, v.Output.Day, v.Change.Version, w.value(&v.Change, v.Threshold),
			coordinates(v.Cause.Partition, v.Cause.Offset), w.cause(&v.Cause), clock(v.Cause.Committed), published(v.Published, v.Cause.Partition))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s is the sum of\n", w.quantity(x.Balance.Close))
	if x.Blocked != nil {
		fmt.Fprintf(out, "what applied before source %s, which blocked the key: %s\n", coordinates(x.Blocked.Partition, x.Blocked.Offset), w.cause(x.Blocked))
	}
	fmt.Fprint(table, "\nAMOUNT\tTOTAL\tDAY\tSOURCE\tASSERTION\n")
	for i := range x.Lines {
		l := &x.Lines[i]
		source, text := w.line(l, x.Key.Partition)
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\t%s\n", w.signed(l.Amount), phrase.Scaled(l.Total, w.scale), l.Day, source, text)
	}
	return table.Flush()
}

// line writes where a line comes from and what it is.
func (w words) line(l *explain.Line, in ledger.Partition) (source, text string) {
	switch l.Kind {
	case explain.OpeningBalance:
		return "-", "opening balance"
	case explain.DayOfMovements:
		return "-", phrase.Counted(l.Movements, "movement") + " of the day"
	}
	kind, _ := ledger.ParseKind(string(l.Kind))
	text = fmt.Sprintf("%s revision %d, %s", inspect.Name(l.TxnID), l.Revision, kindName(kind))
	if kind.IsCount() {
		text += ", which replaces what was before"
		if l.Amount.Sign() == 0 && l.Total.Sign() != 0 {
			text = fmt.Sprintf("%s revision %d, %s of the same", inspect.Name(l.TxnID), l.Revision, kindName(kind))
		}
	}
	return coordinates(in, l.Source), text
}
