package sim

import (
	"context"
	"errors"
	"testing"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/sim/choice"
	"amends/internal/store"
)

// blind is a store without one of its guards.
type blind struct {
	namespace
	fence    bool // commits under any token
	timeline bool // knows one server only
	lease    bool // receipts and pages under any term
	rows     bool // shows no rows, so that versions cannot be compared
}

func (b *blind) Commit(ctx context.Context, t store.Token, batch *ledger.Batch) error {
	o, err := b.namespace.Observe(ctx, batch.Partition)
	if err != nil {
		return err
	}
	if b.fence {
		t.Epoch, t.Nonce = o.Token.Epoch, o.Token.Nonce
	}
	if b.timeline {
		t.Server = o.Token.Server
	}
	return b.namespace.Commit(ctx, t, batch)
}

func (b *blind) Claim(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	return b.named(b.namespace.Claim(ctx, p))
}

func (b *blind) Observe(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	return b.named(b.namespace.Observe(ctx, p))
}

func (b *blind) named(o store.Owned, err error) (store.Owned, error) {
	if b.timeline {
		o.Token.Server = store.Server{System: 1, Timeline: 1}
	}
	return o, err
}

func (b *blind) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	if b.lease {
		pos, err := b.namespace.RelayPosition(ctx, r.Partition)
		if err != nil {
			return err
		}
		l.Term, l.Nonce = pos.Term, pos.Nonce
	}
	return b.namespace.Acknowledge(ctx, l, r)
}

func (b *blind) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	pos, err := b.namespace.ViewPosition(ctx, page.Partition)
	if err != nil {
		return err
	}
	if b.lease {
		l.Term, l.Nonce = pos.Term, pos.Nonce
		p := *page
		p.Before.Term, p.Before.Nonce = pos.Term, pos.Nonce
		page = &p
	}
	return b.namespace.ApplyViewInput(ctx, l, page)
}

func (b *blind) ViewRows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	if b.rows {
		ids = nil
	}
	return b.namespace.ViewRows(ctx, p, ids)
}

// deaf is a producer that takes every unknown outcome for an acknowledgement.
type deaf struct{ delivery.Producer }

func (d deaf) Produce(ctx context.Context, p ledger.Partition, m []broker.Message) ([]ledger.Offset, error) {
	offsets, err := d.Producer.Produce(ctx, p, m)
	if !errors.Is(err, broker.ErrUnknownOutcome) {
		return offsets, err
	}
	for len(offsets) < len(m) {
		next := ledger.Offset(0)
		if n := len(offsets); n > 0 {
			next = offsets[n-1] + 1
		}
		offsets = append(offsets, next)
	}
	return offsets, nil
}

// A guard that is taken out is found missing within a few hundred schedules, by an invariant that it is there for.
func TestCanaries(t *testing.T) {
	corpus := testCorpus(t)
	store := func(b blind) canary {
		return canary{store: func(ns namespace) namespace {
			b.namespace = ns
			return &b
		}}
	}
	for _, c := range []struct {
		name    string
		without canary
		within  uint64
	}{
		{"fence", store(blind{fence: true}), 3000},
		{"timeline", store(blind{timeline: true}), 3000},
		{"lease", store(blind{lease: true}), 3000},
		{"view rows", store(blind{rows: true}), 3000},
		{"acknowledgement", canary{producer: func(p delivery.Producer) delivery.Producer { return deaf{p} }}, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			pick := choice.Random(0)
			for seed := range c.within {
				pick.Reset(seed)
				r, err := corpus.play(pick, false, c.without)
				if err != nil {
					t.Fatal(err)
				}
				if r.Violation != nil {
					t.Logf("found by schedule %d: %v", seed, r.Violation)
					return
				}
			}
			t.Fatalf("not missed in %d schedules", c.within)
		})
	}
}
