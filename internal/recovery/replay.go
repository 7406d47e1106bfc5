package recovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
)

// ErrHistory: the source cannot be read as a whole, which waiting does not mend (exit 11).
var ErrHistory = errors.New("the source's history cannot be read")

// Fault says how a record of the source is not what is recorded of it. The names are stable.
type Fault string

// The faults.
const (
	Missing Fault = "MISSING" // the source holds a record that is not recorded
	Extra   Fault = "EXTRA"   // recorded, but the source holds no such record below the frontier
	Other   Fault = "DIGEST"  // recorded with another digest of raw key and value
)

// MaxFaults bounds the faults that a replay names; all are counted.
const MaxFaults = 20

// Found is one fault at its coordinates.
type Found struct {
	Fault     Fault
	Offset    ledger.Offset
	Partition ledger.Partition
}

// Position is a partition as a replay found it, and the epoch that it installed, 0 for none.
type Position struct {
	Partition ledger.Partition
	Frontier  ledger.Frontier
	Sequence  ledger.Sequence
	Epoch     ledger.Epoch
	Installed ledger.Epoch
	Records   int64 // of the source below the frontier, as read
}

// Replay compares the source below each frontier with what is recorded (S11). All but Progress are required.
type Replay struct {
	Manifest  *manifest.Manifest
	Namespace *postgres.Namespace
	Topics    *broker.Admin
	Broker    broker.Options
	// Progress is told how many source offsets are read, of stage replay; it may be nil.
	Progress func(stage string, done, total int64)
}

// Replayed is what a replay found.
type Replayed struct {
	Positions []Position
	Faults    []Found // the first MaxFaults, by partition and offset
	Records   int64   // source records read
	Differing int64   // faults in all
	Elapsed   time.Duration
}

// Plan counts what a replay reads: source offsets below the frontiers, the outputs decided from them, and how long it may
// take at the rate of a short reading. It changes nothing.
func (r *Replay) Plan(ctx context.Context) (*Plan, error) {
	if _, err := provision.CheckSource(ctx, r.Topics, r.Manifest); err != nil {
		return nil, err
	}
	p := &Plan{}
	states, err := partitions(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	ends := make([]ledger.Frontier, len(states))
	for i, s := range states {
		ends[i] = s.Owned.Frontier
		p.Records += int64(s.Owned.Frontier)
		p.Outputs += int64(s.Owned.Sequence)
	}
	rate, err := sample(ctx, r.Broker, r.Manifest, ends)
	if err != nil {
		return nil, err
	}
	p.Estimate = lasting(p.Records, rate)
	return p, nil
}

// Scan reads the source below each frontier beside what is recorded and returns every difference, counted. It changes
// nothing and takes the memory of a page of the source.
func (r *Replay) Scan(ctx context.Context) (*Replayed, error) {
	began := time.Now()
	o := r.Broker
	o.FetchBytes, o.FetchPartitionBytes = replayFetch, replayFetch
	source, err := broker.NewReader(o, r.Manifest.SourceTopic, r.Manifest.Config.SourceIncarnation)
	if err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	defer source.Close()
	states, err := partitions(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	s := &scan{Replayed: &Replayed{}, source: source, progress: r.Progress}
	for _, state := range states {
		s.total += int64(state.Owned.Frontier)
	}
	for _, state := range states {
		err := r.Namespace.Look(ctx, func(x *reader.Snapshot) error { return s.partition(ctx, x, state.Partition) })
		if err != nil {
			return nil, err
		}
	}
	if _, err := provision.CheckSource(ctx, r.Topics, r.Manifest); err != nil {
		return nil, err
	}
	s.Elapsed = time.Since(began)
	return s.Replayed, nil
}

// scan is the state of one reading.
type scan struct {
	*Replayed
	source   *broker.Reader
	progress func(stage string, done, total int64)
	total    int64
	done     int64 // offsets of the partitions before
}

// partition compares one partition in one snapshot, from its frontier in that snapshot.
func (s *scan) partition(ctx context.Context, x *reader.Snapshot, p ledger.Partition) error {
	states, err := x.Partitions(ctx)
	if err != nil {
		return err
	}
	owned := states[p].Owned
	at := Position{Partition: p, Frontier: owned.Frontier, Sequence: owned.Sequence, Epoch: owned.Token.Epoch}
	var failed error
	next, stop := iter.Pull(sourceRecords(ctx, s.source.ReadTo, p, owned.Frontier, &failed))
	defer stop()
	record, more := next()
	advance := func() {
		at.Records++
		if s.progress != nil && at.Records%progressEvery == 0 {
			s.progress(stageReplay, s.done+int64(record.Offset), s.total)
		}
		record, more = next()
	}
	err = x.Recorded(ctx, p, func(offset ledger.Offset, digest ledger.RecordDigest) error {
		for more && record.Offset < offset {
			s.found(Missing, p, record.Offset)
			advance()
		}
		switch {
		case failed != nil:
			return failed
		case !more || record.Offset > offset:
			s.found(Extra, p, offset)
			return nil
		case wire.Digest(record.Key, record.Value) != digest:
			s.found(Other, p, offset)
		}
		advance()
		return nil
	})
	for err == nil && more {
		s.found(Missing, p, record.Offset)
		advance()
	}
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	s.done += int64(owned.Frontier)
	if s.progress != nil {
		s.progress(stageReplay, s.done, s.total)
	}
	s.Records += at.Records
	s.Positions = append(s.Positions, at)
	return nil
}

func (s *scan) found(f Fault, p ledger.Partition, at ledger.Offset) {
	s.Differing++
	if len(s.Faults) < MaxFaults {
		s.Faults = append(s.Faults, Found{Fault: f, Partition: p, Offset: at})
	}
}

// errEnough ends a reading whose reader takes no more.
var errEnough = errors.New("enough")

// readTo is broker.Reader.ReadTo.
type readTo func(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error)

// sourceRecords yields the visible records of a partition below end; failed is set before it ends early. The broker gives the
// next record within readPatience, however long the reader looks at one.
func sourceRecords(ctx context.Context, read readTo, p ledger.Partition, end ledger.Frontier, failed *error) iter.Seq[ledger.SourceRecord] {
	return func(yield func(ledger.SourceRecord) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silent := time.AfterFunc(readPatience, func() {
			cancel(fmt.Errorf("%w: nothing was read for %v", broker.ErrUnavailable, readPatience))
		})
		defer silent.Stop()
		at, err := read(ctx, p, 0, end, func(r ledger.SourceRecord) error {
			silent.Stop()
			defer silent.Reset(readPatience)
			if !yield(r) {
				return errEnough
			}
			return nil
		})
		switch {
		case err == nil || errors.Is(err, errEnough):
			return
		case errors.Is(err, context.Canceled):
			err = context.Cause(ctx)
		case errors.Is(err, broker.ErrUnreadable):
			err = fmt.Errorf("%w: %w", ErrHistory, err)
		}
		*failed = fmt.Errorf("read source partition %d at offset %d: %w", p, at, err)
	}
}

// Install claims every partition: a higher epoch with a new nonce, and nothing else (S11). A running worker is fenced by
// it. It fills in what was installed, also when a later partition fails: an extra epoch is harmless.
func (r *Replay) Install(ctx context.Context, found *Replayed) error {
	for i := range found.Positions {
		at := &found.Positions[i]
		owned, err := r.claim(ctx, at.Partition)
		if err != nil {
			return err
		}
		at.Installed = owned.Token.Epoch
	}
	return nil
}

// claim claims one partition. After an unknown outcome the row says whether the claim is there (S12).
func (r *Replay) claim(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	var mine store.Owned
	err := attempts(ctx, func() (bool, error) {
		owned, err := r.Namespace.Claim(ctx, p)
		mine = owned
		if err == nil || !errors.Is(err, store.ErrCommitUnknown) {
			return true, err
		}
		now, lookErr := r.Namespace.Observe(ctx, p)
		if lookErr == nil && now.Token == owned.Token {
			return true, nil
		}
		return false, errors.Join(err, lookErr)
	})
	return mine, err
}

// partitions reads every partition's state in a snapshot of its own.
func partitions(ctx context.Context, ns *postgres.Namespace) (states []store.PartitionState, err error) {
	err = ns.Look(ctx, func(s *reader.Snapshot) error {
		states, err = s.Partitions(ctx)
		return err
	})
	if err == nil && len(states) != int(ns.Config().Partitions) {
		err = fmt.Errorf("read partitions: %w: %d rows for %d partitions", store.ErrIntegrity, len(states), ns.Config().Partitions)
	}
	return states, err
}
