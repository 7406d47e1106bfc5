package sim

import (
	"os"
	"strconv"
	"testing"
	"time"

	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
)

func TestSmoke(t *testing.T) {
	c, err := NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pick := choice.Random(0)
	hashes := map[uint64]bool{}
	var counts fault.Counts
	events, n := 0, 3000
	if v, err := strconv.Atoi(os.Getenv("AMENDS_SIM_SCHEDULES")); err == nil {
		n = v
	}
	shown := 0
	for seed := range uint64(n) {
		pick.Reset(seed)
		r, err := c.Play(pick, false)
		if err != nil {
			t.Fatal(err)
		}
		hashes[r.Hash] = true
		counts.Add(&r.Faults)
		events += r.Events
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
			if shown++; shown > 8 {
				break
			}
		}
	}
	t.Logf("%d distinct, %.1f events, %v", len(hashes), float64(events)/float64(n), time.Since(began))
	for f := range fault.Kinds {
		t.Logf("%s %d", f, counts[f])
	}
}

func testCorpus(t testing.TB) *Corpus {
	t.Helper()
	c, err := NewCorpus()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
