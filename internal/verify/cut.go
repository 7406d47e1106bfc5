package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/ledger"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/verify/stored"
)

// errStopped: a partition is stopped by a stored violation, so that no wait can complete the boundary.
var errStopped = errors.New("a partition is stopped")

// errTail: the cut moved further past what the oracle holds than may be read while a snapshot is open.
var errTail = errors.New("the cut moved on")

// errBehind: the cut is below what the oracle holds, which cannot be taken back. A view that has applied everything is at
// the partition's frontier; when it then lacks one output, its cut falls behind all the records without outputs before it.
// It comes back with the view; after a failover that lost its tail, with the worker.
var errBehind = errors.New("the cut moved back")

// CutOf returns the cut of a partition (S10).
func CutOf(s store.PartitionState) ledger.Frontier { return stored.CutOf(s) }

// look reads the partition rows and positions from a snapshot of their own, retrying while the database is away.
func (r *run) look(ctx context.Context) ([]store.PartitionState, error) {
	for wait := lookEvery; ; wait = min(2*wait, time.Second) {
		var states []store.PartitionState
		err := r.Store.Snapshot(ctx, func(s store.Snapshot) (err error) {
			states, err = r.states(ctx, s)
			return err
		})
		if !errors.Is(err, store.ErrUnavailable) || pause.For(ctx, wait) != nil {
			return states, err
		}
	}
}

func (r *run) states(ctx context.Context, s store.Snapshot) ([]store.PartitionState, error) {
	states, err := s.Partitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	if len(states) != len(r.prefix.parts) {
		return nil, fmt.Errorf("read partitions: %w: %d rows for %d partitions", store.ErrIntegrity, len(states), len(r.prefix.parts))
	}
	return states, nil
}

// stopped reports whether any partition is stopped.
func stopped(states []store.PartitionState) bool {
	for _, s := range states {
		if s.View != nil && s.View.Stopped {
			return true
		}
	}
	return false
}

// reach reads the source and waits until every cut is at or past its mark (quiesced), or reads up to the present cuts
// (live).
func (r *run) reach(budget context.Context) error {
	if !r.Live {
		states, err := r.look(budget)
		if err != nil {
			return err
		}
		r.expect(states)
		if err := r.readToMarks(budget); err != nil {
			return err
		}
	}
	for wait := lookEvery; ; wait = min(2*wait, lookAtMost) {
		states, err := r.look(budget)
		if err != nil {
			return err
		}
		if stopped(states) && !r.audit {
			return errStopped
		}
		if r.reached(states) {
			r.expect(states)
			return r.readToCuts(budget, states)
		}
		if err := pause.For(budget, wait); err != nil {
			return err
		}
	}
}

// reached reports whether the cuts of all partitions are at or past their marks; a live run has none. Nothing is waited
// for where a position row is missing.
func (r *run) reached(states []store.PartitionState) bool {
	for p, mark := range r.marks {
		if states[p].View != nil && (CutOf(states[p]) < mark || r.Deep && stored.Ahead(states[p]) && states[p].Owned.Frontier < mark) {
			return false
		}
	}
	return true
}

// readToMarks reads every partition up to its mark, waiting for open transactions below it to end. Everything that can
// be read is read, also when the budget ends, so that known conflicts can be listed.
func (r *run) readToMarks(budget context.Context) error {
	for wait := lookEvery; ; wait = min(2*wait, lookAtMost) {
		done, err := r.readStable(budget)
		if done || err != nil {
			return err
		}
		if err := pause.For(budget, wait); err != nil {
			return err
		}
	}
}

// readStable reads every partition as far as readers can see, up to its mark; true when all marks are reached.
func (r *run) readStable(ctx context.Context) (bool, error) {
	stable, err := r.stable(ctx)
	if err != nil {
		return false, err
	}
	done := true
	for p, mark := range r.marks {
		end := min(mark, ledger.Frontier(stable[p]))
		if r.prefix.parts[p].at < end {
			if err := r.prefix.extend(ctx, ledger.Partition(p), end); err != nil {
				return false, err
			}
		}
		done = done && end == mark
	}
	return done, nil
}

func (r *run) stable(ctx context.Context) (stable []ledger.Offset, err error) {
	err = patiently(ctx, func() (err error) {
		if stable, err = r.Topics.Stable(ctx, r.Manifest.SourceTopic); err != nil {
			err = fmt.Errorf("read stable offsets: %w", err)
		}
		return err
	})
	return stable, err
}

// startOver forgets what the oracle holds past the cuts of partitions, to read their source again.
func (r *run) startOver(states []store.PartitionState) {
	for p := range states {
		if CutOf(states[p]) < r.prefix.parts[p].at {
			r.prefix.reset(ledger.Partition(p))
		}
	}
}

// readToCuts reads every partition up to its cut, unless it is past it already.
func (r *run) readToCuts(ctx context.Context, states []store.PartitionState) error {
	for p := range states {
		if err := r.prefix.extend(ctx, ledger.Partition(p), CutOf(states[p])); err != nil {
			return err
		}
	}
	return nil
}

// incomplete says which stage of which partition has not reached the boundary, and lists the conflicts known so far.
func (r *run) incomplete(ctx context.Context) error {
	r.report.Status = Incomplete
	states, err := r.look(ctx)
	if err != nil {
		return err
	}
	stable, err := r.stable(ctx)
	if err != nil {
		return err
	}
	if r.Live {
		err = r.readToCuts(ctx, states) // conflicts that are known by then are listed all the same
	} else {
		_, err = r.readStable(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	for p, s := range states {
		r.missing(ledger.Partition(p), s, ledger.Frontier(stable[p]))
		r.boundary(ledger.Partition(p), s)
	}
	if len(r.report.Reasons) == 0 {
		r.report.because(NotCompared, -1, -1, -1, "the boundary was reached, but the budget ended before everything was compared")
	}
	for p := range r.prefix.parts {
		for e := range r.prefix.parts[p].oracle.All() {
			if e.Status.Blocked {
				r.report.Blocked = append(r.report.Blocked, BlockedKey{Key: e.Key, Status: e.Status, Partition: ledger.Partition(p)})
			}
		}
	}
	return nil
}

func (r *run) boundary(p ledger.Partition, s store.PartitionState) {
	b := Boundary{Partition: p, SourceEnd: CutOf(s)}
	if s.View != nil {
		b.OutputEnd = s.View.Output
		r.report.Messages += int64(s.View.Sequence)
	}
	r.report.Boundary = append(r.report.Boundary, b)
}

func (r *run) stoppedReason(p ledger.Partition, s store.PartitionState) {
	r.report.because(PartitionStopped, p, int64(s.View.Output), int64(s.View.Sequence), "the view stopped at a protocol violation; view show prints it")
}

// undecided names a partition whose view is ahead of the worker: the outputs past the journal's last could not be compared.
func (r *run) undecided(p ledger.Partition, s store.PartitionState) {
	r.report.because(SourceNotProcessed, p, int64(s.Owned.Frontier), int64(s.Owned.Sequence),
		fmt.Sprintf("the output topic and the view hold sequences up to %d, which the worker has not decided (again) yet", s.View.Sequence-1))
}

// missing names the first missing coordinate of each stage of one partition.
func (r *run) missing(p ledger.Partition, s store.PartitionState, stable ledger.Frontier) {
	if s.View != nil && s.View.Stopped {
		r.stoppedReason(p, s)
	}
	target := CutOf(s)
	if !r.Live {
		target = r.marks[p]
	}
	if stable < target {
		r.report.because(OpenTransaction, p, int64(stable), -1, "a transaction that begins here is neither committed nor aborted")
	}
	if at := r.prefix.parts[p].at; at < min(target, stable) {
		r.report.because(SourceNotRead, p, int64(at), -1, fmt.Sprintf("the source below %d could not be read in time", target))
	}
	if r.Live {
		return
	}
	if stored.Ahead(s) {
		r.undecided(p, s)
	} else if s.Owned.Frontier < target {
		r.report.because(SourceNotProcessed, p, int64(s.Owned.Frontier), -1, fmt.Sprintf("the worker has not processed the source up to %d", target))
	}
	if s.Relay == nil || s.Relay.Sequence < s.Owned.Sequence {
		next := int64(0)
		if s.Relay != nil {
			next = int64(s.Relay.Sequence)
		}
		r.report.because(OutboxNotDrained, p, -1, next, fmt.Sprintf("the relay has not published the outbox up to sequence %d", s.Owned.Sequence-1))
	}
	if s.View == nil || s.View.Sequence < s.Owned.Sequence {
		sequence, offset := int64(0), int64(0)
		if s.View != nil {
			sequence, offset = int64(s.View.Sequence), int64(s.View.Output)
		}
		r.report.because(ViewBehind, p, offset, sequence, fmt.Sprintf("the view has not applied the outputs up to sequence %d", s.Owned.Sequence-1))
	}
}
