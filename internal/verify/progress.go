package verify

import (
	"context"

	"amends/internal/ledger"
	"amends/internal/store"
)

// toldEvery is how many records are read between two calls of Progress.
const toldEvery = 1_000

// watched counts the records that a reader reads, for Progress, and waits where the broker is away.
type watched struct {
	Reader
	run *run
}

func (r *run) watch(reader Reader) Reader { return watched{Reader: reader, run: r} }

// ReadTo reads as the reader does, and on where that left off once the broker is back.
func (w watched) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	err := patiently(ctx, func() error {
		at, err := w.Reader.ReadTo(ctx, p, from, end, func(rec ledger.SourceRecord) error {
			if w.run.read++; w.run.read%toldEvery == 0 {
				w.run.tell()
			}
			return fn(rec)
		})
		from = max(from, at)
		return err
	})
	w.run.tell()
	return from, err
}

func (r *run) tell() {
	if r.Progress != nil {
		r.Progress(r.read, max(r.total, r.read))
	}
}

// expect says how many records are to be read in all: the source up to its marks or cuts, and of a deep run the source again
// and the output topic. Offsets have gaps, so it may be less (S13).
func (r *run) expect(states []store.PartitionState) {
	r.total = 0
	for p, s := range states {
		end := CutOf(s)
		if r.marks != nil {
			end = max(end, r.marks[p])
		}
		r.total += int64(end)
		if r.Deep && s.View != nil {
			r.total += int64(end) + int64(s.View.Output)
		}
	}
}
