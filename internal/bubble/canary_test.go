package bubble

import (
	"context"
	"fmt"
	"testing"

	"amends/internal/ledger"
	"amends/internal/pace"
	"amends/internal/roles"
	"amends/internal/sim/choice"
	"amends/internal/store"
)

// blind is a store without one of its guards.
type blind struct {
	roles.Namespace
	epoch bool // commits under any token
	term  bool // receipts and pages under any term
	rows  bool // shows a view no rows, so that versions cannot be compared
}

func (b *blind) Commit(ctx context.Context, t store.Token, batch *ledger.Batch) error {
	if b.epoch {
		o, err := b.Observe(ctx, batch.Partition)
		if err != nil {
			return err
		}
		t.Epoch, t.Nonce = o.Token.Epoch, o.Token.Nonce
	}
	return b.Namespace.Commit(ctx, t, batch)
}

func (b *blind) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	if b.term {
		pos, err := b.RelayPosition(ctx, r.Partition)
		if err != nil {
			return err
		}
		l.Term, l.Nonce = pos.Term, pos.Nonce
	}
	return b.Namespace.Acknowledge(ctx, l, r)
}

func (b *blind) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	if b.term {
		pos, err := b.ViewPosition(ctx, page.Partition)
		if err != nil {
			return err
		}
		l.Term, l.Nonce = pos.Term, pos.Nonce
		p := *page
		p.Before.Term, p.Before.Nonce = pos.Term, pos.Nonce
		page = &p
	}
	return b.Namespace.ApplyViewInput(ctx, l, page)
}

func (b *blind) ViewRows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	if b.rows {
		ids = nil
	}
	return b.Namespace.ViewRows(ctx, p, ids)
}

// A guard that is taken out is found missing, by an invariant that it is there for.
func TestCanaries(t *testing.T) {
	for _, c := range []struct {
		name    string
		without blind
	}{{"epoch", blind{epoch: true}}, {"lease term", blind{term: true}}, {"view rows", blind{rows: true}}} {
		t.Run(c.name, func(t *testing.T) {
			without := func(ns roles.Namespace) roles.Namespace {
				b := c.without
				b.Namespace = ns
				return &b
			}
			most := uint64(max(pace.Of(1_000), 200))
			for seed := range most {
				var r result
				watched(fmt.Sprintf("schedule %d", seed), func() { r = play(t, choice.Random(seed), without, nil) }, nil)
				if r.Violation != "" {
					t.Logf("found by schedule %d: %s", seed, r.Violation)
					return
				}
			}
			t.Fatalf("not missed in %d schedules", most)
		})
	}
}
