package broker_test

import (
	"context"
	"fmt"
	"testing"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
)

// TestReaderReusesMemory: with Reuse every poll returns the exact bytes, through batches of all sizes and a seek back, and
// memory returned before is only lent.
func TestReaderReusesMemory(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Embedded(t)
	name := kafkatest.NewTopic(t, brokers, 1)
	o := broker.Options{Brokers: brokers, FetchPartitionBytes: 1_000}
	admin, err := broker.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	topic, err := admin.Topic(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := broker.NewProducer(o, name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	value := func(i int) string { return fmt.Sprintf("%0*d", 1+i%97, i) }
	next := 0
	for batch := range 60 {
		var messages []broker.Message
		for range 1 + batch*batch%211 {
			messages = append(messages, broker.Message{Key: fmt.Append(nil, next), Value: []byte(value(next)), Headers: []broker.Header{{Key: "n", Value: []byte{1}}}})
			next++
		}
		if _, err := p.Produce(t.Context(), 0, messages); err != nil {
			t.Fatal(err)
		}
	}
	o.Reuse = true
	r, err := broker.NewReader(o, name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 3 {
		if err := r.Seek(t.Context(), 0, 0); err != nil {
			t.Fatal(err)
		}
		at := 0
		for at < next {
			at += check(t, r, at, value)
		}
		if at != next {
			t.Fatalf("%d records, want %d", at, next)
		}
	}
}

// check polls once and compares every record.
func check(t *testing.T, r *broker.Reader, at int, value func(int) string) (n int) {
	t.Helper()
	fetched, err := r.Poll(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fetched {
		for _, rec := range f.Records {
			if i := at + n; rec.Offset != ledger.Offset(i) || string(rec.Key) != fmt.Sprint(i) || string(rec.Value) != value(i) {
				t.Fatalf("record %d: offset %d key %q value %q", i, rec.Offset, rec.Key, rec.Value)
			}
			n++
		}
	}
	return n
}
