package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/store"
)

// I22, SC38: a standby for a thousand partitions of two roles asks the database no more than some thousand times a second, and
// still takes over within seconds.
func TestI22StandbyOfManyPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases, watched = 2_048, 20 * time.Second
		_, ns := namespace(t)
		f := &faulty{Store: ns, acquire: func(int) error { return fmt.Errorf("held by another: %w", store.ErrServiceBusy) }}
		k := lease.New(f, "b", lease.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range ledger.Partition(leases) {
			wg.Go(func() {
				err := k.Hold(ctx, store.Relay, i, func(context.Context, store.Lease) error { return nil })
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		time.Sleep(watched)
		f.mu.Lock()
		tried := f.tried
		f.mu.Unlock()
		cancel()
		wg.Wait()
		if tried < leases*int(watched/(3*time.Second)) || tried > leases*int(2+watched/(2*time.Second)) {
			t.Errorf("%d leases were asked for %d times in %v, which is neither often enough to take over within seconds nor seldom", leases, tried, watched)
		}
	})
}
