package postgres

import (
	"bytes"
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// Load returns the history of each key in the order asked: its snapshot, and its decisions from the snapshot's frontier
// on. It takes no lock: what a commit under the caller's token relies on cannot change without that commit being fenced.
func (n *Namespace) Load(ctx context.Context, p ledger.Partition, keys []ledger.StockKey) ([]store.KeyHistory, error) {
	histories := make([]store.KeyHistory, len(keys))
	for i, k := range keys {
		histories[i].Key = k
	}
	if len(keys) == 0 {
		return histories, nil
	}
	err := n.db.pool.Read(ctx, fmt.Sprintf("load %d keys of partition %d", len(keys), p), func(ctx context.Context, s *session.Session) error {
		from, err := n.loadKeys(ctx, s, p, histories)
		if err != nil {
			return err
		}
		return n.loadDecisions(ctx, s, p, histories, from)
	})
	if err != nil {
		return nil, err
	}
	return histories, nil
}

// loadKeys fills in ids and snapshots and returns the frontier from which each key's decisions are needed.
func (n *Namespace) loadKeys(ctx context.Context, s *session.Session, p ledger.Partition, histories []store.KeyHistory) ([]int64, error) {
	items, locations := session.NewBytes(len(histories)), session.NewBytes(len(histories))
	for i := range histories {
		items.Text(histories[i].Key.Item)
		locations.Text(histories[i].Key.Location)
	}
	from := make([]int64, len(histories))
	err := s.Stream(ctx, "load_keys", func(v [][]byte) error {
		i := session.ReadInt64(v[0]) - 1
		h := &histories[i]
		h.KeyID, h.Known = ledger.KeyID(session.ReadInt64(v[1])), true
		from[i] = session.ReadInt64(v[2])
		h.Snapshot = bytes.Clone(v[3])
		return nil
	}, session.Int32Param(n.id), session.Int32Param(int32(p)), items.Param(), locations.Param())
	return from, err
}

// loadDecisions reads the journal rows of all known keys, key after key.
func (n *Namespace) loadDecisions(ctx context.Context, s *session.Session, p ledger.Partition, histories []store.KeyHistory, from []int64) error {
	ids, frontiers := session.NewInt64s(len(histories)), session.NewInt64s(len(histories))
	var order []int
	for i := range histories {
		if histories[i].Known {
			ids.Int64(int64(histories[i].KeyID))
			frontiers.Int64(from[i])
			order = append(order, i)
		}
	}
	var r row.Decisions
	at := 0
	return s.Stream(ctx, "load_journal", func(v [][]byte) error {
		for at < len(order) && int64(histories[order[at]].KeyID) != session.ReadInt64(v[row.KeyID]) {
			at++
		}
		if at == len(order) {
			return fmt.Errorf("journal rows out of order at offset %d: %w", session.ReadInt64(v[row.Offset]), store.ErrIntegrity)
		}
		h := &histories[order[at]]
		h.Decisions = append(h.Decisions, ledger.Decision{})
		d := &h.Decisions[len(h.Decisions)-1]
		d.Assertion.Key = h.Key
		return r.Read(v, d)
	}, session.Int32Param(n.id), session.Int32Param(int32(p)), ids.Param(), frontiers.Param())
}

// SaveSnapshots stores encoded key states as of committed frontiers, fenced like a commit at frontier at: an accelerator
// only (design, storage). ErrProtocol for a snapshot beyond at or of an unknown key.
func (n *Namespace) SaveSnapshots(ctx context.Context, t store.Token, p ledger.Partition, at ledger.Frontier, snapshots []store.KeySnapshot) error {
	ids, frontiers, rows, states := session.NewInt64s(len(snapshots)), session.NewInt64s(len(snapshots)), session.NewInt64s(len(snapshots)), session.NewBytes(len(snapshots))
	for _, k := range snapshots {
		if k.Frontier < 0 || k.Frontier > at || k.Rows < 0 {
			return fmt.Errorf("save snapshots: key %d at %d beyond %d: %w", k.KeyID, k.Frontier, at, store.ErrProtocol)
		}
		ids.Int64(int64(k.KeyID))
		frontiers.Int64(int64(k.Frontier))
		rows.Int64(k.Rows)
		states.Bytes(k.State)
	}
	return n.db.pool.Transact(ctx, fmt.Sprintf("save %d snapshots of partition %d", len(snapshots), p), func(ctx context.Context, s *session.Session) error {
		if s.Server() != t.Server {
			return store.ErrServerChanged
		}
		var o store.Owned
		if err := n.readOwned(ctx, s, p, &o); err != nil {
			return err
		}
		if o.Token != t || o.Frontier != at {
			return fmt.Errorf("epoch %d, frontier %d: %w", t.Epoch, at, store.ErrFence)
		}
		saved, err := s.ExecBinary(ctx, "save_snapshots", session.Int32Param(n.id), session.Int32Param(int32(p)),
			ids.Param(), frontiers.Param(), rows.Param(), states.Param())
		if err == nil && saved != int64(len(snapshots)) {
			err = fmt.Errorf("%d of %d keys are known: %w", saved, len(snapshots), store.ErrProtocol)
		}
		return err
	})
}
