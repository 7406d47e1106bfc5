package provision_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
)

// table opens rows of two records each, at every third line.
func table(rows int) func() (*provision.Rows, error) {
	return func() (*provision.Rows, error) {
		n := 0
		return &provision.Rows{Size: int64(rows) * 10, Close: func() error { return nil }, Next: func() (provision.Row, error) {
			if n == rows {
				return provision.Row{}, io.EOF
			}
			n++
			return provision.Row{Line: int64(n * 3), Read: int64(n) * 10, Values: [][]byte{[]byte(value("a", 2*n)), []byte(value("b", 2*n+1))}}, nil
		}}, nil
	}
}

func TestLoadPublishesRowsAndSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	l, got := loading(w, "stock.csv", provision.JSONL)
	l.Rows = table(1500)
	var steps []string
	var acknowledged []int64
	l.Progress = func(stage string, done, total int64) {
		steps = append(steps, fmt.Sprint(stage, " ", done, " of ", total))
	}
	l.Acknowledged = func(line int64) error { acknowledged = append(acknowledged, line); return nil }
	if n, err := l.Check(t.Context()); n != 3000 || err != nil || len(*got) != 0 {
		t.Fatalf("check: %d records, %v, published %d", n, err, len(*got))
	}
	steps = nil
	if n, err := l.Run(t.Context()); n != 3000 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	if diff := cmp.Diff([]string{"check 10000 of 15000", "check 15000 of 15000", "publish 2000 of 3000", "publish 3000 of 3000"}, steps); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{3000, 4500}, acknowledged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]ledger.Offset{1500, 1500}, ends(t, w)); diff != "" {
		t.Error(diff)
	}
	if c := (*got)[2999]; c.Line != 4500 || c.TxnID != "T-3001" || c.Partition != 1 {
		t.Errorf("last record %+v", c)
	}
}

func TestLoadGoesOnAfterALine(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	l, got := loading(w, "stock.csv", provision.JSONL)
	l.Rows = table(1500)
	l.Validated = func(records int64) (int64, error) {
		if records != 3000 {
			t.Errorf("validated %d records", records)
		}
		return 4494, nil
	}
	if n, err := l.Run(t.Context()); n != 4 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	if c := (*got)[0]; c.Line != 4497 || len(*got) != 4 {
		t.Errorf("went on with %+v of %d", c, len(*got))
	}
	stop := errors.New("stop")
	l.Validated = func(int64) (int64, error) { return 0, stop }
	if n, err := l.Run(t.Context()); n != 0 || !errors.Is(err, stop) || len(*got) != 4 {
		t.Errorf("%d records, %v", n, err)
	}
}

// lame acknowledges only what goes to partition 0.
type lame struct{ *broker.Producer }

var errLame = errors.New("partition 1 is away")

func (l lame) Produce(ctx context.Context, p ledger.Partition, m []broker.Message) ([]ledger.Offset, error) {
	if p == 1 {
		return nil, errLame
	}
	return l.Producer.Produce(ctx, p, m)
}

// A row of two records of which only one was acknowledged is not an acknowledged line.
func TestHalfARowIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	l, got := loading(w, "stock.csv", provision.JSONL)
	l.Rows = table(5)
	l.Publish = func() (provision.Publisher, error) {
		p, err := broker.NewProducer(w.Broker, w.Source.SourceTopic, w.Source.Config.SourceIncarnation)
		return lame{p}, err
	}
	n, err := l.Run(t.Context())
	var failed *provision.LoadError
	if !errors.As(err, &failed) || !errors.Is(err, errLame) || failed.Acknowledged != 0 || n != 5 || len(*got) != 5 {
		t.Errorf("%d records, %v, %d emitted", n, err, len(*got))
	}
}

func TestLoadRefusesRows(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	l, _ := loading(w, "stock.csv", provision.JSONL)
	l.Problems = 2
	given := []provision.Row{{Line: 2, Values: [][]byte{[]byte(value("a", 1))}}, {Line: 3, Problems: []provision.Problem{{Column: 7, Reason: "no number"}}},
		{Line: 4, Values: [][]byte{[]byte(value("c", 1))}}, {Line: 6, Values: [][]byte{make([]byte, ledger.MaxValueBytes+1)}}}
	l.Rows = func() (*provision.Rows, error) {
		at := 0
		return &provision.Rows{Close: func() error { return nil }, Next: func() (provision.Row, error) {
			if at == len(given) {
				return provision.Row{}, io.EOF
			}
			at++
			return given[at-1], nil
		}}, nil
	}
	_, err := l.Run(t.Context())
	var refused *provision.RefusedFile
	if !errors.As(err, &refused) || refused.Count != 3 {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"line 3 column 7: no number", `line 4: UNKNOWN_KEY: item "c" at location "x" is not configured, and keys are not open`},
		[]string{refused.Problems[0].String(), refused.Problems[1].String()}); diff != "" || len(refused.Problems) != 2 {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"": 1, "UNKNOWN_KEY": 1, "TOO_LARGE": 1}, refused.Codes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]ledger.Offset{0, 0}, ends(t, w)); diff != "" {
		t.Error(diff)
	}
}

// Rows of one line may lie on two pages: the line is acknowledged with the last of them.
func TestALineThatGoesOnIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, twoKeys)
	l, _ := loading(w, "dump.sql", provision.JSONL)
	l.Rows = func() (*provision.Rows, error) {
		n := 0
		return &provision.Rows{Close: func() error { return nil }, Next: func() (provision.Row, error) {
			if n++; n > 2500 {
				return provision.Row{}, io.EOF
			}
			line := int64(1)
			if n > 900 {
				line = 2
			}
			if n > 2200 {
				line = 3
			}
			return provision.Row{Line: line, Values: [][]byte{[]byte(value("a", n))}}, nil
		}}, nil
	}
	var acknowledged []int64
	l.Acknowledged = func(line int64) error { acknowledged = append(acknowledged, line); return nil }
	if n, err := l.Run(t.Context()); n != 2500 || err != nil {
		t.Fatalf("%d records, %v", n, err)
	}
	if diff := cmp.Diff([]int64{1, 1, 3}, acknowledged); diff != "" {
		t.Error(diff)
	}
}
