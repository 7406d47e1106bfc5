package query

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/report"
	"amends/internal/usage"
)

// days are the days that balance is asked about.
type days struct{ asOf, from, to string }

// Balance is the command balance.
func Balance(e *target.Env) *cobra.Command {
	r, d := &request{env: e}, &days{}
	cmd := &cobra.Command{
		Use:   "ITEM LOCATION [DAY]",
		Short: "The balance of a key as of a day, as known at an offset or a time",
		Long: `Answers with the close of the latest day at or before DAY that has a balance, else with the opening balance; without DAY
the latest of all. DAY and -as-of are the same. -from and -to, both included, print every day between them that has a
balance; a day without one has no movement and no count, which is not the balance 0.
-known-at answers from what was decided below a source offset of the key's partition, or until a time by the database's
clock. While a key is BLOCKED the answer is its frozen balance, and says so.
A key without a valid record is exit 1, also where it is configured.`,
		Example: `  amends balance widget berlin
  amends balance widget berlin 2026-01-03 -known-at 0/3
  amends balance widget berlin -from 2026-01-01 -to 2026-01-31 -o csv`,
		Args: between(2, 3),
	}
	r.flags(cmd)
	r.knownFlag(cmd)
	e.RowsFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&d.asOf, "as-of", "", "the same as the argument `DAY`")
	f.StringVar(&d.from, "from", "", "print the days from this `DAY` on")
	f.StringVar(&d.to, "to", "", "print the days up to this `DAY`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		form, err := e.Form()
		if err != nil {
			return err
		}
		q, err := r.question(args)
		if err != nil {
			return err
		}
		ranged, err := d.read(q)
		if err != nil {
			return err
		}
		return r.look(cmd.Context(), func(ctx context.Context, a *answer) error {
			b, err := explain.Balances(ctx, a.from, a.cfg, q, ranged)
			if err != nil {
				return err
			}
			switch form {
			case target.FormJSON:
				return a.balanceJSON(b, q, ranged)
			case target.FormCSV:
				return a.balanceCSV(b, ranged)
			}
			return a.balanceText(b, q, ranged)
		})
	}
	return watch.Wrap(e, cmd)
}

// read puts the days into the question and reports whether a range is asked for.
func (d *days) read(q *explain.Question) (ranged bool, err error) {
	asOf, err := day(d.asOf)
	if err != nil {
		return false, err
	}
	to, err := day(d.to)
	if err != nil {
		return false, err
	}
	if q.From, err = day(d.from); err != nil {
		return false, err
	}
	for _, other := range []ledger.Day{asOf, to} {
		if other == 0 {
			continue
		}
		if q.Day != 0 && q.Day != other {
			return false, usage.Errorf("DAY, -as-of and -to say %v and %v: one of them", q.Day, other)
		}
		q.Day = other
	}
	if q.Day != 0 && q.From > q.Day {
		return false, usage.Errorf("-from %v is after %v", q.From, q.Day)
	}
	return q.From != 0 || to != 0, nil
}

func (a *answer) balanceText(b *explain.Range, q *explain.Question, ranged bool) error {
	fmt.Fprintln(a.out, a.headline(&b.Answer, q.Day, q.At))
	if !ranged {
		return nil
	}
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "\nDAY\tBALANCE\tVERSION\tALERT\n")
	for i := range b.Rows {
		row, alert := &b.Rows[i], "-"
		if row.Alert && b.Threshold != nil {
			alert = a.alert(row.Previous, row.Close, *b.Threshold)
		}
		fmt.Fprintf(table, "%v\t%s\t%d\t%s\n", row.Day, a.quantity(row.Close), row.Version, alert)
	}
	return table.Flush()
}

func (a *answer) balanceJSON(b *explain.Range, q *explain.Question, ranged bool) error {
	head := struct {
		jsonAnswer
		From *string `json:"from"`
	}{a.head(&b.Answer, q.Day), dayOf(q.From)}
	if !ranged {
		text, err := encode(head)
		if err == nil {
			_, err = fmt.Fprintf(a.out, "%s\n", text)
		}
		return err
	}
	l, err := newList(a.out, head, "balances")
	if err != nil {
		return err
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		one := jsonRow{Day: row.Day.String(), Close: row.Close, Scaled: a.quantity(row.Close), Version: int64(row.Version),
			Alert: alertOf(row, b.Threshold)}
		if err := l.add(one); err != nil {
			return err
		}
	}
	return l.close()
}

// balanceCSV writes the range, or the one day that has the balance; the opening balance has no day and no version.
func (a *answer) balanceCSV(b *explain.Range, ranged bool) error {
	rows := b.Rows
	if !ranged {
		rows = []explain.Balance{b.Balance}
	}
	c := report.NewCSV(a.out, "item", "location", "day", "balance", "close", "version", "alert", "trusted")
	for i := range rows {
		row := &rows[i]
		at, version := "", ""
		if row.Day != 0 {
			at, version = row.Day.String(), strconv.FormatInt(int64(row.Version), 10)
		}
		if err := c.Row(b.Key.Key.Item, b.Key.Key.Location, at, a.quantity(row.Close), strconv.FormatInt(row.Close, 10), version,
			strconv.FormatBool(row.Alert), strconv.FormatBool(b.Status != nil && !b.Status.Blocked)); err != nil {
			return err
		}
	}
	return c.Flush()
}
