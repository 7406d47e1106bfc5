package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

// Fetched is what one poll returned of one partition: the visible records in offset order, and everything below Next
// was seen (S13): From is where the previous return ended, Next lies past the last record or marker returned.
// HighWatermark and Stable are the broker's at the fetch, for show: nothing is inferred from them.
type Fetched struct {
	Records       []ledger.SourceRecord
	From          ledger.Frontier
	Next          ledger.Frontier
	HighWatermark ledger.Offset
	Stable        ledger.Offset
	Partition     ledger.Partition
}

// positions remembers how far each partition was returned.
type positions map[ledger.Partition]ledger.Frontier

// collect turns one poll into Fetched values, moving the positions; of the errors found it returns the gravest, with what
// came from other partitions.
func (o *Options) collect(ctx context.Context, fetches kgo.Fetches, topic, want string, at positions) (out []Fetched, err error) {
	fetches.EachTopic(func(t kgo.FetchTopic) {
		if t.TopicID != ([16]byte{}) && t.Topic == topic && incarnation(t.TopicID) != want {
			err = graver(err, &IdentityError{Topic: topic, What: "incarnation", Want: want, Found: incarnation(t.TopicID)})
			return
		}
		t.EachPartition(func(p kgo.FetchPartition) {
			if p.Err != nil {
				err = graver(err, o.fetchError(ctx, topic, want, &p, at))
				return
			}
			if _, mine := at[ledger.Partition(p.Partition)]; !mine || len(p.Records) == 0 {
				return
			}
			f, e := fetched(&p, topic, at)
			if e != nil {
				err = graver(err, e)
				return
			}
			out = append(out, f)
		})
	})
	return out, err
}

func fetched(p *kgo.FetchPartition, topic string, at positions) (Fetched, error) {
	partition := ledger.Partition(p.Partition)
	from := at[partition]
	first, last := p.Records[0].Offset, p.Records[len(p.Records)-1].Offset
	if first < int64(from) || last < first {
		return Fetched{}, &RangeError{Topic: topic, Partition: partition, Position: from, Start: ledger.Offset(p.LogStartOffset), End: ledger.Offset(p.HighWatermark),
			Cause: fmt.Sprintf("the client returned offsets %d..%d", first, last)}
	}
	f := Fetched{Partition: partition, From: from, Next: ledger.Frontier(last + 1), HighWatermark: ledger.Offset(p.HighWatermark), Stable: ledger.Offset(p.LastStableOffset)}
	f.Records = make([]ledger.SourceRecord, 0, len(p.Records))
	for _, r := range p.Records {
		if r.Attrs.IsControl() {
			continue
		}
		f.Records = append(f.Records, ledger.SourceRecord{Partition: partition, Offset: ledger.Offset(r.Offset), Key: r.Key, Value: r.Value, Timestamp: r.Timestamp.UnixMilli()})
	}
	at[partition] = f.Next
	return f, nil
}

// fetchError says what an error injected into a poll means.
func (o *Options) fetchError(ctx context.Context, topic, want string, p *kgo.FetchPartition, at positions) error {
	var session *kgo.ErrGroupSession
	var loss *kgo.ErrDataLoss
	var bomb *kgo.ErrDecompressTooLarge
	err := p.Err
	outside := func(cause string) error {
		partition := ledger.Partition(p.Partition)
		return &RangeError{Topic: topic, Partition: partition, Position: at[partition], Start: ledger.Offset(p.LogStartOffset), End: ledger.Offset(p.HighWatermark), Cause: cause}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kgo.ErrClientClosed):
		return ErrClosed
	case errors.Is(err, kerr.OffsetOutOfRange):
		return outside("offset out of range")
	case errors.As(err, &loss):
		return outside(loss.Error())
	case errors.As(err, &bomb):
		return fmt.Errorf("%w: topic %s partition %d offsets %d..%d, over %d bytes when decompressed", ErrUnreadable,
			topic, p.Partition, bomb.Offset, bomb.NextOffset-1, maxBatchMemory)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		return &IdentityError{Topic: topic, What: "incarnation", Want: want, Found: forgotten}
	case errors.As(err, &session) && (!refused(err) || o.Security.changing(err)):
		return fmt.Errorf("%w: %w", ErrSession, err)
	}
	return fmt.Errorf("fetch topic %s partition %d: %w", topic, p.Partition, o.classify(ctx, err))
}

// forgotten stands for the id of a topic when a fetch by the expected one is answered that there is none of it.
const forgotten = "another one: the broker no longer knows this id"

// lookTimeout bounds the look at which topic has a name now.
const lookTimeout = 2 * time.Second

// named puts the id that the topic's name has now into an error that says forgotten, so that it names both; one that cannot be
// asked in time stays as it is.
func named(ctx context.Context, client *kgo.Client, err error) error {
	var e *IdentityError
	if !errors.As(err, &e) || e.Found != forgotten {
		return err
	}
	op, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	switch d, failed := describe(op, client, e.Topic); {
	case errors.Is(failed, kerr.UnknownTopicOrPartition):
		e.Found = "none: there is no topic of this name"
	case failed == nil && incarnation(d.id) != e.Want:
		e.Found = incarnation(d.id)
	}
	return err
}

// graver returns the error that must not be passed over: what stops a topic, before what stops a partition, which the client
// says once, before what the next poll meets again. Of two that weigh the same it is the first.
func graver(err, next error) error {
	if err == nil || gravity(next) > gravity(err) {
		return next
	}
	return err
}

func gravity(err error) int {
	var identity *IdentityError
	var outside *RangeError
	switch {
	case errors.As(err, &identity), errors.As(err, &outside):
		return 2
	case errors.Is(err, ErrUnreadable):
		return 1
	}
	return 0
}

func first(err, next error) error {
	if err != nil {
		return err
	}
	return next
}
