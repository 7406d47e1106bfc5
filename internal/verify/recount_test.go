package verify_test

import (
	"testing"

	"amends/internal/broker"
	"amends/internal/store"
	"amends/internal/verify"
)

// I16: only a deep verification counts rejected records again; nobody else does.
// Shows I16.
func TestI16DeepRecountsRejectedRecords(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Publish(t, 0, broker.Message{Key: []byte("k"), Value: []byte("poison")})
	w.Settle(t)
	for name, c := range map[string]struct {
		change func(*store.PartitionState)
		status verify.Status
	}{
		"as counted":                      {func(*store.PartitionState) {}, verify.Pass},
		"another count":                   {func(s *store.PartitionState) { s.Rejected++ }, verify.Drift},
		"totals that began at an upgrade": {func(s *store.PartitionState) { s.Measurements.Total.Work.Records, s.Rejected = 1, 0 }, verify.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(w)
			j.Deep = true
			j.Store = tampered{Snapshots: w.NS, state: func(s *store.PartitionState) {
				if s.Partition == 0 {
					c.change(s)
				}
			}}
			r := run(t, j)
			want(t, r, c.status)
			if c.status == verify.Drift && (r.Differences != 1 || r.First.What != verify.Row) {
				t.Errorf("%d differences, first %+v", r.Differences, r.First)
			}
		})
	}
}
