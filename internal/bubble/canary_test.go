package bubble

import (
	"context"
	"strings"
	"testing"

	"amends/internal/ledger"
	"amends/internal/roles"
	"amends/internal/store"
)

// blind is a store without one of its guards.
type blind struct {
	roles.Namespace
	epoch bool // commits under any token
	term  bool // receipts and pages under any term
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

// canaries are stores without a guard, by the guard's name.
var canaries = map[string]guard{
	"epoch":      func(ns roles.Namespace) roles.Namespace { return &blind{Namespace: ns, epoch: true} },
	"lease term": func(ns roles.Namespace) roles.Namespace { return &blind{Namespace: ns, term: true} },
}

// A guard that is taken out is found missing, by an invariant that it is there for.
func TestCanaries(t *testing.T) {
	for name, invariant := range map[string]string{"epoch": "I4: ", "lease term": "I18: "} {
		t.Run(name, func(t *testing.T) {
			all := newTotals()
			child(t, all, job{Count: 1_000, Without: name})
			if len(all.failures) != 1 || !strings.Contains(all.failures[0], invariant) {
				t.Fatalf("%d schedules, found %q, want %s", all.schedules, all.failures, invariant)
			}
			t.Logf("found by schedule %d: %s", all.schedules, all.failures[0])
		})
	}
}
