package bubble

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
	"amends/internal/sim/serial"
	"amends/internal/sim/topic"
)

// writer is the source's author: a network that nothing happens to, and one thing after the other.
type writer struct {
	w       *world
	plain   *kgo.Client
	tx      *kgo.Client
	written []int // of each partition's plan
	ends    []int64
	open    bool // a transaction, on one partition
}

func newWriter(w *world) *writer {
	n := len(w.history.Parts)
	return &writer{w: w, written: make([]int, n), ends: make([]int64, n)}
}

func (a *writer) client(options ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(a.w.addrs...), kgo.Dialer(a.w.stack.DialContext), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DefaultProduceTopicAlways(), kgo.DefaultProduceTopic(sourceName), kgo.ProducerLinger(0), kgo.MetadataMinAge(50*time.Millisecond))...)
	if err != nil {
		panic(err) // options of a test
	}
	return c
}

// write does the next n things of a partition's plan, and ends the transaction that it begins.
func (a *writer) write(p ledger.Partition, n int) {
	writes := a.w.history.Parts[p].Writes
	for ; a.written[p] < len(writes) && (n > 0 || a.open); n-- {
		if err := a.next(p, &writes[a.written[p]]); err != nil {
			a.w.violate("harness", "write %d of partition %d: %v", a.written[p], p, err)
			return
		}
		a.written[p]++
	}
}

func (a *writer) next(p ledger.Partition, w *serial.Write) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	record := &kgo.Record{Key: w.Key, Value: w.Value, Partition: int32(p), Timestamp: time.UnixMilli(w.Timestamp)}
	switch w.Kind {
	case serial.Plain:
		if a.plain == nil {
			a.plain = a.client()
		}
		return a.produce(ctx, a.plain, record)
	case serial.Inside:
		if a.tx == nil {
			a.tx = a.client(kgo.TransactionalID("author"), kgo.TransactionTimeout(5*time.Minute))
		}
		if !a.open {
			if err := a.tx.BeginTransaction(); err != nil {
				return err
			}
			a.open = true
		}
		return a.produce(ctx, a.tx, record)
	}
	a.open = false
	a.ends[p]++
	return a.tx.EndTransaction(ctx, kgo.TransactionEndTry(w.Kind == serial.Commit))
}

// produce writes one record and compares where it lies with where the plan has it.
func (a *writer) produce(ctx context.Context, c *kgo.Client, r *kgo.Record) error {
	got, err := c.ProduceSync(ctx, r).First()
	if err != nil {
		return err
	}
	if want := a.ends[r.Partition]; got.Offset != want {
		return fmt.Errorf("a record lies at offset %d, planned was %d", got.Offset, want)
	}
	a.ends[r.Partition]++
	return nil
}

// remove makes a member of a group leave it.
func (a *writer) remove(group, member string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := a.client()
	defer c.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID = member
	req.Members = append(req.Members, one)
	_, _ = req.RequestWith(ctx, c) // it is tried again as long as the member is there
}

// close ends the clients.
func (a *writer) close() {
	for _, c := range []*kgo.Client{a.plain, a.tx} {
		if c != nil {
			c.Close()
		}
	}
	a.plain, a.tx = nil, nil
}

// dump reads a topic as it lies, aborted records and all, from start to end.
func (w *world) dump(name string) ([]*topic.Log, error) {
	ends := w.cluster.PartitionInfos(name)
	logs := make([]*topic.Log, len(ends))
	from, left := map[int32]kgo.Offset{}, int64(0)
	for i, info := range ends {
		logs[i] = topic.New(name, serial.OutputID, 1).Log(0)
		if left += info.HighWatermark; info.HighWatermark > 0 {
			from[int32(i)] = kgo.NewOffset().At(0)
		}
	}
	if left == 0 {
		return logs, nil
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(w.addrs...), kgo.Dialer(w.stack.DialContext), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: from}),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for left > 0 {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			if r.Attrs.IsControl() {
				logs[r.Partition].Mark(len(r.Key) >= 4 && r.Key[3] == 1)
				return
			}
			logs[r.Partition].Append(r.Key, r.Value, r.Timestamp.UnixMilli())
		})
	}
	return logs, nil
}
