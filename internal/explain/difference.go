package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// Said is how far a partition had told at a point: the outputs of decisions below Frontier with sequences below Next. An
// offset counts what was decided below it, a time what was published by then (S9: acknowledged with a receipt).
type Said struct {
	Frontier ledger.Frontier
	Next     ledger.Sequence
}

// covers reports whether an output was told.
func (s Said) covers(at ledger.Offset, sequence ledger.Sequence) bool {
	return ledger.Frontier(at) < s.Frontier && sequence < s.Next
}

// Span is what is compared in one partition.
type Span struct {
	Before    Said
	After     Said
	Partition ledger.Partition
}

// Value is what was told of an output. Version is 0 where nothing was yet.
type Value struct {
	Change    ledger.Change
	Threshold int64
	Sequence  ledger.Sequence
	Cause     Cause // of its transaction nothing before is known
}

// Difference is one output that was told otherwise after than before.
type Difference struct {
	Output ledger.OutputID
	Before Value
	After  Value
}

// Spans resolves two points, the earlier of which becomes Before. key is nil for all keys: then a bare offset names no
// partition, and one with its partition is about that partition alone.
func Spans(ctx context.Context, from *reader.Snapshot, points [2]Point, key *reader.StoredKey) ([]Span, error) {
	cuts, err := from.Frontiers(ctx)
	if err != nil {
		return nil, err
	}
	only, err := partitionOf(points, key)
	if err != nil {
		return nil, err
	}
	var spans []Span
	for _, c := range cuts {
		if only != nil && c.Partition != *only {
			continue
		}
		s := Span{Partition: c.Partition}
		if s.Before, err = said(ctx, from, c, points[0]); err != nil {
			return nil, err
		}
		if s.After, err = said(ctx, from, c, points[1]); err != nil {
			return nil, err
		}
		if cmp.Or(cmp.Compare(s.Before.Frontier, s.After.Frontier), cmp.Compare(s.Before.Next, s.After.Next)) > 0 {
			s.Before, s.After = s.After, s.Before
		}
		spans = append(spans, s)
	}
	if len(spans) == 0 {
		return nil, &PointError{fmt.Sprintf("there is no partition %d", *only)}
	}
	return spans, nil
}

// partitionOf returns the one partition that points are about, nil for all.
func partitionOf(points [2]Point, key *reader.StoredKey) (*ledger.Partition, error) {
	var only *ledger.Partition
	if key != nil {
		only = &key.Partition
	}
	for _, p := range points {
		switch {
		case !p.Time.IsZero():
		case p.Partition == nil && key == nil:
			return nil, &PointError{fmt.Sprintf("offset %d of which partition? write PARTITION/OFFSET, or name a key", p.Offset)}
		case p.Partition == nil:
		case key != nil && key.Partition != *p.Partition:
			return nil, elsewhere(key.Partition, *p.Partition)
		case only != nil && *only != *p.Partition:
			return nil, &PointError{"points of two partitions cannot be compared: name offsets of one partition, or times"}
		default:
			only = p.Partition
		}
	}
	return only, nil
}

// said resolves a point in a partition of that frontier.
func said(ctx context.Context, from *reader.Snapshot, c store.Cut, at Point) (Said, error) {
	if at.Time.IsZero() {
		return Said{Frontier: min(at.Offset, c.Frontier), Next: math.MaxInt64}, nil
	}
	next, source, err := from.PublishedBy(ctx, c.Partition, at.Time)
	if err != nil || next == 0 {
		return Said{}, err
	}
	return Said{Frontier: ledger.Frontier(source) + 1, Next: next}, nil
}

// Compare calls fn with every output that was told otherwise at the two ends of a span: by item bytes, location bytes and
// day, the balance before the alert, the status last. key is nil for all keys.
func Compare(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, s Span, key *reader.StoredKey, fn func(*Difference) error) error {
	c := comparison{cfg: cfg, span: s, fn: fn}
	var err error
	if key != nil {
		err = from.Entries(ctx, *key, 0, s.After.Frontier, false, c.add)
	} else {
		first := max(0, s.Before.Frontier-1) // the decision that a time falls into lies on both sides
		err = from.Changed(ctx, s.Partition, first, s.After.Frontier, c.add)
	}
	if err != nil {
		return err
	}
	return c.flush()
}

// comparison holds the outputs of one key.
type comparison struct {
	cfg     *manifest.Config
	fn      func(*Difference) error
	outputs map[ledger.OutputID]*Difference
	span    Span
	key     ledger.StockKey
}

func (c *comparison) add(e *reader.Entry) error {
	d := &e.Decision
	if d.Assertion.Key != c.key {
		if err := c.flush(); err != nil {
			return err
		}
		c.key, c.outputs = d.Assertion.Key, map[ledger.OutputID]*Difference{}
	}
	cause := causeOf(e, c.span.Partition)
	for i := range d.Changes {
		v := version(c.cfg, e, &cause, i)
		if !c.span.After.covers(d.Offset, v.Sequence) {
			break
		}
		told := c.outputs[v.Output]
		if told == nil {
			told = &Difference{Output: v.Output}
			c.outputs[v.Output] = told
		}
		told.After = Value{Change: v.Change, Threshold: v.Threshold, Sequence: v.Sequence, Cause: v.Cause}
		if c.span.Before.covers(d.Offset, v.Sequence) {
			told.Before = told.After
		}
	}
	return nil
}

// flush hands on what changed of the key, in order.
func (c *comparison) flush() error {
	var changed []*Difference
	for _, d := range c.outputs {
		if d.Before.Change.Version != d.After.Change.Version {
			changed = append(changed, d)
		}
	}
	slices.SortFunc(changed, func(x, y *Difference) int {
		last := func(d *Difference) int { return int(d.Output.Kind) / int(ledger.TrustStatus) }
		return cmp.Or(cmp.Compare(last(x), last(y)), cmp.Compare(x.Output.Day, y.Output.Day), cmp.Compare(x.Output.Kind, y.Output.Kind))
	})
	for _, d := range changed {
		if err := c.fn(d); err != nil {
			return err
		}
	}
	c.outputs = nil
	return nil
}
