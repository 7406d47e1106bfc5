package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"amends/internal/embedded"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func startBroker(t *testing.T, dir string) *embedded.Broker {
	t.Helper()
	b, err := embedded.StartBroker(limited(t), embedded.BrokerOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readAll returns the committed values of a topic's partition 0.
func readAll(ctx context.Context, t *testing.T, broker, topic string) (values []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	for next := int64(0); next < end.Offset; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s up to %d, at %d: %v", topic, end.Offset, next, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				values = append(values, string(r.Value))
			}
		})
	}
	return values
}

func TestKilledBrokerKeepsEveryAcknowledgedRecord(t *testing.T) {
	dir := shortDir(t)
	acknowledged := 0
	for round := range 3 {
		v := start(t, "broker", dir)
		v.line(t)
		for range 50 * (round + 1) {
			v.line(t)
		}
		time.Sleep(time.Duration(7*round) * time.Millisecond)
		said := strings.Split(strings.TrimSpace(string(v.kill())), "\n")
		last := said[len(said)-1]
		b := startBroker(t, dir)
		values := readAll(limited(t), t, b.Address(), "plain")
		var offset, n int
		if _, err := fmt.Sscanf(last, "%d %d", &offset, &n); err == nil && (len(values) <= offset || values[offset] != strconv.Itoa(n)) {
			t.Fatalf("round %d: offset %d was acknowledged with %d; %d records are there", round, offset, n, len(values))
		}
		if len(values) < acknowledged {
			t.Fatalf("round %d: %d records, %d before", round, len(values), acknowledged)
		}
		acknowledged = len(values)
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if acknowledged < 300 {
		t.Errorf("only %d records were acknowledged", acknowledged)
	}
}

func TestKilledBrokerAbortsItsOpenTransactions(t *testing.T) {
	dir := shortDir(t)
	for round := range 3 { // a transaction of the same id is cut off again and again
		v := start(t, "broker", dir)
		v.line(t)
		v.line(t)
		v.kill()
		b := startBroker(t, dir)
		ctx := limited(t)
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.DefaultProduceTopic("transactional"), kgo.TransactionalID("the-id"))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ProduceSync(ctx, kgo.StringRecord("whole "+strconv.Itoa(round))).First(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		client.Close()
		var want []string
		for r := range round + 1 {
			want = append(want, "whole "+strconv.Itoa(r))
		}
		if got := readAll(ctx, t, b.Address(), "transactional"); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Fatalf("round %d: committed records %q, want %q", round, got, want)
		}
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrokerRemembersItsPortAndYieldsATakenOne(t *testing.T) {
	dir := shortDir(t)
	port := ownPort(t)
	b, err := embedded.StartBroker(limited(t), embedded.BrokerOptions{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	b = startBroker(t, dir)
	if b.Port() != port {
		t.Errorf("port %d, before %d", b.Port(), port)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var told string
	b, err = embedded.StartBroker(limited(t), embedded.BrokerOptions{Dir: dir, Progress: func(s string) { told = s }})
	if err != nil {
		t.Fatal(err)
	}
	if b.Port() == port || !strings.Contains(told, strconv.Itoa(port)) {
		t.Errorf("port %d, told %q", b.Port(), told)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.StartBroker(limited(t), embedded.BrokerOptions{Dir: dir, Port: port})
	var busy *embedded.PortError
	if !errors.As(err, &busy) || busy.Port != port {
		t.Errorf("named port in use: %v", err)
	}
}

func TestBrokerDataHasOneHolder(t *testing.T) {
	dir := shortDir(t)
	b := startBroker(t, dir)
	_, err := embedded.StartBroker(limited(t), embedded.BrokerOptions{Dir: dir})
	var held *embedded.HeldError
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() {
		t.Errorf("second broker on the data: %v", err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestBrokerMakesNoTopicByItself(t *testing.T) {
	b := startBroker(t, shortDir(t))
	defer b.Stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(0),
		kgo.DefaultProduceTopic("nobody-made-this"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.ProduceSync(limited(t), kgo.StringRecord("x")).First(); err == nil {
		t.Error("a topic was made by producing to it")
	}
}
