package worker

import (
	"context"
	"log/slog"
	"time"

	"amends/internal/ledger"
	"amends/internal/store"
)

// Drive is who calls the steps of a Lifecycle's partitions, and what waits and time are to it. Run drives them with a
// goroutine each and the machine's clock; a simulation drives them by hand. AtOnce and SnapshotRows may be 0.
type Drive struct {
	Start func(*Partition)             // begins to call Step
	Stop  func(ps []*Partition)        // stops them all and returns when no step runs any more
	Fail  func(error)                  // ends the role
	Hold  func(ledger.Partition, bool) // makes the source stop or go on fetching a partition
	Wake  func()                       // a partition claimed again and waits for a seek
	Clock func() time.Time
	Pause func(ctx context.Context, d time.Duration) error
	// AtOnce is how many claims, or rows read back, a callback has in progress at the same time; 0 for one after the other.
	AtOnce int
	// SnapshotRows is how many rows of a key make a snapshot worth writing; 0 for the default.
	SnapshotRows int64
}

// NewLifecycle returns the group member of a worker that d drives. It reads nothing before the group assigns; it neither
// joins the group, as Run does with Options.Join, nor looks at the topic between commits. ctx is the role's.
func NewLifecycle(ctx context.Context, o *Options, d *Drive) *Lifecycle {
	l, _ := newLifecycle(ctx, o, d)
	return l
}

func newLifecycle(ctx context.Context, o *Options, d *Drive) (*Lifecycle, *identity) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	cfg := o.Manifest.Config
	cache := o.CacheBytes
	if cache == 0 {
		cache = CacheBytes
	}
	id := &identity{topics: o.Topics, clock: d.Clock, topic: o.Manifest.SourceTopic, incarnation: cfg.SourceIncarnation, partitions: cfg.Partitions, looking: newGate()}
	s := &shared{store: o.Store, cfg: cfg, log: log, clock: d.Clock, ready: newReadiness(log, o.Ready), look: id.check, wakeUp: d.Wake,
		cache: max(cache/int64(cfg.Partitions), min(cache, cachePartition)), rows: d.SnapshotRows}
	return &Lifecycle{shared: s, ctx: ctx, start: d.Start, stop: d.Stop, fail: d.Fail, pause: d.Pause, hold: d.Hold, atOnce: d.AtOnce, mu: newGate(),
		claimed: map[ledger.Partition]store.Owned{}, failed: map[ledger.Partition]error{}, running: map[ledger.Partition]*Partition{}}, id
}
