package delivery_test

import (
	"context"
	"errors"
	"testing"

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
