package recovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/reader"
	"amends/internal/verify"
	"amends/internal/verify/stored"
)

// ErrPartitions: namespaces with different numbers of partitions have no order in common (exit 2).
var ErrPartitions = errors.New("namespaces with different numbers of partitions cannot be compared")

// Difference says how one output differs between two namespaces. The names are stable.
type Difference string

// The differences.
const (
	OnlyA Difference = "ONLY_A" // present in the first alone
	OnlyB Difference = "ONLY_B" // present in the second alone
	Value Difference = "VALUE"  // present in both with different payloads
)

// Compared is one side of a comparison. A partition's cut is the source frontier that its rows stand for (S10).
type Compared struct {
	Namespace string
	Cuts      []ledger.Frontier
	Present   int64 // outputs
	Withdrawn int64 // tombstones
	Scale     int32 // its quantities are in units of 10^-Scale
}

// FirstDifference is the first output that differs, with the row of each side, nil where there is none.
type FirstDifference struct {
	What      Difference
	A, B      *store.ViewRow
	ID        ledger.OutputID
	Partition ledger.Partition
}

// Comparison is the outcome of comparing two namespaces by output and value: payload and presence. An output that was
// never there and one that was withdrawn are the same: not present. Versions and causes are not compared.
type Comparison struct {
	First         *FirstDifference
	A, B          Compared
	Configuration []string // members in which the configurations differ, the namespace's name aside
	Equal         int64    // outputs present in both with equal payloads
	OnlyA         int64
	OnlyB         int64
	Value         int64
}

// Differences counts the outputs that differ.
func (c *Comparison) Differences() int64 { return c.OnlyA + c.OnlyB + c.Value }

// SameCuts reports whether both sides stand for the same source records, where they have the same source.
func (c *Comparison) SameCuts() bool { return slices.Equal(c.A.Cuts, c.B.Cuts) }

// Compare walks the views of two namespaces beside each other, in the order of partition, item bytes, location bytes, day
// and kind, status last. Each side is one snapshot. Rows are streamed: it takes the memory of one row a side. Progress
// may be nil; it is told the outputs of stage compare.
func Compare(ctx context.Context, a, b *postgres.Namespace, progress func(stage string, done, total int64)) (*Comparison, error) {
	if a.Config().Partitions != b.Config().Partitions {
		return nil, fmt.Errorf("%w: %s has %d, %s has %d", ErrPartitions, a.Config().Namespace, a.Config().Partitions,
			b.Config().Namespace, b.Config().Partitions)
	}
	c := &comparing{Comparison: &Comparison{Configuration: differences(a.Config(), b.Config())}, progress: progress}
	c.A.Namespace, c.B.Namespace = a.Config().Namespace, b.Config().Namespace
	c.A.Scale, c.B.Scale = a.Config().QuantityScale, b.Config().QuantityScale
	err := a.Look(ctx, func(x *reader.Snapshot) error {
		return b.Look(ctx, func(y *reader.Snapshot) error { return c.all(ctx, x, y) })
	})
	return c.Comparison, err
}

// differences names the members in which two configurations differ, but for the name.
func differences(a, b *manifest.Config) []string {
	var out []string
	for _, d := range manifest.Differences(a, b) {
		if !strings.HasPrefix(d, "namespace: ") {
			out = append(out, d)
		}
	}
	return out
}

// comparing is the state of one comparison.
type comparing struct {
	*Comparison
	progress func(stage string, done, total int64)
	rows     int64
}

func (c *comparing) all(ctx context.Context, x, y *reader.Snapshot) (err error) {
	if c.A.Cuts, err = cuts(ctx, x); err != nil {
		return err
	}
	if c.B.Cuts, err = cuts(ctx, y); err != nil {
		return err
	}
	for p := range c.A.Cuts {
		if err := c.partition(ctx, x, y, ledger.Partition(p)); err != nil {
			return err
		}
	}
	return nil
}

func cuts(ctx context.Context, s *reader.Snapshot) ([]ledger.Frontier, error) {
	states, err := s.Partitions(ctx)
	out := make([]ledger.Frontier, len(states))
	for i := range states {
		out[i] = verify.CutOf(states[i])
	}
	return out, err
}

func (c *comparing) partition(ctx context.Context, x, y *reader.Snapshot, p ledger.Partition) error {
	var failedA, failedB error
	nextA, stopA := iter.Pull(viewRows(ctx, x, p, &failedA))
	defer stopA()
	nextB, stopB := iter.Pull(viewRows(ctx, y, p, &failedB))
	defer stopB()
	a, moreA := nextA()
	b, moreB := nextB()
	for moreA || moreB {
		order := 0
		switch {
		case !moreA:
			order = 1
		case !moreB:
			order = -1
		default:
			order = stored.CompareIDs(a.ID, b.ID)
		}
		var left, right *store.ViewRow
		if order <= 0 {
			left = &a
		}
		if order >= 0 {
			right = &b
		}
		c.output(p, left, right)
		if order <= 0 {
			a, moreA = nextA()
		}
		if order >= 0 {
			b, moreB = nextB()
		}
		if c.rows++; c.progress != nil && c.rows%progressEvery == 0 {
			c.progress(stageCompare, c.rows, 0)
		}
	}
	return errors.Join(failedA, failedB)
}

// viewRows yields a partition's rows; failed is set before it ends early.
func viewRows(ctx context.Context, s *reader.Snapshot, p ledger.Partition, failed *error) iter.Seq[store.ViewRow] {
	return func(yield func(store.ViewRow) bool) {
		err := s.ViewRows(ctx, p, func(r store.ViewRow) error {
			if !yield(r) {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			*failed = err
		}
	}
}

// output compares one output of both sides, either of which may have no row.
func (c *comparing) output(p ledger.Partition, a, b *store.ViewRow) {
	inA, inB := c.A.count(a), c.B.count(b)
	d := FirstDifference{Partition: p}
	switch {
	case !inA && !inB:
		return
	case inA && !inB:
		c.OnlyA++
		d.What, d.ID = OnlyA, a.ID
	case inB && !inA:
		c.OnlyB++
		d.What, d.ID = OnlyB, b.ID
	case samePayload(a, b):
		c.Equal++
		return
	default:
		c.Value++
		d.What, d.ID = Value, a.ID
	}
	if c.First == nil {
		d.A, d.B = kept(a), kept(b)
		c.First = &d
	}
}

// count counts a side's row, nil for none, and reports whether the output is present.
func (s *Compared) count(r *store.ViewRow) bool {
	switch {
	case r == nil:
		return false
	case r.Present:
		s.Present++
	default:
		s.Withdrawn++
	}
	return r.Present
}

func kept(r *store.ViewRow) *store.ViewRow {
	if r == nil {
		return nil
	}
	clone := store.CloneRow(*r)
	return &clone
}

func samePayload(a, b *store.ViewRow) bool {
	if a.Status != nil && b.Status != nil {
		return a.Status.Equal(*b.Status)
	}
	return (a.Status == nil) == (b.Status == nil) && a.Close == b.Close && a.Previous == b.Previous && a.Threshold == b.Threshold
}
