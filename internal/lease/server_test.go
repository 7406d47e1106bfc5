package lease_test

import (
	"context"
	"errors"
	"testing"

	"amends/internal/lease"
	"amends/internal/store"
)

// Work that has nothing to do does not see a failover; the renewal does, and the lease is taken again (S12).
func TestPromotionEndsIdleWork(t *testing.T) {
	db, ns := namespace(t)
	var terms []int64
	k := lease.New(ns, "a", fast(lease.Options{Server: db.Server}))
	err := k.Hold(t.Context(), store.View, 0, func(ctx context.Context, l store.Lease) error {
		if terms = append(terms, l.Term); len(terms) > 1 {
			return nil
		}
		db.Promote()
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, store.ErrServerChanged) {
			t.Errorf("ended by %v", cause)
		}
		return ctx.Err()
	})
	if err != nil || len(terms) != 2 || terms[1] <= terms[0] {
		t.Fatalf("terms %v: %v", terms, err)
	}
}
