package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// repairTimeout bounds the scan of the whole log and the markers: a million records take about 0.3 s.
const repairTimeout = 10 * time.Minute

// openTransaction is a producer's transaction on a partition that no marker has ended.
type openTransaction struct {
	topic     string
	producer  int64
	partition int32
}

// abortOpenTransactions writes the abort markers that a killed broker could not: without one, a transaction that was
// open hides every later record of its transactional id. It opens the logs on a port nobody knows.
func abortOpenTransactions(ctx context.Context, logs string) error {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	cluster, err := openLogs(logs, 0)
	if err != nil {
		return fmt.Errorf("open broker for repair: %w", err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return fmt.Errorf("connect for repair: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(ctx)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list ends of logs: %w", err)
	}
	open, err := scanTransactions(ctx, cluster.ListenAddrs(), ends)
	if err != nil {
		return err
	}
	return writeAborts(ctx, admin, open)
}

// scanTransactions reads every partition up to its end, control records included and uncommitted records too, and
// returns the epoch of each transaction left open.
func scanTransactions(ctx context.Context, brokers []string, ends kadm.ListedOffsets) (map[openTransaction]int16, error) {
	from := make(map[string]map[int32]kgo.Offset)
	remaining := make(map[string]map[int32]int64)
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset == 0 {
			return
		}
		if from[o.Topic] == nil {
			from[o.Topic], remaining[o.Topic] = make(map[int32]kgo.Offset), make(map[int32]int64)
		}
		from[o.Topic][o.Partition] = kgo.NewOffset().AtStart()
		remaining[o.Topic][o.Partition] = o.Offset
		left++
	})
	if left == 0 {
		return nil, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(from),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, fmt.Errorf("connect for repair: %w", err)
	}
	defer client.Close()
	open := make(map[openTransaction]int16)
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read logs for repair: %w", err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			follow(open, r)
			end, waiting := remaining[r.Topic][r.Partition]
			if waiting && r.Offset+1 >= end {
				delete(remaining[r.Topic], r.Partition)
				left--
			}
		})
	}
	return open, nil
}

// follow opens and ends transactions as the records of a partition do.
func follow(open map[openTransaction]int16, r *kgo.Record) {
	t := openTransaction{topic: r.Topic, partition: r.Partition, producer: r.ProducerID}
	switch {
	case r.Attrs.IsControl():
		delete(open, t)
	case r.Attrs.IsTransactional():
		open[t] = r.ProducerEpoch
	}
}

func writeAborts(ctx context.Context, admin *kadm.Client, open map[openTransaction]int16) error {
	for t, epoch := range open {
		topics := make(kadm.TopicsSet)
		topics.Add(t.topic, t.partition)
		answers, err := admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: t.producer, ProducerEpoch: epoch, Topics: topics})
		if err != nil {
			return fmt.Errorf("abort transaction of %s/%d: %w", t.topic, t.partition, err)
		}
		var failures []error
		answers.EachPartition(func(p kadm.TxnMarkersPartitionResponse) { failures = append(failures, p.Err) })
		if err := errors.Join(failures...); err != nil {
			return fmt.Errorf("abort transaction of %s/%d: %w", t.topic, t.partition, err)
		}
	}
	return nil
}
