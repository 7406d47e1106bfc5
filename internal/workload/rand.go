package workload

import "math/bits"

// Rand is a pseudo-random generator (SplitMix64). The same seed gives the same sequence in every version of amends, so
// that a seed names a history for ever. Not safe for concurrent use.
type Rand struct{ state uint64 }

// NewRand returns a generator for a seed.
func NewRand(seed uint64) *Rand { return &Rand{state: seed} }

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns 0..n-1. n must be positive.
func (r *Rand) Below(n int) int {
	high, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int(high)
}

// Between returns low..high.
func (r *Rand) Between(low, high int) int { return low + r.Below(high-low+1) }

// Percent reports true in p of 100 cases.
func (r *Rand) Percent(p int) bool { return r.Below(100) < p }

// pick returns one of the elements of s, which must not be empty.
func pick[T any](r *Rand, s []T) T { return s[r.Below(len(s))] }

// shuffle puts s into a random order.
func shuffle[T any](r *Rand, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := r.Below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}
