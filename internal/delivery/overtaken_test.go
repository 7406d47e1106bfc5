package delivery_test

import (
	"context"
	"errors"
	"testing"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// slow lets something happen before the last receipt is read.
type slow struct {
	delivery.RelayStore
	before func()
}

func (s slow) LastReceipt(ctx context.Context, p ledger.Partition) (*store.Receipt, error) {
	if s.before != nil {
		s.before()
	}
	return s.RelayStore.LastReceipt(ctx, p)
}

// TestRelayOvertakenWhileOpening: a receipt that another holder wrote between the two reads is a lost lease, no contradiction.
func TestRelayOvertakenWhileOpening(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	old := w.lease(t, store.Relay, 0, "a")
	o := w.relayOptions()
	o.Store = slow{RelayStore: o.Store, before: func() {
		w.now = w.now.Add(2 * 60e9)
		if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "b")); err != nil {
			t.Fatal(err)
		}
	}}
	s := delivery.NewRelayStepper(o, old)
	defer s.Close()
	if _, err := s.Step(t.Context()); !errors.Is(err, store.ErrFence) {
		t.Fatalf("ended with %v", err)
	}
}

// smaller is a topic that was made again, with one partition, once its identity was read.
type smaller struct{ delivery.Topics }

func (smaller) Ends(context.Context, string) ([]ledger.Offset, error) {
	return make([]ledger.Offset, 1), nil
}

// I23, SC24: an output topic that is made again with fewer partitions while a relay opens is another topic, and no crash.
func TestI23RelayOpensATopicOfFewerPartitions(t *testing.T) {
	w := newWorld(t, twoPartitions)
	o := w.relayOptions()
	o.Topic.Topics = smaller{o.Topic.Topics}
	var other *broker.IdentityError
	if err := w.relay(t, o, w.lease(t, store.Relay, 1, "a")); !errors.As(err, &other) || other.What != "partitions" {
		t.Fatalf("ended with %v", err)
	}
}
