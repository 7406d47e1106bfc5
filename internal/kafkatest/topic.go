package kafkatest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicPrefix marks what tests make: nothing else is ever removed.
const topicPrefix = "amends-test-"

// Topic returns a name that no topic has yet. A topic of that name, whoever makes it, is removed when the test ends.
func Topic(t testing.TB, brokers []string) string {
	t.Helper()
	name := topicPrefix + strings.ToLower(rand.Text()[:16])
	t.Cleanup(func() { remove(t, brokers, name) })
	return name
}

// NewTopic makes a topic with the retention that the contract requires and returns its name. It is removed when the
// test ends.
func NewTopic(t testing.TB, brokers []string, partitions int32) string {
	t.Helper()
	name := Topic(t, brokers)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin, done := connect(t, brokers)
	defer done()
	forever, keep := "-1", "delete"
	configs := map[string]*string{"retention.ms": &forever, "retention.bytes": &forever, "cleanup.policy": &keep}
	made, err := admin.CreateTopic(ctx, partitions, 1, configs, name)
	if err == nil {
		err = made.Err
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", name, err)
	}
	return name
}

// AwaitMarkers waits until a topic has no open transaction. Apache Kafka answers the end of one before its marker is written: what
// is sent next may lie before it, and the topic's end behind it.
func AwaitMarkers(t testing.TB, brokers []string, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin, done := connect(t, brokers)
	defer done()
	for open := 1; open > 0; time.Sleep(10 * time.Millisecond) {
		stable, err := admin.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = stable.Error()
		}
		if err != nil {
			t.Fatalf("read the last stable offsets of %s: %v", topic, err)
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			t.Fatalf("read the ends of %s: %v", topic, err)
		}
		open = 0
		ends.Each(func(end kadm.ListedOffset) {
			if at, ok := stable.Lookup(topic, end.Partition); !ok || at.Offset != end.Offset {
				open++
			}
		})
	}
}

func connect(t testing.TB, brokers []string) (admin *kadm.Client, done func()) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ClientID("amends-test"))
	if err != nil {
		t.Fatalf("connect to brokers: %v", err)
	}
	return kadm.NewClient(client), client.Close
}

// remove reports a failure without failing the test: in a drill the broker may be gone by design.
func remove(t testing.TB, brokers []string, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	admin, done := connect(t, brokers)
	defer done()
	removed, err := admin.DeleteTopic(ctx, name)
	if err == nil {
		err = removed.Err
	}
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Logf("remove topic %s: %v", name, err)
	}
}
