package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/verify"
)

// Rebuild reads the complete source of a namespace into a new one with an output topic of its own, through the production
// worker, relay and view, and verifies it (S11). The origin is only read. All but Logger, Bound and Progress are required.
type Rebuild struct {
	Origin      *manifest.Manifest // bound or not
	From        *postgres.Namespace
	DB          *postgres.DB
	Topics      *broker.Admin
	Broker      broker.Options
	Namespace   string // new
	Topic       string // new, its output
	Replication int16  // copies of each partition of the new topic, 1 or more
	// Timeout is the budget of the verification, a load that is waited for included; more than 0.
	Timeout time.Duration
	Logger  *slog.Logger
	// Bound is told the manifest of the new namespace once it is bound, on every run; its error ends the rebuild.
	Bound func(*manifest.Manifest) error
	// Progress is told how far a phase is: source offsets of refold, messages of drain. Total is 0 where nobody knows.
	Progress func(stage string, done, total int64)
}

// Rebuilt is how far a rebuild got.
type Rebuilt struct {
	Manifest *manifest.Manifest // bound once the topic is made
	Record   *store.Rebuild     // as it is now
	Report   *verify.Report     // of this run, nil if it did not get there or the rebuild was done before
	Elapsed  time.Duration
}

// RebuildPlan is what a rebuild has to do, or still has to.
type RebuildPlan struct {
	Plan
	Destination
}

// Plan refuses what a rebuild would refuse, counts what it reads and publishes and estimates how long it takes. It changes
// nothing.
func (r *Rebuild) Plan(ctx context.Context) (*RebuildPlan, error) {
	if _, err := provision.CheckSource(ctx, r.Topics, r.Origin); err != nil {
		return nil, err
	}
	d, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	p := &RebuildPlan{Destination: *d}
	if d.Record != nil && d.Record.Phase == store.RebuildDone {
		return p, nil // nothing is left to read
	}
	stable, err := r.Topics.Stable(ctx, r.Origin.SourceTopic)
	if err != nil {
		return nil, fmt.Errorf("read stable offsets: %w", err)
	}
	ends := make([]ledger.Frontier, len(stable))
	for i, end := range stable {
		ends[i] = ledger.Frontier(end)
		p.Records += int64(end)
	}
	states, err := partitions(ctx, r.From)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		p.Outputs += int64(s.Owned.Sequence)
	}
	rate, err := sample(ctx, r.Broker, r.Origin, ends)
	if err != nil {
		return nil, err
	}
	// The worker reads the source once, a deep verification twice more.
	p.Estimate = 3*lasting(p.Records, rate) + lasting(p.Records, decidedPerSecond) + lasting(p.Outputs, publishedPerSecond)
	return p, nil
}

// Execute goes on from the recorded phase, or begins, and returns how far it got, also with an error. A rebuild whose
// verification is neither PASS nor BLOCKED stays at phase verify and has no error: the report says what is wrong.
func (r *Rebuild) Execute(ctx context.Context) (*Rebuilt, error) {
	began := time.Now()
	out := &Rebuilt{}
	err := r.execute(ctx, out)
	out.Elapsed = time.Since(began)
	return out, err
}

func (r *Rebuild) execute(ctx context.Context, out *Rebuilt) error {
	if _, err := provision.CheckSource(ctx, r.Topics, r.Origin); err != nil {
		return err
	}
	d, err := r.look(ctx)
	if err != nil {
		return err
	}
	out.Manifest, out.Record = d.Manifest, d.Record
	if d.Record == nil {
		if err := r.begin(ctx, out); err != nil {
			return err
		}
	}
	if out.Record.Phase == store.RebuildCreate {
		if err := r.create(ctx, out); err != nil {
			return err
		}
	}
	ns, err := r.DB.Namespace(ctx, out.Manifest.Config)
	if err != nil {
		return err
	}
	if out.Manifest, err = provision.BindOutput(ctx, r.Topics, ns, out.Manifest, *out.Manifest.Output); err != nil {
		return err
	}
	if r.Bound != nil {
		if err := r.Bound(out.Manifest); err != nil {
			return err
		}
	}
	if out.Record.Phase == store.RebuildDone {
		return nil
	}
	if out.Record.Phase == store.RebuildBind {
		if err := r.advance(ctx, out, store.RebuildRefold, ""); err != nil {
			return err
		}
	}
	return r.fill(ctx, ns, out)
}

// begin makes the namespace and the record of its origin.
func (r *Rebuild) begin(ctx context.Context, out *Rebuilt) error {
	cfg := out.Manifest.Config
	return r.settle(ctx, out, func() (bool, error) {
		return r.From.Upkeep().BeginRebuild(ctx, r.Namespace, cfg.Digest(), cfg.Canonical(), r.Topic)
	}, func(b *store.Rebuild) bool { return b.Topic == r.Topic && b.Phase == store.RebuildCreate })
}

// create makes the output topic and records its incarnation. Between the two nobody can tell whose the topic is: a
// rebuild that ends there is refused when it is run again (destination.go).
func (r *Rebuild) create(ctx context.Context, out *Rebuilt) error {
	if out.Record.Topic != r.Topic {
		err := r.settle(ctx, out, func() (bool, error) { return r.From.Upkeep().NameRebuildTopic(ctx, r.Namespace, r.Topic) },
			func(b *store.Rebuild) bool { return b.Topic == r.Topic && b.Phase == store.RebuildCreate })
		if err != nil {
			return err
		}
	}
	cfg := out.Manifest.Config
	topic, err := r.Topics.CreateTopic(ctx, r.Topic, cfg.Partitions, r.Replication)
	switch {
	case errors.Is(err, broker.ErrTopicExists):
		return fmt.Errorf("%w: topic %s exists and is never adopted: %w; choose another -topic", ErrDestination, r.Topic, err)
	case errors.Is(err, broker.ErrUnknownOutcome):
		return r.uncertain(err.Error())
	case err != nil:
		return fmt.Errorf("create output topic %s: %w", r.Topic, err)
	}
	out.Manifest.Output = &manifest.Output{Topic: r.Topic, Incarnation: topic.Incarnation, Partitions: topic.Partitions}
	err = r.settle(ctx, out, func() (bool, error) {
		return r.From.Upkeep().RecordRebuildTopic(ctx, r.Namespace, r.Topic, topic.Incarnation)
	}, func(b *store.Rebuild) bool { return b.Incarnation == topic.Incarnation })
	if err != nil {
		return fmt.Errorf("%w: %w", r.uncertain(fmt.Sprintf("topic %s (%s) was made and could not be recorded", r.Topic, topic.Incarnation)), err)
	}
	return nil
}

// advance records the next phase.
func (r *Rebuild) advance(ctx context.Context, out *Rebuilt, to store.RebuildPhase, status string) error {
	from := out.Record.Phase
	return r.settle(ctx, out, func() (bool, error) { return r.From.Upkeep().AdvanceRebuild(ctx, r.Namespace, from, to, status) },
		func(b *store.Rebuild) bool { return reached(b.Phase, to) })
}

// phases in their order.
var phases = [...]store.RebuildPhase{store.RebuildCreate, store.RebuildBind, store.RebuildRefold, store.RebuildDrain, store.RebuildVerify, store.RebuildDone}

// reached reports whether phase is to or a later one.
func reached(phase, to store.RebuildPhase) bool {
	return slices.Index(phases[:], phase) >= slices.Index(phases[:], to)
}

// settle changes the rebuild's row and reads it back. A change with an unknown outcome is asked for again, which waits for
// the row lock of the first (S12), unless the row holds what was wanted.
func (r *Rebuild) settle(ctx context.Context, out *Rebuilt, change func() (bool, error), wanted func(*store.Rebuild) bool) error {
	return attempts(ctx, func() (bool, error) {
		changed, err := change()
		if err != nil && !errors.Is(err, store.ErrCommitUnknown) && !errors.Is(err, store.ErrUnavailable) {
			return true, err
		}
		record, lookErr := r.outcome(ctx)
		switch {
		case lookErr != nil:
			return false, errors.Join(err, lookErr)
		case record != nil && record.Origin == r.Origin.Config.Namespace && wanted(record):
			out.Record = record
			return true, nil
		case err != nil:
			return false, err
		case record == nil:
			return true, fmt.Errorf("%w: namespace %q was made by somebody else in this moment; choose another -namespace", ErrDestination, r.Namespace)
		case !changed:
			return true, fmt.Errorf("%w: another process moves this rebuild, which is at phase %s now", store.ErrServiceBusy, record.Phase)
		}
		return false, fmt.Errorf("the record of rebuild %s says phase %s, topic %s: %w", r.Namespace, record.Phase, record.Topic, store.ErrIntegrity)
	})
}

// outcome reads the row after a change, also for a moment past the end of ctx: what was committed by then is how far the rebuild got.
func (r *Rebuild) outcome(ctx context.Context) (*store.Rebuild, error) {
	record, _, err := r.record(ctx)
	if err != nil && ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
		record, _, err = r.record(last)
	}
	return record, err
}
