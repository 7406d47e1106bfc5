package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/report"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/verify"
)

// Waiting for the roles of a rebuild. A killed rebuild leaves a member behind, which the group of the next one waits for: a session
// until it counts as dead, or a rebalance timeout where it was killed while it joined. A rebuild that was killed again while it
// waited leaves another, for which the group waits after the first: two such generations are outlasted, with one to spare.
const (
	lookEvery  = 100 * time.Millisecond
	stallAfter = 3 * generation // without any movement
	generation = broker.RebalanceTimeout + broker.SessionTimeout

	_ = uint(stallAfter - 2*generation - broker.RebalanceTimeout) // does not compile otherwise
)

// StalledError says that nothing moved any more: it is safe to run the rebuild again (exit 1).
type StalledError struct {
	State store.PartitionState // of the first partition that is behind
	Phase store.RebuildPhase
	End   ledger.Frontier // of its source, as wanted
}

// Error names the partition and how far it is.
func (e *StalledError) Error() string {
	done, of := delivered(&e.State, 0)
	return fmt.Sprintf("nothing moved for %v in phase %s: partition %d has decided up to %d of %d source offsets, and %d of its %d messages are in the view with their receipts",
		stallAfter, e.Phase, e.State.Partition, e.State.Owned.Frontier, e.End, done, of)
}

// fill runs the roles until the source as it is now is read, published and in the view, and verifies it.
func (r *Rebuild) fill(ctx context.Context, ns *postgres.Namespace, out *Rebuilt) error {
	stable, err := r.Topics.Stable(ctx, r.Origin.SourceTopic)
	if err != nil {
		return fmt.Errorf("read stable offsets: %w", err)
	}
	marks := make([]ledger.Frontier, len(stable))
	for p, end := range stable {
		marks[p] = ledger.Frontier(end)
	}
	return r.beside(ctx, ns, out.Manifest, func(ctx context.Context) error {
		w := &waiting{Rebuild: r, marks: marks, look: func(ctx context.Context) ([]store.PartitionState, error) { return partitions(ctx, ns) }}
		if err := w.until(ctx, store.RebuildRefold, decided); err != nil {
			return err
		}
		if !reached(out.Record.Phase, store.RebuildDrain) {
			if err := r.advance(ctx, out, store.RebuildDrain, ""); err != nil {
				return err
			}
		}
		if err := w.until(ctx, store.RebuildDrain, delivered); err != nil {
			return err
		}
		if !reached(out.Record.Phase, store.RebuildVerify) {
			if err := r.advance(ctx, out, store.RebuildVerify, ""); err != nil {
				return err
			}
		}
		return r.prove(ctx, ns, out)
	})
}

// beside runs work while the production roles run, and drains them after it. A role that ends by itself ends the work.
func (r *Rebuild) beside(ctx context.Context, ns *postgres.Namespace, m *manifest.Manifest, work func(context.Context) error) error {
	running, drain := context.WithCancel(ctx)
	defer drain()
	inner, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() {
		err := roles.Run(running, roles.Options{Manifest: m, Namespace: ns, Topics: r.Topics, Broker: r.Broker, Server: r.DB.Server,
			Holder: lease.Holder(), Logger: r.Logger, Roles: roles.All()})
		if running.Err() == nil {
			if err == nil {
				err = errors.New("the roles ended by themselves")
			}
			end(fmt.Errorf("rebuild %s: %w", r.Namespace, err))
		}
		ended <- err
	}()
	err := work(inner)
	if cause := context.Cause(inner); err != nil && cause != nil {
		err = cause // of the role that ended, or of who cancelled
	}
	drain()
	<-ended
	return err
}

// waiting looks at the new namespace until its roles are where they should be.
type waiting struct {
	*Rebuild
	look  func(context.Context) ([]store.PartitionState, error)
	marks []ledger.Frontier
}

// stage measures one partition: how much is done of how much.
type stage func(s *store.PartitionState, mark ledger.Frontier) (done, total int64)

// decided counts source offsets.
func decided(s *store.PartitionState, mark ledger.Frontier) (done, total int64) {
	return int64(min(s.Owned.Frontier, mark)), int64(mark)
}

// delivered counts messages that are in the view and have their receipt, of those decided so far. A view may be ahead of
// the receipts: it reads what the topic holds.
func delivered(s *store.PartitionState, _ ledger.Frontier) (done, total int64) {
	if s.View != nil && s.Relay != nil {
		done = int64(min(s.View.Sequence, s.Relay.Sequence))
	}
	return done, int64(s.Owned.Sequence)
}

// until waits until a stage is complete for every partition. It fails with *StalledError once nothing has moved for
// stallAfter, with store.ErrUnavailable where the database is away then, and with store.ErrProtocol where the view has stopped.
func (w *waiting) until(ctx context.Context, phase store.RebuildPhase, measure stage) error {
	var last int64 = -1
	moved := time.Now()
	for {
		states, err := w.look(ctx)
		switch stalled := time.Since(moved) > stallAfter; {
		case errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil && !stalled:
		case err != nil:
			return err
		default:
			behind, movement, err := w.measure(states, phase, measure)
			if behind == nil || err != nil {
				return err
			}
			if movement != last {
				last, moved = movement, time.Now()
			} else if stalled {
				return &StalledError{State: *behind, Phase: phase, End: w.marks[behind.Partition]}
			}
		}
		if pause.For(ctx, lookEvery) != nil {
			return context.Cause(ctx)
		}
	}
}

// measure returns the first partition that is behind, nil for none, and a number that changes with any movement.
func (w *waiting) measure(states []store.PartitionState, phase store.RebuildPhase, measure stage) (behind *store.PartitionState, movement int64, err error) {
	var done, total int64
	for p := range states {
		s := &states[p]
		if s.View != nil && s.View.Stopped {
			return nil, 0, fmt.Errorf("rebuild %s: partition %d of the view has stopped at output offset %d: %w", w.Namespace, p, s.View.Output, store.ErrProtocol)
		}
		d, t := measure(s, w.marks[p])
		done, total = done+d, total+t
		if d < t && behind == nil {
			behind = s
		}
		moved, of := delivered(s, 0)
		movement += int64(s.Owned.Frontier) + moved + of
	}
	if w.Progress != nil {
		w.Progress(string(phase), done, total)
	}
	return behind, movement, nil
}

// prove verifies the new namespace, quiesced and deep, and ends the rebuild where that is PASS or BLOCKED.
func (r *Rebuild) prove(ctx context.Context, ns *postgres.Namespace, out *Rebuilt) error {
	if r.Progress != nil {
		r.Progress(string(store.RebuildVerify), 0, 0)
	}
	began := time.Now()
	job := r.verification(ns, out.Manifest)
	rep, err := job.Run(ctx)
	if err != nil {
		return fmt.Errorf("verify rebuild %s: %w", r.Namespace, err)
	}
	out.Report = rep
	if err := ns.RecordVerification(ctx, report.Verification(rep, out.Manifest.Config.QuantityScale, began)); err != nil {
		return err
	}
	if rep.Status != verify.Pass && rep.Status != verify.Blocked {
		return nil
	}
	return r.advance(ctx, out, store.RebuildDone, string(rep.Status))
}

func (r *Rebuild) verification(ns *postgres.Namespace, m *manifest.Manifest) *verify.Job {
	open := func(topic, incarnation string) func() (verify.Reader, error) {
		return func() (verify.Reader, error) { return broker.NewReader(r.Broker, topic, incarnation) }
	}
	return &verify.Job{Manifest: m, Topics: r.Topics, Store: ns, Timeout: r.Timeout, Deep: true,
		Source: open(m.SourceTopic, m.Config.SourceIncarnation), Output: open(m.Output.Topic, m.Output.Incarnation),
		Guard: func(ctx context.Context) (verify.Guard, error) {
			g, err := r.DB.GuardSource(ctx, m.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		}}
}
