package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"amends/internal/kafkatest"
	"amends/internal/ledger"
)

// The servers of a test binary end with it, and so do the goroutines that watch over them.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("amends/internal/embedded/process.supervise"))
}

// cluster starts an in-process broker of one node.
func cluster(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, Options) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, Options{Brokers: c.ListenAddrs(), FetchWait: 50 * time.Millisecond}
}

// each runs a test on the in-process broker and on Apache Kafka, with a topic name of its own.
func each(t *testing.T, test func(t *testing.T, o Options, name string)) {
	t.Run("embedded", func(t *testing.T) {
		_, o := cluster(t)
		test(t, o, "src")
	})
	t.Run("apache", func(t *testing.T) {
		brokers := kafkatest.Brokers(t)
		test(t, Options{Brokers: brokers, FetchWait: 50 * time.Millisecond}, kafkatest.Topic(t, brokers))
	})
}

// operator is a client that does to topics what an operator would.
func operator(t *testing.T, o Options) *kadm.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return kadm.NewClient(c)
}

// patience is how long anything that should happen soon may take on a busy machine.
const patience = 2 * time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func openAdmin(t *testing.T, o Options) *Admin {
	t.Helper()
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func create(t *testing.T, a *Admin, name string, partitions int32) Topic {
	t.Helper()
	topic, err := a.CreateTopic(bounded(t), name, partitions, 1)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func publish(t *testing.T, o Options, topic Topic, p ledger.Partition, values ...string) []ledger.Offset {
	t.Helper()
	producer, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var messages []Message
	for _, v := range values {
		messages = append(messages, Message{Key: []byte("k"), Value: []byte(v)})
	}
	offsets, err := producer.Produce(bounded(t), p, messages)
	if err != nil {
		t.Fatal(err)
	}
	return offsets
}

// transaction writes values to partition 0 in a transaction, left open when end is nil. An end is answered before its marker is
// written (Apache Kafka): it is waited for, so that offsets after it are known.
func transaction(t *testing.T, o Options, topic Topic, id string, end *bool, values ...string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(o.Brokers...), kgo.TransactionalID(id), kgo.DefaultProduceTopic(topic.Name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx := bounded(t)
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := client.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if end != nil {
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(*end)); err != nil {
			t.Fatal(err)
		}
		closed(t, o, topic)
	}
	return client
}

// closed waits until partition 0 has no open transaction: everything up to its end is stable.
func closed(t *testing.T, o Options, topic Topic) {
	t.Helper()
	a, ctx := openAdmin(t, o), bounded(t)
	for {
		ends, err := a.Ends(ctx, topic.Name)
		if err != nil {
			t.Fatal(err)
		}
		stable, err := a.Stable(ctx, topic.Name)
		if err != nil {
			t.Fatal(err)
		}
		if stable[0] == ends[0] {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func reader(t *testing.T, o Options, topic Topic) *Reader {
	t.Helper()
	r, err := NewReader(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func values(records []ledger.SourceRecord) []string {
	var out []string
	for _, r := range records {
		out = append(out, fmt.Sprintf("%d=%s", r.Offset, r.Value))
	}
	return out
}

func TestCreateTopicKeepsEverythingForEver(t *testing.T) {
	each(t, checkCreateTopicKeepsEverythingForEver)
}

func checkCreateTopicKeepsEverythingForEver(t *testing.T, o Options, name string) {
	a := openAdmin(t, o)
	topic := create(t, a, name, 3)
	want := Topic{Name: name, Incarnation: topic.Incarnation, Cleanup: "delete", Start: []ledger.Offset{0, 0, 0}, End: []ledger.Offset{0, 0, 0}, RetentionMS: -1, RetentionBytes: -1, Partitions: 3}
	if d := cmp.Diff(want, topic); d != "" {
		t.Fatal(d)
	}
	if !strings.HasPrefix(topic.Incarnation, "kafka:") || len(topic.Incarnation) != len("kafka:")+32 {
		t.Fatalf("incarnation %q is not of S2", topic.Incarnation)
	}
	if err := CheckIdentity(topic, topic.Incarnation, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CreateTopic(bounded(t), name, 3, 1); !errors.Is(err, ErrTopicExists) {
		t.Fatalf("second creation: %v, want ErrTopicExists", err)
	}
	if _, err := a.Topic(bounded(t), "none"); !errors.Is(err, ErrNoTopic) {
		t.Fatalf("absent topic: %v, want ErrNoTopic", err)
	}
	if id, err := a.Incarnation(bounded(t), name); err != nil || id != topic.Incarnation {
		t.Fatalf("Incarnation = %s, %v", id, err)
	}
}

// A lost reply to the creation is not taken for a refusal, and the request is not sent twice.
func TestCreateTopicUnknownOutcome(t *testing.T) {
	c, o := cluster(t)
	a := openAdmin(t, o)
	var sent atomic.Int32
	c.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		sent.Add(1)
		return nil, errors.New("cut"), true
	})
	_, err := a.CreateTopic(bounded(t), "src", 1, 1)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("error %v, want ErrUnknownOutcome", err)
	}
	if sent.Load() != 1 {
		t.Fatalf("the request was sent %d times", sent.Load())
	}
}

func TestUnavailableSaysNothingWasSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	o := Options{Brokers: []string{address}, RequestTimeout: time.Second}
	a := openAdmin(t, o)
	if err := a.Ping(bounded(t)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Ping: %v", err)
	}
	if _, err := a.Topic(bounded(t), "src"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Topic: %v", err)
	}
	if _, err := a.CreateTopic(bounded(t), "src", 1, 1); !errors.Is(err, ErrUnavailable) {
		t.Errorf("CreateTopic: %v", err)
	}
	p, err := NewProducer(o, "src", "kafka:00")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Produce(bounded(t), 0, []Message{{}}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Produce: %v", err)
	}
	r := reader(t, o, Topic{Name: "src", Incarnation: "kafka:00"})
	if err := r.Seek(bounded(t), 0, 0); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Seek: %v", err)
	}
}

func TestCheckIdentityNamesEachDifference(t *testing.T) {
	good := Topic{Name: "src", Incarnation: "kafka:aa", Cleanup: "delete", Start: []ledger.Offset{0, 0}, RetentionMS: -1, RetentionBytes: -1, Partitions: 2}
	for what, change := range map[string]func(*Topic){
		"incarnation":              func(x *Topic) { x.Incarnation = "kafka:bb" },
		"partitions":               func(x *Topic) { x.Partitions = 3 },
		"cleanup.policy":           func(x *Topic) { x.Cleanup = "compact" },
		"retention.ms":             func(x *Topic) { x.RetentionMS = 1000 },
		"retention.bytes":          func(x *Topic) { x.RetentionBytes = 1000 },
		"log start of partition 1": func(x *Topic) { x.Start = []ledger.Offset{0, 5} },
	} {
		bad := good
		change(&bad)
		var identity *IdentityError
		if err := CheckIdentity(bad, "kafka:aa", 2); !errors.As(err, &identity) || identity.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := CheckIdentity(good, "kafka:aa", 2); err != nil {
		t.Error(err)
	}
}

// SC23, S13: aborted data is never returned, control records neither, and both the gap and the trailing marker are seen.
// Shows B5.
func TestSC23AbortedTransactionsAndTrailingMarkers(t *testing.T) {
	each(t, checkSC23AbortedTransactionsAndTrailingMarkers)
}

func checkSC23AbortedTransactionsAndTrailingMarkers(t *testing.T, o Options, name string) {
	a := openAdmin(t, o)
	topic := create(t, a, name, 1)
	no, yes := false, true
	publish(t, o, topic, 0, "a")                        // 0
	transaction(t, o, topic, name+"-t1", &no, "x", "y") // 1 2, marker 3
	transaction(t, o, topic, name+"-t2", &yes, "b")     // 4, marker 5
	transaction(t, o, topic, name+"-t3", &no, "z")      // 6, marker 7
	ends, err := a.Ends(bounded(t), name)
	if err != nil || ends[0] != 8 {
		t.Fatalf("ends %v %v, want 8", ends, err)
	}
	r := reader(t, o, topic)
	if err := r.Seek(bounded(t), 0, 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	var next ledger.Frontier
	for next < 8 {
		fetched, err := r.Poll(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fetched {
			if f.From != next || f.Next <= f.From {
				t.Fatalf("return %d..%d after %d", f.From, f.Next, next)
			}
			got, next = append(got, values(f.Records)...), f.Next
		}
	}
	if d := cmp.Diff([]string{"0=a", "4=b"}, got); d != "" || next != 8 {
		t.Fatalf("next %d %s", next, d)
	}
	got = nil
	next, err = r.ReadTo(bounded(t), 0, 2, 8, func(rec ledger.SourceRecord) error {
		got = append(got, string(rec.Value))
		return nil
	})
	if err != nil || next != 8 || !cmp.Equal([]string{"b"}, got) {
		t.Fatalf("ReadTo = %d %v %v", next, err, got)
	}
}

// S13: nothing past the last record returned is seen while a transaction is open, whatever the high watermark says.
// Shows F14.
func TestOpenTransactionHoldsBackAndIsNamed(t *testing.T) {
	each(t, checkOpenTransactionHoldsBackAndIsNamed)
}

func checkOpenTransactionHoldsBackAndIsNamed(t *testing.T, o Options, name string) {
	a := openAdmin(t, o)
	topic := create(t, a, name, 1)
	publish(t, o, topic, 0, "a")
	client := transaction(t, o, topic, name+"-t1", nil, "x")
	publish(t, o, topic, 0, "b")
	r := reader(t, o, topic)
	next, err := r.ReadTo(bounded(t), 0, 0, 1, func(ledger.SourceRecord) error { return nil })
	if next != 1 || err != nil {
		t.Fatalf("ReadTo = %d, %v; want 1", next, err)
	}
	ctx, cancel := context.WithTimeout(bounded(t), 700*time.Millisecond)
	defer cancel()
	next, err = r.ReadTo(ctx, 0, 1, 3, func(ledger.SourceRecord) error { return nil })
	if next != 1 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("ReadTo = %d, %v; want 1 and a deadline", next, err)
	}
	stable, err := a.Stable(bounded(t), name)
	if err != nil || stable[0] != 1 {
		t.Fatalf("stable %v %v, want 1", stable, err)
	}
	open, err := a.OpenTransactions(bounded(t), name)
	if err != nil || len(open) != 1 || open[0].First != 1 {
		t.Fatalf("open transactions %v %v, want one at 1", open, err)
	}
	if err := client.EndTransaction(bounded(t), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if next, err = r.ReadTo(bounded(t), 0, next, 4, func(ledger.SourceRecord) error { return nil }); next != 4 || err != nil {
		t.Fatalf("after the abort ReadTo = %d, %v", next, err)
	}
}

func TestReaderKeepsNilAndEmptyApart(t *testing.T) { each(t, checkReaderKeepsNilAndEmptyApart) }

func checkReaderKeepsNilAndEmptyApart(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), name, 1)
	p, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	in := []Message{{}, {Key: []byte{}, Value: []byte{}}, {Key: []byte("k"), Value: []byte("v"), Headers: []Header{{Key: "h", Value: []byte("1")}}}}
	offsets, err := p.Produce(bounded(t), 0, in)
	if err != nil || !cmp.Equal(offsets, []ledger.Offset{0, 1, 2}) {
		t.Fatalf("offsets %v %v", offsets, err)
	}
	i := 0
	_, err = reader(t, o, topic).ReadTo(bounded(t), 0, 0, 3, func(r ledger.SourceRecord) error {
		if (r.Key == nil) != (in[i].Key == nil) || (r.Value == nil) != (in[i].Value == nil) || string(r.Key) != string(in[i].Key) {
			t.Errorf("record %d: %q %q", i, r.Key, r.Value)
		}
		i++
		return nil
	})
	if err != nil || i != 3 {
		t.Fatal(i, err)
	}
}

func TestSeekAgainReturnsTheSameRecords(t *testing.T) { each(t, checkSeekAgainReturnsTheSameRecords) }

func checkSeekAgainReturnsTheSameRecords(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), name, 2)
	publish(t, o, topic, 0, "a", "b", "c")
	publish(t, o, topic, 1, "d")
	r := reader(t, o, topic)
	for range 3 {
		for _, from := range []ledger.Frontier{0, 2, 1} {
			if err := r.Seek(bounded(t), 0, from); err != nil {
				t.Fatal(err)
			}
			f, err := r.Poll(bounded(t))
			if err != nil || len(f) != 1 || f[0].From != from || f[0].Next != 3 || len(f[0].Records) != int(3-from) {
				t.Fatalf("from %d: %+v %v", from, f, err)
			}
		}
	}
}

// SC24: a position that the log does not hold is refused at the seek and noticed while reading; nothing is reset.
func TestSC24OutOfRange(t *testing.T) { each(t, checkSC24OutOfRange) }

func checkSC24OutOfRange(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), name, 1)
	publish(t, o, topic, 0, "a", "b", "c")
	r := reader(t, o, topic)
	var outside *RangeError
	if err := r.Seek(bounded(t), 0, 4); !errors.As(err, &outside) || outside.End != 3 {
		t.Fatalf("beyond the end: %v", err)
	}
	if err := r.Seek(bounded(t), 0, 3); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	cut := kadm.Offsets{}
	cut.AddOffset(name, 0, 2, -1)
	if _, err := operator(t, o).DeleteRecords(bounded(t), cut); err != nil {
		t.Fatal(err)
	}
	if err := r.Seek(bounded(t), 0, 1); !errors.As(err, &outside) || outside.Start != 2 {
		t.Fatalf("below the start: %v", err)
	}
	// Past the seek's look: the fetch itself is out of range.
	r.at[0] = 1
	r.client.RemoveConsumePartitions(map[string][]int32{name: {0}})
	r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().At(1)}})
	if got, err := r.Poll(bounded(t)); !errors.As(err, &outside) || len(got) != 0 {
		t.Fatalf("fetch below the start: %v %v", got, err)
	}
}

// SC24, I23: no byte of a recreated topic is returned or written.
// Shows B7.
func TestSC24RecreatedTopic(t *testing.T) { each(t, checkSC24RecreatedTopic) }

func checkSC24RecreatedTopic(t *testing.T, o Options, name string) {
	a := openAdmin(t, o)
	topic := create(t, a, name, 1)
	publish(t, o, topic, 0, "a")
	r := reader(t, o, topic)
	if err := r.Seek(bounded(t), 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Poll(bounded(t)); err != nil {
		t.Fatal(err)
	}
	short := o
	short.DeliveryTimeout = 5 * time.Second // what its last one takes
	writer, err := NewProducer(short, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.Produce(bounded(t), 0, []Message{{Value: []byte("b")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := operator(t, o).DeleteTopic(bounded(t), name); err != nil {
		t.Fatal(err)
	}
	var again Topic
	await(t, func() bool { again, err = a.CreateTopic(bounded(t), name, 1, 1); return err == nil })
	publish(t, o, again, 0, "X", "Y", "Z")
	var identity *IdentityError
	for {
		got, err := r.Poll(bounded(t))
		for _, f := range got {
			for _, rec := range f.Records {
				if string(rec.Value) != "b" {
					t.Fatalf("a record of the other incarnation was returned: %s", rec.Value)
				}
			}
		}
		if errors.As(err, &identity) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if identity.Found != again.Incarnation || identity.Want != topic.Incarnation {
		t.Errorf("poll: %v, want both ids named", identity)
	}
	if err := r.Seek(bounded(t), 0, 0); !errors.As(err, &identity) || identity.Found != again.Incarnation || identity.Want != topic.Incarnation {
		t.Fatalf("seek: %v", err)
	}
	if err := CheckIdentity(again, topic.Incarnation, 1); !errors.As(err, &identity) {
		t.Fatal(err)
	}
	if _, err := writer.Produce(bounded(t), 0, []Message{{Value: []byte("c")}}); err == nil {
		t.Fatal("a producer of the old incarnation wrote to the new one")
	}
	fresh, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if _, err := fresh.Produce(bounded(t), 0, []Message{{Value: []byte("c")}}); !errors.As(err, &identity) {
		t.Fatalf("fresh producer: %v", err)
	}
	if ends, err := a.Ends(bounded(t), name); err != nil || ends[0] != 3 {
		t.Fatalf("the new topic holds %v records (%v), want 3", ends, err)
	}
}
