package delivery_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// C2: a client that reports success and fewer offsets than messages has acknowledged no more than those.
// Shows B1.
func TestReceiptNeedsEveryAcknowledgement(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	o := w.relayOptions()
	o.PageOutputs = 4
	producers := 0
	real := o.Topic.NewProducer
	o.Topic.NewProducer = func() (delivery.Producer, error) {
		p, err := real()
		if producers++; producers > 1 {
			return p, err
		}
		return &faultyProducer{p, func(m []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error) {
			return send(m[:len(m)-1])
		}}, err
	}
	if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
		t.Fatalf("receipts for outputs that were not acknowledged, so that they are not sent: %s", d)
	}
	w.checkReceipts(t, 0, workedEnvelopes())
}

// A relay whose lease may be another's by now sends nothing and says so; it goes on once the lease is renewed.
// Shows B3.
func TestSC38RelayWithoutACurrentLeaseSendsNothing(t *testing.T) {
	w := newWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	current := true
	o := w.relayOptions()
	o.PageOutputs = 4
	o.Current = func(store.Lease) bool { return current }
	s := delivery.NewRelayStepper(o, w.lease(t, store.Relay, 0, "a"))
	defer s.Close()
	for len(w.published(t, 0)) == 0 {
		if _, err := s.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := len(w.published(t, 0))
	if first >= len(workedEnvelopes()) {
		t.Fatalf("%d published by the first page of 4", first)
	}
	current = false
	waiting := ""
	for range 10 {
		pr, err := s.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if pr.Waiting != "" {
			waiting = pr.Waiting
		}
	}
	if got := len(w.published(t, 0)); got != first || waiting != "the lease was not renewed in time" {
		t.Fatalf("%d published without a current lease, waiting %q", got-first, waiting)
	}
	current = true
	if err := settle(t, s, func(pr delivery.Progress) bool { return pr.Idle }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
		t.Fatal(d)
	}
	w.checkReceipts(t, 0, workedEnvelopes())
}

// S6, I20: an outbox that holds an alert of a key without a threshold, as under a damaged key id, is an integrity stop with
// nothing sent, and no crash; also where the topic holds that alert.
func TestI20AlertOfAKeyWithoutAThreshold(t *testing.T) {
	for name, published := range map[string][]string{"to be sent": nil, "in the topic": workedEnvelopes()[:5]} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strings.Replace(twoPartitions, `"opening_balance":0,"threshold":60`, `"opening_balance":0,"threshold":null`, 1))
			w.commit(t, 0, worked(t)...)
			if published != nil {
				w.publish(t, 0, widgetKey, published...)
			}
			err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a"))
			if !errors.Is(err, store.ErrIntegrity) || !strings.Contains(err.Error(), `"widget" "berlin"`) || len(w.published(t, 0)) != len(published) {
				t.Fatalf("%d records, %v", len(w.published(t, 0)), err)
			}
		})
	}
}
