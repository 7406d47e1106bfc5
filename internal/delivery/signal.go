package delivery

import "amends/internal/ledger"

// Signal wakes the relay of a partition in the same process when its worker has committed outputs. A nil Signal wakes
// nobody. It is safe for concurrent use and never blocks.
type Signal struct{ wake []chan struct{} }

// NewSignal returns a Signal for a namespace's partitions.
func NewSignal(partitions int32) *Signal {
	s := &Signal{wake: make([]chan struct{}, partitions)}
	for i := range s.wake {
		s.wake[i] = make(chan struct{}, 1)
	}
	return s
}

// Notify says that partition p has pending outputs.
func (s *Signal) Notify(p ledger.Partition) {
	if s == nil {
		return
	}
	select {
	case s.wake[p] <- struct{}{}:
	default:
	}
}

// channel returns what the relay of p waits on; nil, which never fires, without a Signal.
func (s *Signal) channel(p ledger.Partition) <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.wake[p]
}
