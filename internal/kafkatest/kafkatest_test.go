package kafkatest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"amends/internal/kafkatest"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func client(t *testing.T, brokers []string, options ...kgo.Opt) (*kgo.Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(brokers...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); cancel() })
	return c, ctx
}

func exists(t *testing.T, brokers []string, topic string) bool {
	t.Helper()
	c, ctx := client(t, brokers)
	topics, err := kadm.NewClient(c).ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return topics.Has(topic)
}

func TestTopicsAreTheTestsOwnAndRemoved(t *testing.T) {
	for name, brokers := range map[string][]string{"embedded": kafkatest.Embedded(t), "apache": kafkatest.Brokers(t)} {
		t.Run(name, func(t *testing.T) {
			var topic string
			t.Run("inner", func(t *testing.T) {
				topic = kafkatest.NewTopic(t, brokers, 2)
				if !strings.HasPrefix(topic, "amends-test-") || !exists(t, brokers, topic) {
					t.Errorf("topic %q is not there", topic)
				}
				kafkatest.Topic(t, brokers) // a name that nobody makes is no trouble at the end
			})
			for deadline := time.Now().Add(time.Minute); exists(t, brokers, topic); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("topic %s outlived its test", topic)
				}
			}
		})
	}
}

// awaitCommitted waits until the marker is in the log: a commit is acknowledged before.
func awaitCommitted(t *testing.T, brokers []string, topic string, offset int64) {
	t.Helper()
	c, ctx := client(t, brokers)
	for {
		ends, err := kadm.NewClient(c).ListCommittedOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		if end, _ := ends.Lookup(topic, 0); end.Offset > offset {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestKilledServerKeepsItsRecords also shows that a drill's broker comes back on its port.
func TestKilledServerKeepsItsRecords(t *testing.T) {
	s := kafkatest.Server(t)
	brokers := s.Brokers()
	topic := kafkatest.NewTopic(t, brokers, 1)
	c, ctx := client(t, brokers, kgo.DefaultProduceTopic(topic), kgo.TransactionalID("amends-test"))
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ProduceSync(ctx, kgo.StringRecord("kept")).First(); err != nil {
		t.Fatal(err)
	}
	if err := c.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	awaitCommitted(t, brokers, topic, 1)
	s.Kill()
	s.Start()
	if s.Brokers()[0] != brokers[0] {
		t.Errorf("address %v, before %v", s.Brokers(), brokers)
	}
	reader, ctx := client(t, brokers, kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	records := reader.PollFetches(ctx).Records()
	if len(records) != 1 || string(records[0].Value) != "kept" {
		t.Errorf("records %v", records)
	}
}
