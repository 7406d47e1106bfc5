package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
)

// A reply that never comes is an unknown outcome with the acknowledged prefix kept apart.
// Shows B2.
func TestProduceUnknownOutcome(t *testing.T) {
	c, o := cluster(t)
	o.DeliveryTimeout = 5 * time.Second // what the first one may take, and the second one takes
	a := openAdmin(t, o)
	topic := create(t, a, "out", 1)
	p, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Produce(bounded(t), 0, []Message{{Value: []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("cut"), true
	})
	start := time.Now()
	offsets, err := p.Produce(bounded(t), 0, []Message{{Value: []byte("b")}})
	if !errors.Is(err, ErrUnknownOutcome) || len(offsets) != 0 {
		t.Fatalf("offsets %v, error %v; want ErrUnknownOutcome", offsets, err)
	}
	if d := time.Since(start); d > o.DeliveryTimeout+produceGrace+20*time.Second {
		t.Fatalf("took %v", d)
	}
}

// TestProduceCancelledIsUnknown shows B2.
func TestProduceCancelledIsUnknown(t *testing.T) {
	c, o := cluster(t)
	topic := create(t, openAdmin(t, o), "out", 1)
	p, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Produce(bounded(t), 0, []Message{{Value: []byte("a")}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bounded(t))
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		cancel()
		return nil, errors.New("cut"), true
	})
	if _, err := p.Produce(ctx, 0, []Message{{Value: []byte("b")}}); !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want unknown and canceled", err)
	}
}

func TestProduceRefusesTooLarge(t *testing.T) {
	_, o := cluster(t)
	topic := create(t, openAdmin(t, o), "out", 1)
	p, err := NewProducer(o, topic.Name, topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	offsets, err := p.Produce(bounded(t), 0, []Message{{Value: []byte("a")}, {Value: make([]byte, 2<<20)}})
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("offsets %v error %v, want ErrRefused", offsets, err)
	}
}

func TestManyMessagesAreConsecutive(t *testing.T) { each(t, checkManyMessagesAreConsecutive) }

func checkManyMessagesAreConsecutive(t *testing.T, o Options, name string) {
	topic := create(t, openAdmin(t, o), "out", 1)
	in := make([]string, 20_000)
	for i := range in {
		in[i] = strings.Repeat("x", 200) + fmt.Sprint(i)
	}
	offsets := publish(t, o, topic, 0, in...)
	for i, at := range offsets {
		if at != ledger.Offset(i) {
			t.Fatalf("message %d at %d", i, at)
		}
	}
	n := 0
	next, err := reader(t, o, topic).ReadTo(bounded(t), 0, 0, ledger.Frontier(len(in)), func(r ledger.SourceRecord) error {
		if string(r.Value) != in[n] {
			return fmt.Errorf("record %d differs", n)
		}
		n++
		return nil
	})
	if err != nil || n != len(in) || next != ledger.Frontier(len(in)) {
		t.Fatal(n, next, err)
	}
}
