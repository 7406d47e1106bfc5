package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"amends/internal/ledger"
	"amends/internal/oracle"
	"amends/internal/store"
	"amends/internal/verify/stored"
)

// deep compares every journal row with its source record and the journal's outputs with the output topic, and folds the
// topic against the view, partition by partition (S10). The source is read a second time into an oracle of its own.
func (r *run) deep(ctx context.Context, s store.Snapshot, states []store.PartitionState) error {
	source, err := r.Source()
	if err != nil {
		return fmt.Errorf("open source: %w", err)
	}
	defer source.Close()
	output, err := r.Output()
	if err != nil {
		return fmt.Errorf("open output: %w", err)
	}
	defer output.Close()
	source, output = r.watch(source), r.watch(output)
	for p := range states {
		p := ledger.Partition(p)
		if r.skipped[p] != "" {
			continue
		}
		if stored.Ahead(states[p]) {
			r.undecided(p, states[p])
		}
		digests, err := r.deepJournal(ctx, s, source, p, &states[p])
		if err != nil {
			return err
		}
		if err := r.deepTopic(ctx, s, output, p, states[p], digests); err != nil {
			return err
		}
	}
	return nil
}

// journalCheck walks the journal beside the source.
type journalCheck struct {
	*run
	stored.Digester
	oracle  *oracle.Oracle
	next    func() (ledger.SourceRecord, bool)
	digests []int64     // of the envelope of each sequence
	work    ledger.Work // recounted: records and rejected ones
	p       ledger.Partition
}

// deepJournal compares one partition's journal with its source and returns the digest of each output's envelope.
func (r *run) deepJournal(ctx context.Context, s store.Snapshot, source Reader, p ledger.Partition, state *store.PartitionState) ([]int64, error) {
	owned := state.Owned
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var readErr error
	next, stop := iter.Pull(records(ctx, source, p, owned.Frontier, &readErr))
	defer stop()
	c := &journalCheck{run: r, p: p, next: next, oracle: oracle.New(r.prefix.config), Digester: stored.NewDigester(r.Manifest.Config, p)}
	err := s.Journal(ctx, p, func(d *ledger.Decision) error {
		c.decision(d)
		return readErr
	})
	if stored.Damaged(err) {
		r.report.add(Difference{What: Journal, Partition: p, Offset: -1, Detail: err.Error()})
		err = nil
	}
	if err != nil && readErr == nil {
		return nil, fmt.Errorf("read journal of partition %d: %w", p, err)
	}
	if record, ok := next(); ok {
		c.differ(record.Offset, "the journal has no row of this source record")
	}
	if readErr != nil {
		return nil, fmt.Errorf("read source partition %d: %w", p, readErr)
	}
	if n := ledger.Sequence(len(c.digests)); n != owned.Sequence {
		c.differ(ledger.Offset(owned.Frontier), fmt.Sprintf("the journal holds %d outputs, the partition's next sequence is %d", n, owned.Sequence))
	}
	// Totals that began with the journal are exact until they saturate (I16); those of an upgraded namespace began later.
	if total := state.Measurements.Total.Work; total.Records == c.work.Records && state.Rejected != c.work.Rejected {
		r.report.add(Difference{What: Row, Partition: p, Offset: -1,
			Detail: fmt.Sprintf("the partition row counts %d rejected records, the journal holds %d", state.Rejected, c.work.Rejected)})
	}
	return c.digests, nil
}

// errEnough ends a read whose reader has stopped taking records.
var errEnough = errors.New("enough")

// records yields the visible records of a partition below end; failed is set before it ends early.
func records(ctx context.Context, reader Reader, p ledger.Partition, end ledger.Frontier, failed *error) iter.Seq[ledger.SourceRecord] {
	return func(yield func(ledger.SourceRecord) bool) {
		_, err := reader.ReadTo(ctx, p, 0, end, func(r ledger.SourceRecord) error {
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

func (c *journalCheck) differ(at ledger.Offset, detail string) {
	c.report.add(Difference{What: Journal, Partition: c.p, Offset: int64(at), Detail: detail})
}

// decision compares one journal row with the next source record and keeps its outputs' digests.
func (c *journalCheck) decision(d *ledger.Decision) {
	c.work.Records++
	if d.Rejection != 0 {
		c.work.Rejected++
	}
	record, ok := c.next()
	for ok && record.Offset < d.Offset {
		c.differ(record.Offset, "the journal has no row of this source record")
		c.oracle.Add(c.p, record.Offset, record.Key, record.Value)
		record, ok = c.next()
	}
	if !ok || record.Offset > d.Offset {
		c.differ(d.Offset, "the journal has a row, the source has no record here")
		return
	}
	verdict := c.oracle.Add(c.p, record.Offset, record.Key, record.Value)
	if detail := stored.JournalFault(d, &record, verdict); detail != "" {
		c.differ(d.Offset, detail)
	}
	if len(d.Changes) > 0 && d.Sequence != ledger.Sequence(len(c.digests)) {
		c.differ(d.Offset, fmt.Sprintf("its first sequence is %d, the outputs before it end at %d", d.Sequence, len(c.digests)))
	}
	for i := range d.Changes {
		digest, ok := c.Encode(d, i)
		if !ok {
			c.differ(d.Offset, "it holds an alert of a key without threshold")
		}
		c.digests = append(c.digests, digest)
	}
}
