package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

// Reader reads partitions of one topic from positions that its owner keeps: no group, no commits, no reset.
// It belongs to one goroutine, as what was fetched before a Seek must not be returned after it; Close may come from any.
type Reader struct {
	client      *kgo.Client
	admin       *kadm.Client
	at          positions
	topic       string
	incarnation string
	opts        Options
	lent        kgo.Fetches // returned by the last Poll, with Options.Reuse
}

// NewReader prepares a reader of one incarnation of a topic; it connects at the first Seek.
func NewReader(o Options, topic, incarnation string) (*Reader, error) {
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	options := append(base, o.consuming()...)
	if o.Reuse {
		options = append(options, kgo.WithPools(&fetchPool{}))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("open reader of %s: %w", topic, err)
	}
	return &Reader{client: client, admin: kadm.NewClient(client), topic: topic, incarnation: incarnation, opts: o, at: positions{}}, nil
}

// Seek makes Poll return partition p from offset at on. It checks the topic's identity and that the log holds the
// position: *IdentityError, *RangeError, ErrNoTopic, ErrUnavailable. What was fetched before is dropped.
func (r *Reader) Seek(ctx context.Context, p ledger.Partition, at ledger.Frontier) error {
	op, cancel := context.WithTimeout(ctx, r.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, r.client, r.topic)
	if err != nil {
		return fmt.Errorf("seek topic %s partition %d: %w", r.topic, p, r.opts.classify(ctx, err))
	}
	if found := incarnation(d.id); found != r.incarnation {
		return &IdentityError{Topic: r.topic, What: "incarnation", Want: r.incarnation, Found: found}
	}
	n := d.partitions
	if int32(p) >= n {
		return &IdentityError{Topic: r.topic, What: "partitions", Want: fmt.Sprintf("more than %d", p), Found: fmt.Sprint(n)}
	}
	start, err := offsets(op, r.admin.ListStartOffsets, r.topic, n)
	if err != nil {
		return fmt.Errorf("seek topic %s partition %d: %w", r.topic, p, r.opts.classify(ctx, err))
	}
	end, err := offsets(op, r.admin.ListEndOffsets, r.topic, n)
	if err != nil {
		return fmt.Errorf("seek topic %s partition %d: %w", r.topic, p, r.opts.classify(ctx, err))
	}
	if int64(at) < int64(start[p]) || int64(at) > int64(end[p]) {
		return &RangeError{Topic: r.topic, Partition: p, Position: at, Start: start[p], End: end[p], Cause: "offset out of range"}
	}
	if _, ok := r.at[p]; ok {
		r.client.RemoveConsumePartitions(map[string][]int32{r.topic: {int32(p)}})
	}
	r.at[p] = at
	r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: {int32(p): kgo.NewOffset().At(int64(at)).WithEpoch(-1)}})
	return nil
}

// Drop stops reading partition p.
func (r *Reader) Drop(p ledger.Partition) {
	delete(r.at, p)
	r.client.RemoveConsumePartitions(map[string][]int32{r.topic: {int32(p)}})
}

// reclaim gives what the last Poll returned back to the client.
func (r *Reader) reclaim() {
	r.lent.EachRecord((*kgo.Record).Recycle)
	r.lent = nil
}

// Poll waits for records or markers of any partition and returns everything fetched, partitions in no order; it
// returns ctx's error when ctx ends first. While the broker is away it waits. Values before an error are usable.
func (r *Reader) Poll(ctx context.Context) ([]Fetched, error) { return r.PollMax(ctx, 0) }

// PollMax is Poll with at most records records and markers in all, 0 for no bound.
func (r *Reader) PollMax(ctx context.Context, records int) ([]Fetched, error) {
	for {
		r.reclaim()
		fetches := r.client.PollRecords(ctx, records)
		if r.opts.Reuse {
			r.lent = fetches
		}
		out, err := r.opts.collect(ctx, fetches, r.topic, r.incarnation, r.at)
		if len(out) > 0 || err != nil {
			return out, named(ctx, r.client, err)
		}
	}
}

// ReadTo reads partition p alone from position from up to end and calls fn for every visible record below end, in
// order. It returns the position reached: end or more, or less with an error; ctx bounds the wait for what is not
// there yet (an open transaction, a broker that is away). An error of fn ends it and is returned as it is.
func (r *Reader) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	if from >= end {
		return from, nil
	}
	if err := r.Seek(ctx, p, from); err != nil {
		return from, err
	}
	defer r.Drop(p)
	for from < end {
		fetched, err := r.Poll(ctx)
		if errors.Is(err, ErrUnavailable) {
			err = ctx.Err()
		}
		for _, f := range fetched {
			if f.Partition != p {
				continue
			}
			for _, rec := range f.Records {
				if ledger.Frontier(rec.Offset) >= end {
					break
				}
				if err := fn(rec); err != nil {
					return from, err
				}
				from = ledger.Frontier(rec.Offset) + 1
			}
			from = f.Next
		}
		if err != nil && from < end {
			return from, err
		}
	}
	return from, nil
}

// Close ends the reader; a Poll in progress returns ErrClosed.
func (r *Reader) Close() { r.client.Close() }
