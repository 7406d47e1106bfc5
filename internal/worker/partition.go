package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"amends/internal/broker"
	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/wire"
)

// phase is where a partition stands between two steps; doc.go draws them.
type phase uint8

const (
	fetching phase = iota
	deciding
	committing
	resolving
	claiming
)

// Progress says what a step left to do: nothing ever (Done), or the next step after Wait, 0 for at once; with Idle as soon
// as there are new records, at the latest after Wait.
type Progress struct {
	Wait time.Duration
	Idle bool
	Done bool
}

// shared is what all partitions of a worker have in common.
type shared struct {
	store  Store
	look   func(ctx context.Context) error // nil if the topic was the right one less than LookAge ago
	clock  func() time.Time
	log    *slog.Logger
	ready  *readiness
	cfg    *manifest.Config
	cache  int64 // bytes of key states of one partition
	rows   int64 // of a key that make a snapshot worth writing; 0 for SnapshotRows
	wakeUp func()
}

// Partition turns the records of one owned partition into commits, one step at a time. Offer and Stop may be called
// from any goroutine, everything else belongs to one.
type Partition struct {
	*shared
	decoder *wire.Decoder
	states  *engine.States
	in      *inbox
	stopped chan struct{}
	records []wire.Decoded   // taken from the inbox and not yet acknowledged
	buffer  []wire.Decoded   // the memory of records, used again
	batch   ledger.Batch     // what is being committed
	suspect *ledger.StockKey // whose snapshot is of no use, until it is loaded without
	token   store.Token
	began   time.Time // of the operation in progress; zero for none
	known   time.Time // when the row was last known to be as this worker has it
	at      engine.Position
	next    ledger.Frontier // past records
	last    error           // of the operation in progress
	stop    sync.Once
	id      ledger.Partition
	tries   int // failed attempts of the operation
	waits   int // waits for a service that is away
	phase   phase
	refused bool // the last commit failed: it was not acknowledged and left nothing to resolve
}

func newPartition(s *shared, id ledger.Partition, owned store.Owned, hold func(bool)) *Partition {
	p := &Partition{shared: s, id: id, decoder: wire.NewDecoder(s.cfg), stopped: make(chan struct{}), in: newInbox(owned.Frontier, s.cfg.Partitions, hold)}
	p.own(owned)
	return p
}

// own starts over from the row as read: nothing cached, nothing decided.
func (p *Partition) own(o store.Owned) {
	p.token, p.at = o.Token, engine.Position{Frontier: o.Frontier, Sequence: o.Sequence}
	p.known = p.clock()
	p.drop()
	p.records, p.batch, p.phase, p.refused = nil, ledger.Batch{}, fetching, false
}

// drop forgets every cached state: they are no longer known to be those of the committed frontier.
func (p *Partition) drop() { p.states, p.suspect = engine.NewStates(p.cfg, p.id, p.cache), nil }

// ID returns which partition of the source it is.
func (p *Partition) ID() ledger.Partition { return p.id }

// Offer hands the partition what a poll returned.
func (p *Partition) Offer(f broker.Fetched) error { return p.in.offer(f) }

// Stop makes the partition issue no further commit; the next step that would, or has nothing to do, is Done.
func (p *Partition) Stop() { p.stop.Do(func() { close(p.stopped) }) }

func (p *Partition) stopping() bool {
	select {
	case <-p.stopped:
		return true
	default:
		return false
	}
}

// Step does the next thing. An error ends the partition and the role; doc.go lists them.
func (p *Partition) Step(ctx context.Context) (Progress, error) {
	if p.stopping() && p.phase != resolving {
		return Progress{Done: true}, nil
	}
	if p.began.IsZero() {
		p.began = p.clock()
	}
	op, cancel := context.WithTimeout(ctx, min(OperationTimeout, max(RetryBudget-p.clock().Sub(p.began), time.Millisecond)))
	defer cancel()
	switch p.phase {
	case deciding:
		return p.decide(op)
	case committing:
		return p.commit(op)
	case resolving:
		return p.resolve(op)
	case claiming:
		return p.claim(op)
	}
	return p.fetch(op)
}

// fetch takes the next records from the inbox and decodes them.
func (p *Partition) fetch(ctx context.Context) (Progress, error) {
	records, next, ok := p.in.take()
	if !ok {
		if left := idleLook - p.clock().Sub(p.known); left > 0 {
			p.done()
			p.buffer = nil // what was fetched and decided is not kept for as long as nothing comes
			return Progress{Idle: true, Wait: left}, nil
		}
		return p.review(ctx)
	}
	if next <= p.at.Frontier {
		return Progress{}, nil // already below a frontier that moved further than this worker's last word
	}
	p.records, p.next = p.buffer[:0], next
	for _, r := range records {
		if ledger.Frontier(r.Offset) >= p.at.Frontier {
			p.records = append(p.records, p.decoder.Decode(r))
		}
	}
	p.buffer = p.records
	p.phase = deciding
	return Progress{}, nil
}

// decide turns the records into a batch, once the states that they need are loaded.
func (p *Partition) decide(ctx context.Context) (Progress, error) {
	if keys := p.states.Missing(p.records); len(keys) > 0 {
		if progress, all, err := p.load(ctx, keys); err != nil || !all {
			return progress, err
		}
	}
	batch, err := engine.Step(p.states, p.at, p.records, p.next)
	if err != nil {
		p.drop()
		if errors.Is(err, engine.ErrExhausted) {
			return Progress{}, fmt.Errorf("decide partition %d from offset %d: %w: %w", p.id, p.at.Frontier, store.ErrExhausted, err)
		}
		return Progress{}, fmt.Errorf("decide partition %d from offset %d: %w: %w", p.id, p.at.Frontier, ErrIntegrity, err)
	}
	p.batch, p.phase = batch, committing
	return Progress{}, nil
}

// load restores the states of keys, or of as many as one load gives; the next step goes on then. A snapshot is an accelerator,
// never an authority: a key whose state does not come out of it is loaded again from all its decisions.
func (p *Partition) load(ctx context.Context, keys []ledger.StockKey) (_ Progress, all bool, _ error) {
	missing, whole := len(keys), p.suspect != nil
	if whole {
		keys = []ledger.StockKey{*p.suspect}
	}
	histories, err := p.store.Load(ctx, p.token, p.id, keys, whole)
	if err != nil {
		progress, err := p.retry(fmt.Errorf("load keys of partition %d: %w", p.id, err))
		return progress, false, err
	}
	p.suspect = nil
	for i := range histories {
		h := &histories[i]
		err := p.states.Restore(h.Key, h.KeyID, h.Known, h.Snapshot, h.Decisions)
		switch {
		case err != nil && h.Snapshot != nil:
			p.log.Warn("snapshot of no use, loading every decision of its key", "namespace", p.cfg.Namespace, "partition", p.id,
				"item", h.Key.Item, "location", h.Key.Location, "error", err)
			p.suspect = &h.Key
			return Progress{}, false, nil
		case err != nil:
			return Progress{}, false, fmt.Errorf("restore key %q %q of partition %d: %w: %w", h.Key.Item, h.Key.Location, p.id, ErrIntegrity, err)
		}
	}
	if all = len(histories) == missing; !all && p.tries == 0 {
		p.done() // what is loaded stays, so the next load is an operation of its own
	}
	return Progress{}, all, nil
}

// commit sends the batch once, under a fresh look at the topic.
func (p *Partition) commit(ctx context.Context) (Progress, error) {
	if err := p.look(ctx); err != nil {
		if stopsTopic(err) {
			return Progress{}, fmt.Errorf("commit partition %d: %w", p.id, err)
		}
		return p.wait("broker", err), nil
	}
	sent := p.clock()
	err := p.store.Commit(ctx, p.token, &p.batch)
	p.attempt(p.clock().Sub(sent), err)
	switch classify(err) {
	case acknowledged:
		return p.acknowledge(ctx)
	case unknown:
		p.drop()
		p.last, p.phase = err, resolving
		return Progress{}, nil
	}
	p.drop()
	p.phase, p.refused = deciding, true
	return p.retry(fmt.Errorf("commit partition %d offsets %d..%d: %w", p.id, p.batch.Expected, p.batch.Next, err))
}

// acknowledge moves on after a commit that is known to be durable.
func (p *Partition) acknowledge(ctx context.Context) (Progress, error) {
	p.at = engine.Position{Frontier: p.batch.Next, Sequence: p.batch.NextSequence}
	p.known = p.clock()
	p.records = p.records[len(p.batch.Decisions):]
	p.batch = ledger.Batch{}
	p.phase, p.refused = fetching, false
	if p.at.Frontier < p.next {
		p.phase = deciding // the engine ended the batch early
	} else {
		p.records = nil
	}
	p.done()
	return p.save(ctx)
}

// save writes the snapshots that are due: an accelerator, so a failure other than a lost ownership costs nothing.
func (p *Partition) save(ctx context.Context) (Progress, error) {
	due := p.states.Snapshots(cmp.Or(p.rows, SnapshotRows))
	if len(due) == 0 {
		return Progress{}, nil
	}
	snapshots := make([]store.KeySnapshot, len(due))
	for i, s := range due {
		snapshots[i] = store.KeySnapshot{KeyID: s.KeyID, State: s.State, Rows: s.Rows, Frontier: p.at.Frontier}
	}
	err := p.store.SaveSnapshots(ctx, p.token, p.id, p.at.Frontier, snapshots)
	switch classify(err) {
	case acknowledged:
		return Progress{}, nil
	case fenced:
		return Progress{}, fmt.Errorf("save snapshots of partition %d: %w", p.id, err)
	}
	p.log.Warn("snapshots not saved", "namespace", p.cfg.Namespace, "partition", p.id, "keys", len(snapshots), "error", err)
	return Progress{}, nil
}

// attempt writes the one line of each commit that was tried.
func (p *Partition) attempt(elapsed time.Duration, err error) {
	at, result := slog.LevelInfo, outcomeNames[classify(err)]
	attrs := []slog.Attr{
		slog.String("namespace", p.cfg.Namespace), slog.Int("partition", int(p.id)),
		slog.Int64("first_offset", int64(p.batch.Expected)), slog.Int64("next_offset", int64(p.batch.Next)),
		slog.Int("records", len(p.batch.Decisions)), slog.Int64("outputs", int64(p.batch.NextSequence-p.batch.FirstSequence)),
		slog.Int64("epoch", int64(p.token.Epoch)), slog.Int64("storage_call_elapsed_ns", elapsed.Nanoseconds()), slog.String("outcome", result),
	}
	if err != nil {
		at, attrs = slog.LevelWarn, append(attrs, slog.String("error", err.Error()))
	}
	p.log.LogAttrs(context.Background(), at, "commit attempt", attrs...)
}
