package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/store"
	"amends/internal/wire"
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
	for p := range states {
		p := ledger.Partition(p)
		if r.skipped[p] != "" {
			continue
		}
		if ahead(states[p]) {
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
	digester
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
	c := &journalCheck{run: r, p: p, next: next, oracle: oracle.New(r.prefix.config), digester: r.digester(p)}
	err := s.Journal(ctx, p, func(d *ledger.Decision) error {
		c.decision(d)
		return readErr
	})
	if damaged(err) {
		r.report.add(Difference{What: Journal, Partition: p, Offset: -1, Detail: err.Error()})
		err = nil
	}
	if err != nil {
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

// damaged reports whether stored bytes are not what any row holds. The schema is this binary's, or nothing would have been
// read: a row of a format that it does not know is damaged too.
func damaged(err error) bool {
	return errors.Is(err, store.ErrIntegrity) || errors.Is(err, store.ErrSchema)
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
	if detail := journalFault(d, &record, verdict); detail != "" {
		c.differ(d.Offset, detail)
	}
	if len(d.Changes) > 0 && d.Sequence != ledger.Sequence(len(c.digests)) {
		c.differ(d.Offset, fmt.Sprintf("its first sequence is %d, the outputs before it end at %d", d.Sequence, len(c.digests)))
	}
	for i := range d.Changes {
		digest, ok := c.encode(d, i)
		if !ok {
			c.differ(d.Offset, "it holds an alert of a key without threshold")
		}
		c.digests = append(c.digests, digest)
	}
}

// digester gives the digests of the envelopes of one partition's decisions.
type digester struct {
	config  *manifest.Config
	encoder *wire.Encoder
	buf     []byte
}

func (r *run) digester(p ledger.Partition) digester {
	return digester{config: r.Manifest.Config, encoder: wire.NewEncoder(r.Manifest.Config, p)}
}

// encode returns the digest of the i-th envelope of d, and false for an alert that has no envelope.
func (g *digester) encode(d *ledger.Decision, i int) (int64, bool) {
	if c := &d.Changes[i]; c.Kind == ledger.Alert && c.Present {
		if t, _ := g.config.Terms(d.Assertion.Key); t.Threshold == nil {
			return 0, false
		}
	}
	g.buf = g.encoder.Append(g.buf[:0], d, i)
	return wire.EnvelopeDigest(g.buf), true
}

// journalFault says how a journal row is not what its source record says, "" when it is.
func journalFault(d *ledger.Decision, r *ledger.SourceRecord, v oracle.Verdict) string {
	switch {
	case d.Digest != wire.Digest(r.Key, r.Value):
		return "its digest is not that of the source record"
	case d.Rejection != v.Rejection:
		return fmt.Sprintf("its rejection is %q, the source record gives %q", d.Rejection, v.Rejection)
	case d.Rejection != 0:
		return evidenceFault(d.Evidence, d.Rejection, r)
	case d.Class != v.Class:
		return fmt.Sprintf("its class is %v, the source record gives %v", d.Class, v.Class)
	case d.Assertion != v.Assertion:
		return "its columns are not what the source record says"
	}
	return ""
}

// evidenceFault says how a quarantine row is not what its source record gives (S3), "" when it is.
func evidenceFault(e *ledger.Evidence, code ledger.Rejection, r *ledger.SourceRecord) string {
	key, value := r.Key, r.Value
	if code == ledger.TooLarge {
		key, value = key[:min(len(key), ledger.MaxKeyBytes)], value[:min(len(value), ledger.MaxValueBytes)]
	}
	switch {
	case e == nil:
		return "its quarantine row is missing"
	case !same(e.Key, key) || !same(e.Value, value):
		return "its quarantined bytes are not those of the source record"
	case e.KeyLength != int64(len(r.Key)) || e.ValueLength != int64(len(r.Value)):
		return "its quarantined lengths are not those of the source record"
	case e.KeySHA != sha256.Sum256(r.Key) || e.ValueSHA != sha256.Sum256(r.Value):
		return "its quarantined sums are not those of the source record"
	}
	return ""
}

// same compares bytes, absent and empty being different.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
