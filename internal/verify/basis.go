package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/verify/stored"
)

// Basis is what an audit goes on from: of each partition the recomputation of its source and the cut at which everything was
// last found equal. The zero value has neither; then every row is compared. It is for one goroutine.
type Basis struct {
	parts []part
}

// Audit runs one cycle of an audit: live, at the present cut, in one snapshot. A full one recomputes everything from an empty
// state, deep; another extends b and compares what changed since each partition's verified cut (S10). b moves on where a
// partition was found equal and stays where it was not, so that what differs is compared again. Partitions that are stopped,
// or whose view has fallen behind the verified cut, are left out. A *MovedError, and no report, where only a full cycle can tell: b
// forgets the partitions that do not go on from their cuts.
func (j *Job) Audit(ctx context.Context, b *Basis, full bool) (*Report, error) {
	if j.Manifest.Output == nil {
		return nil, ErrUnbound
	}
	began := time.Now()
	job := *j
	job.Live, job.Deep = true, full
	r := &run{Job: &job, report: newReport(j.Manifest, true, full), audit: true, changes: !full}
	reader, err := j.Source()
	if err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	defer reader.Close()
	if len(b.parts) == 0 {
		b.parts = make([]part, j.Manifest.Config.Partitions)
	}
	r.prefix = &prefix{reader: r.watch(reader), config: stored.OracleConfig(j.Manifest.Config), parts: make([]part, len(b.parts))}
	for p := range r.prefix.parts {
		if b.parts[p].oracle == nil || full {
			r.prefix.reset(ledger.Partition(p))
		} else {
			r.prefix.parts[p] = b.parts[p]
		}
	}
	budget, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	err = r.verify(ctx, budget)
	r.report.Elapsed = time.Since(began)
	for p := range b.parts {
		if b.parts[p].since != nil && !full {
			b.parts[p] = r.prefix.parts[p] // what was read stays read, whatever came of it
		}
	}
	if r.moved != nil {
		return nil, r.moved
	}
	if err = r.judge(err); err == nil {
		r.settle(b)
	}
	return r.report, err
}

// settle says what the cycle found of each partition and moves b to the cuts that were found equal.
func (r *run) settle(b *Basis) {
	r.report.Boundary = nil
	for p := range b.parts {
		p := ledger.Partition(p)
		x := Part{Partition: p, Cut: Cut{Cause: -1}}
		if since := b.parts[p].since; since != nil {
			x.Cut = since.cut
		}
		r.find(p, &x)
		if x.Verified {
			v := r.compared[p].View
			x.Cut = Cut{Server: r.compared[p].Owned.Token.Server, Frontier: CutOf(r.compared[p]), Output: v.Output, Sequence: v.Sequence, Cause: v.Cause}
			blocked := map[ledger.StockKey]ledger.Status{}
			for _, k := range r.report.Blocked {
				if k.Partition == p {
					blocked[k.Key] = k.Status
				}
			}
			b.parts[p] = part{oracle: r.prefix.parts[p].oracle, at: r.prefix.parts[p].at, since: newChanges(x.Cut, blocked)}
		}
		r.report.Parts = append(r.report.Parts, x)
		r.report.Boundary = append(r.report.Boundary, Boundary{Partition: p, SourceEnd: x.Cut.Frontier, OutputEnd: x.Cut.Output})
	}
}

// find fills in the status of one partition; none where the view was behind the verified cut.
func (r *run) find(p ledger.Partition, x *Part) {
	x.Stopped = slices.ContainsFunc(r.report.Reasons, func(x Reason) bool { return x.Code == PartitionStopped && x.Partition == p })
	if r.compared == nil || r.report.Status == Unavailable {
		x.Status = r.report.Status
		if len(r.report.Reasons) > 0 {
			x.Detail = string(r.report.Reasons[0].Code) + " " + r.report.Reasons[0].Detail
		}
		return
	}
	if r.skipped[p] == ViewBehind {
		return
	}
	if d := r.report.byPartition[p]; d != nil {
		x.Status, x.Differences, x.Detail = Drift, d.Differences, d.Detail
		return
	}
	for _, reason := range r.report.Reasons {
		if reason.Partition == p {
			x.Status, x.Detail = Incomplete, string(reason.Code)+" "+reason.Detail
			return
		}
	}
	x.Status, x.Verified = Pass, true
	if slices.ContainsFunc(r.report.Blocked, func(k BlockedKey) bool { return k.Partition == p }) {
		x.Status = Blocked
	}
}

func newChanges(cut Cut, blocked map[ledger.StockKey]ledger.Status) *changes {
	return &changes{cut: cut, from: cut.Frontier, blocked: blocked, before: map[ledger.StockKey]oracle.Expectation{}}
}

// Has reports whether b has anything to go on from in a partition.
func (b *Basis) Has(p ledger.Partition) bool { return int(p) < len(b.parts) && b.parts[p].since != nil }

// Records is how many source records the recomputation of a partition holds, 0 for none.
func (b *Basis) Records(p ledger.Partition) int64 {
	if int(p) >= len(b.parts) || b.parts[p].oracle == nil {
		return 0
	}
	return b.parts[p].oracle.Counts().Records
}

// State returns the recomputation of a partition in the form of oracle.StateFormat, and the frontier of what it holds; false
// where there is none, or where it holds more than was found equal.
func (b *Basis) State(p ledger.Partition) (ledger.Frontier, []byte, bool) {
	if !b.Has(p) || b.parts[p].at != b.parts[p].since.cut.Frontier {
		return 0, nil, false
	}
	return b.parts[p].at, b.parts[p].oracle.AppendState(nil), true
}

// errResume: a saved state that cannot be gone on from.
var errResume = errors.New("the saved state is past the verified cut")

// Resume makes b go on from a saved state that holds the source below at, and from the cut that was verified last, which is
// at or past it. oracle.ErrState for bytes that are no state of this configuration.
func (b *Basis) Resume(cfg *manifest.Config, p ledger.Partition, at ledger.Frontier, state []byte, cut Cut) error {
	if at > cut.Frontier {
		return fmt.Errorf("resume partition %d: %w: %d, %d", p, errResume, at, cut.Frontier)
	}
	o, err := oracle.Restore(stored.OracleConfig(cfg), state)
	if err != nil {
		return fmt.Errorf("resume partition %d: %w", p, err)
	}
	if len(b.parts) == 0 {
		b.parts = make([]part, cfg.Partitions)
	}
	blocked := map[ledger.StockKey]ledger.Status{}
	for e := range o.All() {
		if e.Status.Blocked {
			blocked[e.Key] = e.Status
		}
	}
	since := newChanges(cut, blocked)
	since.from = at // what these records change is compared again, which spares a second look at who is BLOCKED
	b.parts[p] = part{oracle: o, at: at, since: since}
	return nil
}
