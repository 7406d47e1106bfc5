package verify

import (
	"context"

	"amends/internal/ledger"
	"amends/internal/store"
)

// toldEvery is how many records are read between two calls of Progress.
const toldEvery = 1_000

// watched counts the records that a reader reads, for Progress.
type watched struct {
	Reader
	run *run
}

// watch makes the reads of a reader count; a Job without Progress reads as before.
func (r *run) watch(reader Reader) Reader {
	if r.Progress == nil {
		return reader
	}
	return watched{Reader: reader, run: r}
}

// ReadTo reads as the reader does.
func (w watched) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	at, err := w.Reader.ReadTo(ctx, p, from, end, func(rec ledger.SourceRecord) error {
		if w.run.read++; w.run.read%toldEvery == 0 {
			w.run.tell()
		}
		return fn(rec)
	})
	w.run.tell()
	return at, err
}

func (r *run) tell() { r.Progress(r.read, max(r.total, r.read)) }

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
