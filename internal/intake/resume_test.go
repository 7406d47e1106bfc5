package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
)

// weary acknowledges so many calls and then fails.
type weary struct {
	*broker.Producer
	left *int
}

var errWeary = errors.New("the broker is away")

func (w weary) Produce(ctx context.Context, p ledger.Partition, m []broker.Message) ([]ledger.Offset, error) {
	if *w.left == 0 {
		return nil, errWeary
	}
	*w.left--
	return w.Producer.Produce(ctx, p, m)
}

// An import that is cut off again and again, and read anew each time, publishes every record once and in order.
func TestCutOffImportGoesOn(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":1,"quantity_scale":0,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}`)
	const rows = 4500 // five pages
	var text strings.Builder
	text.WriteString(header)
	for i := range rows {
		fmt.Fprintf(&text, "sku,x,T-%d,2026-01-03,5\n", i/2) // each transaction twice: revisions 1 and 2
	}
	csv, mapping := write(t, "stock.csv", text.String()), write(t, "map.yaml", strings.Replace(simple, "revision: 1", "revision: first_seen", 1))
	var got []provision.Coordinates
	run := func(pages int) (int64, error) {
		f := opened(t, csv, mapping, w.Source)
		j := OpenJournal(csv + ".progress")
		l := provision.Load{Manifest: w.Source, Topics: w.Admin, Path: csv,
			Emit: func(c []provision.Coordinates) error { got = append(got, c...); return nil },
			Guard: func(ctx context.Context) (provision.Guard, error) {
				g, err := w.DB.GuardSource(ctx, w.Source.Config.SourceIncarnation)
				if err != nil {
					return nil, err
				}
				return g, nil
			},
			Publish: func() (provision.Publisher, error) {
				p, err := broker.NewProducer(w.Broker, w.Source.SourceTopic, w.Source.Config.SourceIncarnation)
				return weary{p, &pages}, err
			},
			Options: provision.Options{Rows: f.Rows, Acknowledged: j.Acknowledged,
				Validated: func(int64) (int64, error) { return j.Begin(f, false) }}}
		n, err := l.Run(t.Context())
		if errors.Is(err, ErrComplete) {
			return n, err
		}
		return n, errors.Join(err, j.End(err == nil))
	}
	for i, step := range []struct {
		pages   int
		want    int64
		failure error
	}{{0, 0, errWeary}, {2, 2000, errWeary}, {1, 1000, errWeary}, {9, 1500, nil}, {9, 0, ErrComplete}} {
		if n, err := run(step.pages); n != step.want || !errors.Is(err, step.failure) {
			t.Fatalf("run %d: %d records, %v", i, n, err)
		}
	}
	for i, c := range got {
		if want := fmt.Sprintf("T-%d", i/2); c.TxnID != want || c.Revision != ledger.Revision(i%2+1) || c.Offset != ledger.Offset(i) || c.Line != int64(i+2) {
			t.Fatalf("record %d: %+v", i, c)
		}
	}
	if len(got) != rows {
		t.Errorf("published %d records", len(got))
	}
}
