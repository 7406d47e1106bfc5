package query

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/phrase"
	"amends/internal/report"
	"amends/internal/store/postgres/reader"
	"amends/internal/usage"
)

// Diff is the command diff.
func Diff(e *target.Env) *cobra.Command {
	r := &request{env: e}
	var at []string
	cmd := &cobra.Command{
		Use:   "[ITEM LOCATION]",
		Short: "What was told differently at two points: outputs with their values before and after",
		Long: `Compares what was told at two points, given in either order. A source offset stands for what the records below it
decided; a time for what was published by then, as the delivery receipts say. With PARTITION/OFFSET only that partition is
compared; a bare OFFSET needs a key. An output that changed and changed back is listed: its versions differ.`,
		Example: `  amends diff -at 0/3 -at 0/5
  amends diff -at 2026-01-31T08:00Z -at 2026-02-01T08:00Z widget berlin
  amends diff -at 3 -at 5 widget berlin -o csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return between(2, 2)(cmd, args)
		},
	}
	r.flags(cmd)
	r.kindFlag(cmd, "default all")
	e.RowsFlag(cmd)
	cmd.Flags().StringArrayVar(&at, "at", nil, "a `point`, twice: "+explain.PointForms)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		form, err := e.Form()
		if err != nil {
			return err
		}
		d, err := r.comparison(at, args)
		if err != nil {
			return err
		}
		return r.look(cmd.Context(), func(ctx context.Context, a *answer) error {
			if err := d.resolve(ctx, a); err != nil {
				return err
			}
			switch form {
			case target.FormJSON:
				return d.json()
			case target.FormCSV:
				return d.csv()
			}
			return d.text()
		})
	}
	return watch.Wrap(e, cmd)
}

// comparison is one diff.
type comparison struct {
	*answer
	key    *ledger.StockKey
	stored *reader.StoredKey
	each   func(func(explain.Span, *explain.Difference) error) error
	kinds  []ledger.OutputKind
	spans  []explain.Span
	points [2]explain.Point
}

func (r *request) comparison(at, args []string) (*comparison, error) {
	if len(at) != 2 {
		return nil, usage.Errorf("-at is given twice: what was told at one point and at another")
	}
	d := &comparison{}
	for i, text := range at {
		p, err := explain.ParsePoint(text)
		if err != nil {
			return nil, usage.Errorf("-at %v", err)
		}
		d.points[i] = p
	}
	if len(args) == 2 {
		k, err := r.key(args)
		if err != nil {
			return nil, err
		}
		d.key = &k
	}
	var err error
	d.kinds, err = r.only()
	return d, err
}

// resolve finds the key and what is to be compared.
func (d *comparison) resolve(ctx context.Context, a *answer) error {
	d.answer = a
	if d.key != nil {
		k, err := explain.Find(ctx, a.from, a.cfg, *d.key)
		if err != nil {
			return err
		}
		d.stored = &k
	}
	var err error
	if d.spans, err = explain.Spans(ctx, a.from, d.points, d.stored); err != nil {
		return err
	}
	d.each = func(fn func(explain.Span, *explain.Difference) error) error {
		for _, s := range d.spans {
			err := explain.Compare(ctx, a.from, a.cfg, s, d.stored, func(x *explain.Difference) error {
				if !d.asked(x.Output.Kind) {
					return nil
				}
				return fn(s, x)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

func (d *comparison) asked(kind ledger.OutputKind) bool {
	return d.kinds == nil || slices.Contains(d.kinds, kind)
}

// change is by how much a balance differs, and false where one of the two has none.
func change(x *explain.Difference) (*big.Int, bool) {
	before, after := &x.Before.Change, &x.After.Change
	if x.Output.Kind != ledger.Balance || !before.Present || !after.Present {
		return nil, false
	}
	return new(big.Int).Sub(big.NewInt(after.Close), big.NewInt(before.Close)), true
}

func (d *comparison) text() error {
	count, keys, last := int64(0), int64(0), ledger.StockKey{}
	err := d.each(func(_ explain.Span, x *explain.Difference) error {
		if count++; count == 1 || x.Output.Key != last {
			keys++
		}
		last = x.Output.Key
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "%s of %s told differently\n", phrase.Counted(count, "output"), phrase.Counted(keys, "key"))
	for _, s := range d.spans {
		fmt.Fprintf(d.out, "partition %d: source below %d, then below %d\n", s.Partition, s.Before.Frontier, s.After.Frontier)
	}
	if count == 0 {
		return nil
	}
	table := tabwriter.NewWriter(d.out, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "\nOUTPUT\tITEM LOCATION\tDAY\tBEFORE\tAFTER\tCHANGE\tVERSIONS\tSOURCE\tCAUSE\tCOMMITTED\n")
	rows := 0
	err = d.each(func(s explain.Span, x *explain.Difference) error {
		by := "-"
		if n, ok := change(x); ok {
			by = d.signed(n)
		}
		if rows++; rows%flushEvery == 0 {
			if err := table.Flush(); err != nil {
				return err
			}
		}
		c := &x.After.Cause
		_, err := fmt.Fprintf(table, "%v\t%s\t%v\t%s\t%s\t%s\t%d -> %d\t%s\t%s\t%s\n", x.Output.Kind, key(x.Output.Key), x.Output.Day,
			d.value(&x.Before.Change, x.Before.Threshold), d.value(&x.After.Change, x.After.Threshold), by, x.Before.Change.Version,
			x.After.Change.Version, coordinates(s.Partition, c.Offset), d.record(&c.Assertion), clock(c.Committed))
		return err
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

type jsonSpan struct {
	Partition int32 `json:"partition"`
	Before    int64 `json:"before"`
	After     int64 `json:"after"`
}

type jsonDifference struct {
	Output    string     `json:"output"`
	Item      string     `json:"item"`
	Location  string     `json:"location"`
	Day       *string    `json:"day"`
	Partition int32      `json:"partition"`
	Before    *jsonValue `json:"before"`
	After     *jsonValue `json:"after"`
	Change    *big.Int   `json:"change"`
}

type jsonValue struct {
	Version  int64      `json:"version"`
	Present  bool       `json:"present"`
	Payload  any        `json:"payload"`
	Sequence int64      `json:"sequence"`
	Cause    jsonSource `json:"cause"`
}

func (d *comparison) json() error {
	head := struct {
		Schema    int        `json:"schema"`
		Namespace string     `json:"namespace"`
		Scale     int32      `json:"quantity_scale"`
		Spans     []jsonSpan `json:"spans"`
	}{Schema: 1, Namespace: d.cfg.Namespace, Scale: d.cfg.QuantityScale}
	for _, s := range d.spans {
		head.Spans = append(head.Spans, jsonSpan{int32(s.Partition), int64(s.Before.Frontier), int64(s.After.Frontier)})
	}
	l, err := newList(d.out, head, "differences")
	if err != nil {
		return err
	}
	err = d.each(func(s explain.Span, x *explain.Difference) error {
		one := jsonDifference{Output: x.Output.Kind.String(), Item: x.Output.Key.Item, Location: x.Output.Key.Location, Day: dayOf(x.Output.Day),
			Partition: int32(s.Partition), Before: valueOf(&x.Before), After: valueOf(&x.After)}
		if n, ok := change(x); ok {
			one.Change = n
		}
		return l.add(one)
	})
	if err != nil {
		return err
	}
	return l.close()
}

func valueOf(v *explain.Value) *jsonValue {
	if v.Change.Version == 0 {
		return nil
	}
	return &jsonValue{Version: int64(v.Change.Version), Present: v.Change.Present, Payload: payloadOf(&v.Change, v.Threshold), Sequence: int64(v.Sequence),
		Cause: sourceOf(&v.Cause, false)}
}

func (d *comparison) csv() error {
	c := report.NewCSV(d.out, "partition", "output", "item", "location", "day", "before_version", "before", "after_version", "after", "change", "cause_offset",
		"cause_txn_id", "cause_revision", "committed_at")
	err := d.each(func(s explain.Span, x *explain.Difference) error {
		by, before := "", ""
		if n, ok := change(x); ok {
			by = phrase.Scaled(n, d.scale)
		}
		if x.Before.Change.Version > 0 {
			before = d.field(&x.Before.Change)
		}
		a := &x.After.Cause.Assertion
		return c.Row(strconv.Itoa(int(s.Partition)), x.Output.Kind.String(), x.Output.Key.Item, x.Output.Key.Location, dayField(x.Output.Day),
			strconv.FormatInt(int64(x.Before.Change.Version), 10), before, strconv.FormatInt(int64(x.After.Change.Version), 10), d.field(&x.After.Change), by,
			strconv.FormatInt(int64(x.After.Cause.Offset), 10), a.TxnID, strconv.FormatInt(int64(a.Revision), 10), stamp(x.After.Cause.Committed))
	})
	if err != nil {
		return err
	}
	return c.Flush()
}
