package bench

import (
	"context"

	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/wire"
	"amends/internal/worker"
)

// lane is a worker's partition without a broker: it decodes, loads, decides, commits and saves what it is given.
type lane struct {
	ns      *postgres.Namespace
	token   store.Token
	decoder *wire.Decoder
	states  *engine.States
	decoded []wire.Decoded
	at      engine.Position
	outputs int64
	p       ledger.Partition
}

// newLane claims a partition.
func newLane(ctx context.Context, ns *postgres.Namespace, cfg *manifest.Config, p ledger.Partition) (*lane, error) {
	owned, err := ns.Claim(ctx, p)
	if err != nil {
		return nil, err
	}
	return &lane{ns: ns, p: p, token: owned.Token, decoder: wire.NewDecoder(cfg), states: engine.NewStates(cfg, p, 1<<40),
		at: engine.Position{Frontier: owned.Frontier, Sequence: owned.Sequence}}, nil
}

// commit decides records, which follow the partition's frontier, and commits them batch by batch.
func (l *lane) commit(ctx context.Context, recs []ledger.SourceRecord) error {
	for len(recs) > 0 {
		l.decoded = l.decoded[:0]
		for _, r := range recs[:min(worker.BatchRecords, len(recs))] {
			l.decoded = append(l.decoded, l.decoder.Decode(r))
		}
		if err := l.load(ctx); err != nil {
			return err
		}
		b, err := engine.Step(l.states, l.at, l.decoded, ledger.Frontier(l.decoded[len(l.decoded)-1].Record.Offset)+1)
		if err != nil {
			return err
		}
		if err := l.ns.Commit(ctx, l.token, &b); err != nil {
			return err
		}
		l.at = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
		l.outputs += int64(b.NextSequence - b.FirstSequence)
		recs = recs[len(b.Decisions):]
		if err := l.save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load restores the states that the decoded records need and that are not in memory.
func (l *lane) load(ctx context.Context) error {
	for {
		keys := l.states.Missing(l.decoded)
		if len(keys) == 0 {
			return nil
		}
		histories, err := l.ns.Load(ctx, l.token, l.p, keys, false)
		if err != nil {
			return err
		}
		for i := range histories {
			h := &histories[i]
			if err := l.states.Restore(h.Key, h.KeyID, h.Known, h.Snapshot, h.Decisions); err != nil {
				return err
			}
		}
	}
}

// save writes the snapshots that are due, as a worker does after a commit.
func (l *lane) save(ctx context.Context) error {
	due := l.states.Snapshots(worker.SnapshotRows)
	if len(due) == 0 {
		return nil
	}
	snapshots := make([]store.KeySnapshot, len(due))
	for i, s := range due {
		snapshots[i] = store.KeySnapshot{KeyID: s.KeyID, State: s.State, Rows: s.Rows, Frontier: l.at.Frontier}
	}
	return l.ns.SaveSnapshots(ctx, l.token, l.p, l.at.Frontier, snapshots)
}
