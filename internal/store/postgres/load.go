package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// Load returns the histories of the first of keys, in the order asked: as many as store.LoadRows and store.LoadChanges allow,
// at least one. A history is the key's snapshot, unless whole leaves it out, and its decisions from the snapshot's frontier
// on. It takes no lock: what a commit under the caller's token relies on cannot change without that commit being fenced.
// ErrServerChanged if the connection reaches another server than the token's, whose histories may be others.
func (n *Namespace) Load(ctx context.Context, t store.Token, p ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	l := loader{n: n, p: p, histories: make([]store.KeyHistory, len(keys)), from: make([]int64, len(keys)), sizes: make([]int64, len(keys)), whole: whole}
	for i, k := range keys {
		l.histories[i].Key = k
	}
	err := n.db.pool.Read(ctx, fmt.Sprintf("load %d keys of partition %d", len(keys), p), func(ctx context.Context, s *session.Session) error {
		if s.Server() != t.Server {
			return store.ErrServerChanged
		}
		l.s = s
		if err := l.loadKeys(ctx); err != nil {
			return err
		}
		if err := l.loadSnapshots(ctx); err != nil {
			return err
		}
		return l.loadDecisions(ctx)
	})
	if err != nil {
		return nil, err
	}
	return l.histories, nil
}

// loader reads the histories of one call.
type loader struct {
	n         *Namespace
	s         *session.Session
	histories []store.KeyHistory // cut to those that are complete
	from      []int64            // the source offset from which each key's decisions are needed
	sizes     []int64            // of the snapshots, in bytes
	reader    row.Decisions
	p         ledger.Partition
	whole     bool
}

// loadKeys fills in ids, and where each key's snapshot ends.
func (l *loader) loadKeys(ctx context.Context) error {
	items, locations := session.NewBytes(len(l.histories)), session.NewBytes(len(l.histories))
	for i := range l.histories {
		items.Text(l.histories[i].Key.Item)
		locations.Text(l.histories[i].Key.Location)
	}
	return l.s.Stream(ctx, "load_keys", func(v [][]byte) error {
		i := session.ReadInt64(v[0]) - 1
		h := &l.histories[i]
		h.KeyID, h.Known = ledger.KeyID(session.ReadInt64(v[1])), true
		if v[2] != nil && !l.whole {
			l.from[i], l.sizes[i] = session.ReadInt64(v[2]), session.ReadInt64(v[3])
		}
		return nil
	}, session.Int32Param(l.n.id), session.Int32Param(int32(l.p)), items.Param(), locations.Param())
}

// loadSnapshots reads the snapshots of as many keys as store.LoadBytes allow and leaves the rest to another call.
func (l *loader) loadSnapshots(ctx context.Context) error {
	ids, at := session.NewInt64s(len(l.histories)), map[ledger.KeyID]int{}
	total := int64(0)
	for i := range l.histories {
		if total += l.sizes[i]; total > store.LoadBytes && i > 0 {
			l.histories = l.histories[:i]
			break
		}
		if l.from[i] > 0 {
			ids.Int64(int64(l.histories[i].KeyID))
			at[l.histories[i].KeyID] = i
		}
	}
	if len(at) == 0 {
		return nil
	}
	return l.s.Stream(ctx, "load_snapshots", func(v [][]byte) error {
		i := at[ledger.KeyID(session.ReadInt64(v[0]))]
		// A snapshot that was replaced since only begins later.
		l.histories[i].Snapshot, l.from[i] = bytes.Clone(v[2]), session.ReadInt64(v[1])
		return nil
	}, session.Int32Param(l.n.id), session.Int32Param(int32(l.p)), ids.Param())
}

// errEnough ends a read that holds as many changes as it may.
var errEnough = errors.New("enough")

// loadDecisions reads the journal rows of the known keys, key after key, a bounded number in a statement.
func (l *loader) loadDecisions(ctx context.Context) error {
	ids, frontiers := session.NewInt64s(len(l.histories)), session.NewInt64s(len(l.histories))
	var order []int
	for i := range l.histories {
		if l.histories[i].Known {
			ids.Int64(int64(l.histories[i].KeyID))
			frontiers.Int64(l.from[i])
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return nil
	}
	at, rows, changes := 0, 0, 0
	err := l.s.Stream(ctx, "load_journal", func(v [][]byte) error {
		for at < len(order) && int64(l.histories[order[at]].KeyID) != session.ReadInt64(v[row.KeyID]) {
			at++
		}
		if at == len(order) {
			return fmt.Errorf("journal rows out of order at offset %d: %w", session.ReadInt64(v[row.Offset]), store.ErrIntegrity)
		}
		if rows++; changes > store.LoadChanges && at > 0 {
			return errEnough
		}
		d, err := l.add(order[at], v)
		if err == nil {
			changes += len(d.Changes)
		}
		return err
	}, session.Int32Param(l.n.id), session.Int32Param(int32(l.p)), ids.Param(), frontiers.Param(), session.Int64Param(store.LoadRows))
	switch {
	case errors.Is(err, errEnough):
	case err != nil || rows < store.LoadRows:
		return err
	case at == 0:
		if err := l.loadRest(ctx, order[0]); err != nil {
			return err
		}
		at = 1
	}
	if at < len(order) {
		l.histories = l.histories[:order[at]] // what was read of this key is left to another call, with those after it
	}
	return nil
}

// loadRest reads on where one key alone has more rows than a statement reads.
func (l *loader) loadRest(ctx context.Context, i int) error {
	h := &l.histories[i]
	for {
		ids, frontiers, rows := session.NewInt64s(1), session.NewInt64s(1), 0
		ids.Int64(int64(h.KeyID))
		frontiers.Int64(int64(h.Decisions[len(h.Decisions)-1].Offset) + 1)
		err := l.s.Stream(ctx, "load_journal", func(v [][]byte) error {
			rows++
			_, err := l.add(i, v)
			return err
		}, session.Int32Param(l.n.id), session.Int32Param(int32(l.p)), ids.Param(), frontiers.Param(), session.Int64Param(store.LoadRows))
		if err != nil || rows < store.LoadRows {
			return err
		}
	}
}

// add reads a row into a key's history.
func (l *loader) add(i int, v [][]byte) (*ledger.Decision, error) {
	h := &l.histories[i]
	h.Decisions = append(h.Decisions, ledger.Decision{})
	d := &h.Decisions[len(h.Decisions)-1]
	d.Assertion.Key = h.Key
	return d, l.reader.Read(v, d)
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
