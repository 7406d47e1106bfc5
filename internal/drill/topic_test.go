package drill

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
)

// transactional returns a client whose records lie in a transaction that has begun.
func (s *space) transactional(id string) *kgo.Client {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(s.source+id), kgo.DefaultProduceTopic(s.source),
		kgo.TransactionTimeout(5*time.Minute)) // a busy machine takes its time to what ends it
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	if err := c.BeginTransaction(); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *space) within(c *kgo.Client, records ...*kgo.Record) {
	s.t.Helper()
	if err := c.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) finish(c *kgo.Client, end kgo.TransactionEndTry) {
	s.t.Helper()
	if err := c.EndTransaction(context.Background(), end); err != nil {
		s.t.Fatal(err)
	}
}

// SC23: committed and aborted transactions, one that stays open, and a trailing abort marker. Aborted data is never counted, an
// open transaction holds everything behind it back and is told, and verification reaches PASS past the markers.
// Shows F14, B5.
func TestSC23TransactionsInTheSource(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 2})
	p := s.start("run -manifest pipeline.json")
	a := s.transactional("a")
	s.within(a, movement("A-1", 0, 0, 10, 0), movement("A-2", 0, 0, 10, 1))
	s.finish(a, kgo.TryAbort) // 0, 1, marker 2
	kafkatest.AwaitMarkers(t, s.brokers, s.source)
	b := s.transactional("b")
	s.within(b, movement("B-1", 0, 0, 7, 0))
	s.finish(b, kgo.TryCommit) // 3, marker 4
	kafkatest.AwaitMarkers(t, s.brokers, s.source)
	s.drained()
	open := s.transactional("c")
	s.within(open, movement("C-1", 1, 0, 5, 0)) // 5
	s.send(movement("D-1", 0, 0, 3, 2))         // 6, not to be seen yet
	time.Sleep(time.Second)
	if got := s.number(decided); got != 5 {
		t.Errorf("frontier %d below an open transaction, want 5", got)
	}
	if out, _ := s.run(3, "verify -manifest pipeline.json -deep -timeout 8s"); !strings.Contains(out, "transaction") {
		t.Errorf("verify does not name the open transaction: %s", out)
	}
	s.finish(open, kgo.TryAbort) // marker 7 ends the topic
	kafkatest.AwaitMarkers(t, s.brokers, s.source)
	found := s.check(nil)
	if got := s.number(decided); got != 8 || found.records != 2 {
		t.Errorf("frontier %d and %d records, want 8 and 2", got, found.records)
	}
	p.stop()
}

// C38: two open transactions, the later one ends first: no output is skipped, whichever way the first one ends; and of two
// partitions the one whose commit waits is passed by the other, and then published in full.
// Shows F14, B6.
func TestC38TheLaterTransactionEndsFirst(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]kgo.TransactionEndTry{"first committed": kgo.TryCommit, "first aborted": kgo.TryAbort} {
		t.Run(name, func(t *testing.T) {
			s := newSpace(t, shape{2, 2})
			p := s.start("run -manifest pipeline.json")
			first, second := s.transactional("first"), s.transactional("second")
			s.within(first, movement("F-1", 0, 0, 4, 0), movement("F-1", 0, 1, 4, 0))
			s.within(second, movement("S-1", 0, 0, 6, 1), movement("S-1", 0, 1, 6, 1))
			s.within(first, movement("F-2", 0, 0, 2, 2))
			s.finish(second, kgo.TryCommit)
			time.Sleep(300 * time.Millisecond)
			if got := s.number(decided); got != 0 {
				t.Errorf("%d records were decided past an open transaction", got)
			}
			s.finish(first, end)
			kafkatest.AwaitMarkers(t, s.brokers, s.source)
			found := s.check(nil)
			if want := map[kgo.TransactionEndTry]int{kgo.TryCommit: 5, kgo.TryAbort: 2}[end]; found.records != want {
				t.Errorf("%d records, want %d", found.records, want)
			}
			l := s.holdBy("SELECT 1 FROM amends.partitions WHERE partition = 0 FOR UPDATE")
			s.send(movement("L-1", 1, 0, 1, 3))
			l.waiting()
			at := s.number(shown)
			s.send(movement("L-1", 1, 1, 1, 3))
			s.moves("the later commit of the other partition", shown, at)
			l.release()
			s.check(nil)
			p.stop()
		})
	}
}

// alteration is what an operator must not do to a topic, and the words that tell of it.
type alteration struct {
	name, cause string
	apply       func(ctx context.Context, s *space, topic string) error
}

func alterations() []alteration {
	return []alteration{
		{"recreated", "incarnation", func(ctx context.Context, s *space, topic string) error {
			if _, err := s.admin.DeleteTopic(ctx, topic); err != nil {
				return err
			}
			forever, keep := "-1", "delete"
			for {
				_, err := s.admin.CreateTopic(ctx, int32(s.partitions), 1, map[string]*string{"retention.ms": &forever, "retention.bytes": &forever, "cleanup.policy": &keep}, topic)
				if err == nil || ctx.Err() != nil {
					return err
				}
				time.Sleep(20 * time.Millisecond)
			}
		}},
		{"partitions added", "partitions", func(ctx context.Context, s *space, topic string) error {
			added, err := s.admin.CreatePartitions(ctx, 1, topic)
			if err == nil {
				err = added.Error()
			}
			return err
		}},
		{"records deleted", "log start", func(ctx context.Context, s *space, topic string) error {
			var to kadm.Offsets
			to.AddOffset(topic, 0, 2, -1)
			deleted, err := s.admin.DeleteRecords(ctx, to)
			if err == nil {
				err = deleted.Error()
			}
			return err
		}},
		{"retention made finite", "retention.ms", func(ctx context.Context, s *space, topic string) error {
			week := "604800000"
			altered, err := s.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &week}}, topic)
			if err == nil {
				_, err = altered.On(topic, nil)
			}
			return err
		}},
	}
}

// SC24: a topic recreated under its name, partitions added, records deleted, retention made finite: each is noticed while
// running, with traffic and idle, with its own message and code 11; then it is refused at start, and verification says
// UNAVAILABLE. A recreated source has no effect at all.
// Shows F13, B7, I23.
func TestSC24AlteredTopics(t *testing.T) {
	t.Parallel()
	var noticed []time.Duration
	whole := os.Getenv(wholeEnv) != ""
	for i, a := range alterations() {
		for _, which := range []string{"source", "output"} {
			for _, traffic := range []bool{true, false} {
				if !whole && traffic == ((i%2 == 0) == (which == "output")) {
					continue
				}
				name := fmt.Sprintf("SC24 %s %s %s", which, a.name, map[bool]string{true: "with traffic", false: "idle"}[traffic])
				t.Run(name, func(t *testing.T) { noticed = append(noticed, altered(t, a, which, traffic)...) })
			}
		}
	}
	figure(t, "from the alteration to the end of the role with code 11: %s", within(noticed, 5*time.Second))
}

func altered(t *testing.T, a alteration, which string, traffic bool) (noticed []time.Duration) {
	s := newSpace(t, shape{2, 2})
	f := s.fleet()
	s.send(movement("A-1", 0, 0, 4, 0), movement("A-2", 0, 0, 4, 1), movement("A-1", 0, 1, 4, 0))
	s.drained()
	topic, watching := s.source, []string{"source"}
	if which == "output" {
		topic, watching = s.output, []string{"relay", "view"}
	}
	known := map[string]bool{}
	if traffic {
		st := s.stream(7, 100)
		s.moves("the first records", shown, 10)
		defer st.stop()
	}
	if which == "source" && a.name == "recreated" {
		for p := range s.partitions {
			records, _ := s.consume(s.source, p)
			for _, r := range records {
				known[fmt.Sprintf("%d %d %s", p, r.Offset, digest(r))] = true
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	if err := a.apply(ctx, s, topic); err != nil {
		t.Fatal(err)
	}
	for _, role := range watching {
		f.running[role].ends(11, "")
		noticed = append(noticed, time.Since(began))
		if last := f.running[role].Stderr.Last(1); !strings.Contains(last, a.cause) && !strings.Contains(last, "is not in the log") {
			t.Errorf("%s does not name the %s: %s", role, a.cause, last)
		}
	}
	for _, role := range roles() { // every role checks both topics when it starts
		p := s.role(role)
		p.ends(11, "")
		last := p.Stderr.Last(1)
		if !strings.Contains(last, a.cause) || a.name == "recreated" && strings.Count(last, "kafka:") != 2 { // both ids
			t.Errorf("%s started with %s", role, last)
		}
	}
	if out, _ := s.run(6, "verify -manifest pipeline.json"); !strings.HasPrefix(out, "UNAVAILABLE") {
		t.Errorf("verify said %s", out)
	}
	if len(known) > 0 {
		s.onlyKnown(known, traffic)
	}
	return noticed
}

// onlyKnown checks that no decision is of a record of the new incarnation (I23). With traffic the old one may have got more
// records after it was read; a decision of those lies beyond what is known.
func (s *space) onlyKnown(known map[string]bool, traffic bool) {
	s.t.Helper()
	ends := map[string]int64{}
	for k := range known {
		var p, o int64
		fmt.Sscanf(k, "%d %d", &p, &o)
		ends[fmt.Sprint(p)] = max(ends[fmt.Sprint(p)], o)
	}
	for _, row := range s.query("SELECT partition, source_offset, encode(digest, 'hex') FROM amends.journal WHERE namespace_id = $NS") {
		var o int64
		fmt.Sscan(row[1], &o)
		if traffic && o > ends[row[0]] {
			continue
		}
		if !known[strings.Join(row, " ")] {
			s.t.Errorf("a decision of what the first incarnation did not hold: %v", row)
		}
	}
}
