package worker

import (
	"context"
	"errors"
	"testing"

	"amends/internal/store"
)

// A partition without records reads its row now and then: it notices a failover that lost a committed tail, and an owner
// that replaced it, without waiting for the next record.
func TestIdlePartitionReviewsItsRow(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, worked(t), 1<<20)
	standby := b.db.Standby()
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	want, state := outputs(t, b.store.Store.(storeReader), 0)
	if state.Owned.Frontier != 5 {
		t.Fatalf("frontier %d", state.Owned.Frontier)
	}
	progress, err := b.part.Step(ctx)
	if err != nil || !progress.Idle || progress.Wait <= 0 || progress.Wait > idleLook {
		t.Fatalf("%+v, %v", progress, err)
	}
	observed := b.store.observes
	b.now = b.now.Add(progress.Wait)
	if progress, err = b.part.Step(ctx); err != nil || !progress.Idle || b.store.observes != observed+1 {
		t.Fatalf("a review of what is as it was: %+v, %v, %d rows read", progress, err, b.store.observes-observed)
	}
	b.db.PromoteStandby(standby)
	b.now = b.now.Add(idleLook)
	if err := b.settle(); err != nil || b.part.Frontier() != 0 {
		t.Fatalf("after the promotion: frontier %d, %v", b.part.Frontier(), err)
	}
	at, sought := b.part.in.sought()
	if !sought || at != 0 {
		t.Fatalf("sought %t, to %d", sought, at)
	}
	b.end = 0
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	if got, state := outputs(t, b.store.Store.(storeReader), 0); state.Owned.Frontier != 5 || len(got) != len(want) {
		t.Fatalf("frontier %d, outputs %v", state.Owned.Frontier, got)
	}
	if _, err := b.store.Store.Claim(ctx, 0); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(idleLook)
	if err := b.settle(); !errors.Is(err, store.ErrFence) {
		t.Fatalf("replaced while idle: %v", err)
	}
}

// A row that cannot be read for the moment is no reason to end.
func TestIdleReviewWaitsForTheDatabase(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onObserve = func(n int) error {
		if n < 30 {
			return store.ErrUnavailable
		}
		return nil
	}
	b.now = b.now.Add(idleLook)
	for range 40 {
		progress, err := b.part.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.now = b.now.Add(progress.Wait)
	}
	if b.store.observes < 30 {
		t.Fatalf("%d rows read", b.store.observes)
	}
}
