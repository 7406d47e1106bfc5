package worker

import (
	"context"
	"fmt"
	"sync"

	"amends/internal/ledger"
	"amends/internal/store"
)

// faulty wraps a store and separates what a call did from what its caller saw.
type faulty struct {
	Store
	onCommit  func(n int, b *ledger.Batch) (do bool, err error) // n counts from 1; err replaces the answer unless nil
	onObserve func(n int) error
	onClaim   func(n int) error
	onLoad    func(n int) error
	commits   []ledger.Batch // as sent
	loads     [][]ledger.StockKey
	observes  int
	claims    int
	wholes    int // loads without snapshots
	saves     int
	mu        sync.Mutex
}

func (f *faulty) Claim(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	f.mu.Lock()
	f.claims++
	n := f.claims
	f.mu.Unlock()
	if f.onClaim != nil {
		if err := f.onClaim(n); err != nil {
			return store.Owned{}, err
		}
	}
	return f.Store.Claim(ctx, p)
}

func (f *faulty) Observe(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	f.mu.Lock()
	f.observes++
	n := f.observes
	f.mu.Unlock()
	if f.onObserve != nil {
		if err := f.onObserve(n); err != nil {
			return store.Owned{}, err
		}
	}
	return f.Store.Observe(ctx, p)
}

func (f *faulty) Load(ctx context.Context, t store.Token, p ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error) {
	f.mu.Lock()
	f.loads = append(f.loads, keys)
	if whole {
		f.wholes++
	}
	n := len(f.loads)
	f.mu.Unlock()
	if f.onLoad != nil {
		if err := f.onLoad(n); err != nil {
			return nil, err
		}
	}
	return f.Store.Load(ctx, t, p, keys, whole)
}

func (f *faulty) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	f.mu.Lock()
	f.commits = append(f.commits, *b)
	n := len(f.commits)
	f.mu.Unlock()
	do, answer := true, error(nil)
	if f.onCommit != nil {
		do, answer = f.onCommit(n, b)
	}
	if do {
		if err := f.Store.Commit(ctx, t, b); err != nil {
			return err
		}
	}
	return answer
}

func (f *faulty) SaveSnapshots(ctx context.Context, t store.Token, p ledger.Partition, at ledger.Frontier, s []store.KeySnapshot) error {
	f.mu.Lock()
	f.saves++
	f.mu.Unlock()
	return f.Store.SaveSnapshots(ctx, t, p, at, s)
}

func (f *faulty) count(of func() int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return of()
}

// errLost is what a client sees of a commit whose reply did not arrive.
var errLost = fmt.Errorf("read reply: connection reset: %w", store.ErrCommitUnknown)
