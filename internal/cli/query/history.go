package query

import (
	"context"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/report"
)

// flushEvery bounds the rows that a table's columns wait for.
const flushEvery = 1_000

// History is the command history.
func History(e *target.Env) *cobra.Command {
	r := &request{env: e}
	cmd := &cobra.Command{
		Use:   "ITEM LOCATION [DAY]",
		Short: "Everything that was ever published of a key, in order, with causes and times",
		Long: `Lists every version of the key's outputs in the order of their emission, withdrawn ones included; with DAY only those of
that day. Each comes with the source record that caused it: the business day that the record is about, when it arrived by
the broker's clock, when it was committed, and when and where the output was published.
A key without a valid record is exit 1, also where it is configured.`,
		Example: `  amends history widget berlin
  amends history widget berlin 2026-01-03 -kind balance -o csv`,
		Args: between(2, 3),
	}
	r.flags(cmd)
	r.knownFlag(cmd)
	r.kindFlag(cmd, "default all; with DAY all but status")
	e.RowsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		form, err := e.Form()
		if err != nil {
			return err
		}
		q, err := r.question(args)
		if err != nil {
			return err
		}
		return r.look(cmd.Context(), func(ctx context.Context, a *answer) error {
			told, err := explain.History(ctx, a.from, a.cfg, q, nil)
			if err != nil {
				return err
			}
			each := func(fn func(*explain.Version) error) error {
				_, err := explain.History(ctx, a.from, a.cfg, q, fn)
				return err
			}
			switch form {
			case target.FormJSON:
				return a.historyJSON(told, each)
			case target.FormCSV:
				return a.historyCSV(each)
			}
			return a.historyText(told, q, each)
		})
	}
	return watch.Wrap(e, cmd)
}

// versions calls a function with every version of an answer.
type versions func(func(*explain.Version) error) error

func (a *answer) historyText(told *explain.Told, q *explain.Question, each versions) error {
	about := key(q.Key)
	if q.Day != 0 {
		about += " " + q.Day.String()
	}
	fmt.Fprintf(a.out, "%s: %s, of them %s and %s\n", about, phrase.Counted(told.Versions, "version"), phrase.Counted(told.Corrections, "correction"),
		phrase.Counted(told.Withdrawals, "withdrawal"))
	fmt.Fprintln(a.out, "now "+a.headline(&told.Answer, 0, q.At))
	table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "\nSEQUENCE\tOUTPUT\tDAY\tVERSION\tVALUE\tSOURCE\tCAUSE\tARRIVED\tCOMMITTED\tPUBLISHED\n")
	rows := 0
	err := each(func(v *explain.Version) error {
		c := &v.Cause
		if rows++; rows%flushEvery == 0 {
			if err := table.Flush(); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(table, "%d\t%v\t%v\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Sequence, v.Output.Kind, v.Output.Day, v.Change.Version,
			a.value(&v.Change, v.Threshold), coordinates(c.Partition, c.Offset), a.cause(c), arrived(c.Arrived), clock(c.Committed),
			published(v.Published, c.Partition))
		return err
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

func (a *answer) historyJSON(told *explain.Told, each versions) error {
	head := struct {
		jsonAnswer
		Versions    int64 `json:"told"`
		Corrections int64 `json:"corrections"`
		Withdrawals int64 `json:"withdrawals"`
	}{a.head(&told.Answer, 0), told.Versions, told.Corrections, told.Withdrawals}
	l, err := newList(a.out, head, "versions")
	if err != nil {
		return err
	}
	if err := each(func(v *explain.Version) error { return l.add(versionOf(v, true)) }); err != nil {
		return err
	}
	return l.close()
}

func (a *answer) historyCSV(each versions) error {
	c := report.NewCSV(a.out, "partition", "sequence", "output", "item", "location", "day", "version", "present", "value", "cause_offset", "cause_txn_id",
		"cause_revision", "cause_day", "arrived_at", "committed_at", "published_at", "output_offset")
	err := each(func(v *explain.Version) error {
		s := &v.Cause
		at, where, arrived := "", "", ""
		if v.Published != nil {
			at, where = stamp(v.Published.At), strconv.FormatInt(int64(v.Published.Offset), 10)
		}
		if s.Arrived > 0 {
			arrived = stamp(time.UnixMilli(s.Arrived))
		}
		return c.Row(strconv.Itoa(int(s.Partition)), strconv.FormatInt(int64(v.Sequence), 10), v.Output.Kind.String(), v.Output.Key.Item, v.Output.Key.Location,
			dayField(v.Output.Day), strconv.FormatInt(int64(v.Change.Version), 10), strconv.FormatBool(v.Change.Present), a.field(&v.Change),
			strconv.FormatInt(int64(s.Offset), 10), s.Assertion.TxnID, strconv.FormatInt(int64(s.Assertion.Revision), 10), dayField(s.Assertion.Payload.Day),
			arrived, stamp(s.Committed), at, where)
	})
	if err != nil {
		return err
	}
	return c.Flush()
}

// field writes a value for a column: a scaled number, a status, or nothing where there is none.
func (w words) field(c *ledger.Change) string {
	switch {
	case !c.Present:
		return ""
	case c.Kind != ledger.TrustStatus:
		return w.quantity(c.Close)
	}
	return status(c.Status)
}

func dayField(d ledger.Day) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
