package roles

import (
	"slices"
	"sync"

	"amends/internal/delivery"
)

// board knows why roles of this process are not ready.
type board struct {
	report   func(ready bool, reason string) // nil for nobody
	services []service                       // complete before anything runs
	mu       sync.Mutex                      // a leaf; guards workers
	workers  []string                        // why each worker is not ready, "" if it is
}

// service is a relay or a view.
type service struct {
	*delivery.Service
	role Role
}

// worker adds a member of the source group, which is not ready until it says so, and returns whom it tells.
func (b *board) worker() func(ready bool, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := len(b.workers)
	b.workers = append(b.workers, "starting")
	return func(ready bool, reason string) {
		if ready {
			reason = ""
		}
		b.mu.Lock()
		b.workers[i] = reason
		b.mu.Unlock()
		if b.report != nil {
			b.report(ready, reason)
		}
	}
}

func (b *board) service(r Role, s *delivery.Service) { b.services = append(b.services, service{s, r}) }

// waits returns why roles are not ready, each with the role before it, none when all are.
func (b *board) waits() (reasons []string) {
	b.mu.Lock()
	workers := slices.Clone(b.workers)
	b.mu.Unlock()
	for _, why := range workers {
		if why != "" {
			reasons = append(reasons, string(Source)+": "+why)
		}
	}
	for _, s := range b.services {
		if why := s.Waits(); why != "" {
			reasons = append(reasons, string(s.role)+": "+why)
		}
	}
	return slices.Compact(reasons)
}
