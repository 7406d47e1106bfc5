package query

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/explain"
	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/phrase"
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
		return r.look(cmd.Context(), func(ctx context.Context, a *answer) error {
			x, err := explain.Of(ctx, a.from, a.cfg, q)
			if err != nil {
				return err
			}
			if asJSON {
				return a.explainJSON(x)
			}
			return a.explainText(x, q.At)
		})
	}
	return watch.Wrap(e, cmd)
}

func (a *answer) explainJSON(x *explain.Explanation) error {
	l, err := newList(a.out, a.head(&x.Answer, x.Day), "versions")
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

func (a *answer) explainText(x *explain.Explanation, at *explain.Point) error {
	fmt.Fprintln(a.out, a.headline(&x.Answer, x.Day, at))
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	if len(x.Versions) == 0 {
		fmt.Fprintln(a.out, "\nNothing was ever published of it.")
	} else {
		fmt.Fprint(table, "\nOUTPUT\tDAY\tVERSION\tVALUE\tSOURCE\tCAUSE\tCOMMITTED\tPUBLISHED\n")
	}
	for i := range x.Versions {
		v := &x.Versions[i]
		fmt.Fprintf(table, "%v\t%v\t%d\t%s\t%s\t%s\t%s\t%s\n", v.Output.Kind, v.Output.Day, v.Change.Version, a.value(&v.Change, v.Threshold),
			coordinates(v.Cause.Partition, v.Cause.Offset), a.cause(&v.Cause), clock(v.Cause.Committed), published(v.Published, v.Cause.Partition))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\n%s is the sum of\n", a.quantity(x.Balance.Close))
	if x.Blocked != nil {
		fmt.Fprintf(a.out, "what applied before source %s, which blocked the key: %s\n", coordinates(x.Blocked.Partition, x.Blocked.Offset), a.cause(x.Blocked))
	}
	fmt.Fprint(table, "\nAMOUNT\tTOTAL\tDAY\tSOURCE\tASSERTION\n")
	for i := range x.Lines {
		l := &x.Lines[i]
		source, text := a.line(l, x.Key.Partition, i == 0)
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\t%s\n", a.signed(l.Amount), phrase.Scaled(l.Total, a.scale), l.Day, source, text)
	}
	return table.Flush()
}

// line writes where a line comes from and what it is. Of several counts, which agree, the first one replaces.
func (w words) line(l *explain.Line, in ledger.Partition, first bool) (source, text string) {
	switch l.Kind {
	case explain.OpeningBalance:
		return "-", "opening balance"
	case explain.DayOfMovements:
		return "-", phrase.Counted(l.Movements, "movement") + " of the day"
	}
	kind, _ := ledger.ParseKind(string(l.Kind))
	text = fmt.Sprintf("%s revision %d, %s", inspect.Name(l.TxnID), l.Revision, kindName(kind))
	switch {
	case kind.IsCount() && first:
		text += ", which replaces what was before"
	case kind.IsCount():
		text += " of the same"
	}
	return coordinates(in, l.Source), text
}
