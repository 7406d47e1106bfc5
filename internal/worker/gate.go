package worker

import "context"

// gate is a lock whose holder may wait for the store or the broker. Who waits for it waits as for those: within a context,
// and under virtual time too, which passes while goroutines wait for channels and not while they wait for a sync.Mutex.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) lock()   { g <- struct{}{} }
func (g gate) unlock() { <-g }

// within is lock, or ctx's error where that ends first.
func (g gate) within(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
