package workload

import "testing"

// BenchmarkHistory measures one history of the property tests.
func BenchmarkHistory(b *testing.B) {
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		NewHistory(DefaultHistory(seed))
		seed++
	}
}
