package broker

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
)

// packed returns a batch of one record without a key whose records take so many bytes when decompressed: zeros, but for
// the first few.
func packed(t *testing.T, size int) []byte {
	t.Helper()
	varint := func(dst []byte, n int) []byte { return binary.AppendVarint(dst, int64(n)) }
	// Length of the record, attributes, two deltas, no key, length of the value, the value, no headers.
	head := func(value int) []byte {
		body := varint(varint([]byte{0, 0, 0}, -1), value)
		return append(varint(nil, len(body)+value+1), body...)
	}
	value := size - 1
	for len(head(value))+value+1 > size {
		value--
	}
	var records bytes.Buffer
	z, err := gzip.NewWriterLevel(&records, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	left, zeros := value+1, make([]byte, 1<<20)
	_, err = z.Write(head(value))
	for ; left > 0 && err == nil; left -= len(zeros) {
		_, err = z.Write(zeros[:min(left, len(zeros))])
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	b := kmsg.RecordBatch{Magic: 2, Attributes: 1, PartitionLeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1, Records: records.Bytes()}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - 12)
	b.CRC = int32(crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

// C35: a batch of a few hundred kilobytes may unfold to 256 MiB and no more. One byte past that it is refused by name before
// anything else of it is looked at, and what lies before it was read.
func TestC35BatchThatUnfoldsPastTheLimit(t *testing.T) {
	sizes := []int{maxBatchMemory, maxBatchMemory + 1}
	if testing.Short() {
		sizes = sizes[1:]
	}
	for _, size := range sizes {
		_, o := cluster(t)
		o.RequestTimeout = 15 * time.Second
		topic := create(t, openAdmin(t, o), "src", 1)
		publish(t, o, topic, 0, "first")
		sendBatch(t, o, topic, packed(t, size))
		r, err := NewReader(o, topic.Name, topic.Incarnation)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		if err := r.Seek(bounded(t), 0, 0); err != nil {
			t.Fatal(err)
		}
		var got []ledger.SourceRecord
		for err == nil && len(got) < 2 {
			var fetched []Fetched
			fetched, err = r.Poll(bounded(t))
			for _, f := range fetched {
				got = append(got, f.Records...)
			}
		}
		switch {
		case size <= maxBatchMemory && (err != nil || len(got) != 2 || len(got[1].Value) < size-32):
			t.Errorf("%d bytes: %d records, error %v", size, len(got), err)
		case size > maxBatchMemory && (!errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "offsets 1..1") || len(got) > 1):
			t.Errorf("%d bytes: %d records, error %v, want %v", size, len(got), err, ErrUnreadable)
		}
	}
}

// sendBatch produces one batch as it is.
func sendBatch(t *testing.T, o Options, topic Topic, batch []byte) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 10_000
	rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	rt.Topic, rp.Records = topic.Name, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := c.Broker(0).Request(bounded(t), pinned{req})
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// pinned is a produce request of the last version that names its topic.
type pinned struct{ *kmsg.ProduceRequest }

func (pinned) MaxVersion() int16 { return 12 }
