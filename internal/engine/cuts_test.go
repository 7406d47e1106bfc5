package engine_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"amends/internal/ledger"
	"amends/internal/pace"
	"amends/internal/wire"
)

// TestSameBytesUnderAnyCut is I9 and I3: whatever the batches, restarts, snapshots and evictions, the decisions and the
// envelopes are those of one record a batch.
// Shows I2.
func TestSameBytesUnderAnyCut(t *testing.T) {
	t.Parallel()
	const cuts = 5
	restores, snapshots := 0, 0
	for seed := range uint64(pace.Of(2000)) {
		h := newHistory(t, seed^0xC075)
		whole := newLine(t, h.cfg, 0, roomy)
		var recs []wire.Decoded
		offset := ledger.Offset(0)
		for range 60 {
			offset += ledger.Offset(h.rng.IntN(2))
			if h.rng.IntN(10) == 0 {
				recs = append(recs, wire.NewDecoder(h.cfg).Decode(ledger.SourceRecord{Offset: offset, Value: []byte("{")}))
			} else {
				recs = append(recs, whole.record(offset, h.next()))
			}
			offset++
		}
		for i := range recs {
			whole.step(recs[i])
		}
		want := whole.envelopes()
		for cut := range uint64(cuts) {
			l := cutLine(t, h, recs, rand.New(rand.NewPCG(seed, cut)), int(cut))
			if !reflect.DeepEqual(whole.journal, l.journal) || whole.pos != l.pos || !slices.Equal(want, l.envelopes()) {
				t.Fatalf("seed %d cut %d: other decisions than one record a batch", seed, cut)
			}
			if l.work.Records != whole.work.Records || l.work.Changed != whole.work.Changed || l.work.Withdrawn != whole.work.Withdrawn ||
				l.work.Rejected != whole.work.Rejected || l.work.RefoldedDays != whole.work.RefoldedDays || l.work.RewindDays != whole.work.RewindDays {
				t.Fatalf("seed %d cut %d: work %+v, one record a batch %+v", seed, cut, l.work, whole.work)
			}
			restores += l.restores
			snapshots += len(l.snapshots)
		}
	}
	if restores < pace.Of(2000)*20 || snapshots < pace.Of(2000)*4 {
		t.Errorf("%d restores and %d snapshots: the cuts show too little", restores, snapshots)
	}
}

// cutLine runs the records in random batches: cut 0 keeps everything cached, 1 evicts whatever it can, 2 restarts, 3
// restarts and uses snapshots, 4 does all of it.
func cutLine(t *testing.T, h *history, recs []wire.Decoded, rng *rand.Rand, cut int) *line {
	limit := int64(roomy)
	if cut == 1 || cut == 4 {
		limit = 1
	}
	l := newLine(t, h.cfg, 0, limit)
	for len(recs) > 0 {
		n := min(len(recs), 1+rng.IntN(20))
		l.step(recs[:n]...)
		recs = recs[n:]
		if cut >= 3 {
			l.snapshot(int64(rng.IntN(4)))
		}
		if cut >= 2 && rng.IntN(2) == 0 {
			l.restart()
		}
	}
	return l
}
