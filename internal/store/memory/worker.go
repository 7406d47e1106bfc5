package memory

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// Namespace is one namespace's operations (S1). Safe for concurrent use.
type Namespace struct {
	db *DB
	s  *space
}

// Config returns the configuration the namespace was opened with.
func (n *Namespace) Config() *manifest.Config { return n.s.cfg }

// partition returns the partition's state; the caller holds the mutex.
func (n *Namespace) partition(p ledger.Partition) (*partition, error) {
	if p < 0 || int(p) >= len(n.s.partitions) {
		return nil, fmt.Errorf("partition %d of %d: %w", p, len(n.s.partitions), store.ErrProtocol)
	}
	return n.s.partitions[p], nil
}

// Claim installs the next epoch with a new nonce and returns the row as it is now. ErrExhausted at epoch 2^63-1.
func (n *Namespace) Claim(_ context.Context, p ledger.Partition) (store.Owned, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return store.Owned{}, fmt.Errorf("claim partition: %w", err)
	}
	if s.owned.Token.Epoch == math.MaxInt64 {
		return store.Owned{}, fmt.Errorf("claim partition %d: epoch: %w", p, store.ErrExhausted)
	}
	s.owned.Token.Epoch++
	s.owned.Token.Nonce = n.db.newNonce()
	return n.owned(s), nil
}

// Observe returns the partition row under its lock, with the identity of the server that was asked (S12).
func (n *Namespace) Observe(_ context.Context, p ledger.Partition) (store.Owned, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return store.Owned{}, fmt.Errorf("observe partition: %w", err)
	}
	return n.owned(s), nil
}

func (n *Namespace) owned(s *partition) store.Owned {
	o := s.owned
	o.Token.Server = n.db.server
	return o
}

// fence compares the token and the expected frontier with the installed ones.
func (n *Namespace) fence(s *partition, t store.Token, expected ledger.Frontier) error {
	switch {
	case t.Server != n.db.server:
		return store.ErrServerChanged
	case t.Epoch != s.owned.Token.Epoch || t.Nonce != s.owned.Token.Nonce || expected != s.owned.Frontier:
		return store.ErrFence
	}
	return nil
}

// Load returns the histories of the first of keys, in the order asked: as many as store.LoadRows and the other limits beside
// it allow, at least one. A history is the key's snapshot, unless whole leaves it out, and its decisions from the snapshot's
// frontier on. ErrServerChanged if the server is another one than the token's.
func (n *Namespace) Load(_ context.Context, t store.Token, p ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err == nil && t.Server != n.db.server {
		err = store.ErrServerChanged
	}
	if err != nil {
		return nil, fmt.Errorf("load keys: %w", err)
	}
	var histories []store.KeyHistory
	rows, changes, size := 0, 0, 0
	for i, k := range keys {
		h := s.history(k, whole)
		rows, size = rows+len(h.Decisions), size+len(h.Snapshot)
		for d := range h.Decisions {
			changes += len(h.Decisions[d].Changes)
		}
		if i > 0 && (rows >= store.LoadRows || changes > store.LoadChanges || size > store.LoadBytes) {
			break
		}
		histories = append(histories, h)
	}
	return histories, nil
}

// history returns what rebuilds one key.
func (s *partition) history(k ledger.StockKey, whole bool) store.KeyHistory {
	h := store.KeyHistory{Key: k}
	if h.KeyID, h.Known = s.keys[k]; !h.Known {
		return h
	}
	from := ledger.Frontier(0)
	if snapshot, ok := s.snapshots[h.KeyID]; ok && !whole {
		h.Snapshot, from = bytes.Clone(snapshot.State), snapshot.Frontier
	}
	for _, at := range s.byKey[h.KeyID] {
		if d := &s.journal[at]; ledger.Frontier(d.Offset) >= from {
			h.Decisions = append(h.Decisions, store.CloneDecision(d))
		}
	}
	return h
}

// Commit applies one batch (S8): ErrFence unless the token and the expected frontier are the installed ones,
// ErrServerChanged if the server is another one. A batch without decisions moves the frontier only (S13).
func (n *Namespace) Commit(_ context.Context, t store.Token, b *ledger.Batch) error {
	began := time.Now()
	if err := store.CheckBatch(b); err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	waited := time.Since(began)
	s, err := n.partition(b.Partition)
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	if err := n.fence(s, t, b.Expected); err != nil {
		return fmt.Errorf("commit batch: partition %d: %w", b.Partition, err)
	}
	if b.FirstSequence != s.owned.Sequence {
		return fmt.Errorf("commit batch: first sequence %d, stored %d: %w", b.FirstSequence, s.owned.Sequence, store.ErrFence)
	}
	if err := s.newKeysFit(b); err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	s.append(b)
	s.owned.Frontier, s.owned.Sequence = b.Next, b.NextSequence
	if len(b.Decisions) > 0 {
		s.measurements.Add(store.Sample{Work: b.Work, Lock: int64(waited), PreCommit: int64(time.Since(began))})
	}
	return nil
}

func (s *partition) newKeysFit(b *ledger.Batch) error {
	seen := map[ledger.StockKey]bool{}
	for i := range b.Decisions {
		d := &b.Decisions[i]
		if !d.NewKey {
			continue
		}
		if _, known := s.keys[d.Assertion.Key]; known || seen[d.Assertion.Key] {
			return fmt.Errorf("offset %d: the key exists: %w", d.Offset, store.ErrIntegrity)
		}
		seen[d.Assertion.Key] = true
	}
	return nil
}

func (s *partition) append(b *ledger.Batch) {
	for i := range b.Decisions {
		d := store.CloneDecision(&b.Decisions[i])
		if d.NewKey {
			s.keys[d.Assertion.Key] = d.KeyID
		}
		if d.Rejection == 0 {
			s.byKey[d.KeyID] = append(s.byKey[d.KeyID], len(s.journal))
		}
		s.journal = append(s.journal, d)
		s.ends = append(s.ends, s.lastEnd()+ledger.Sequence(len(d.Changes)))
	}
}

// SaveSnapshots stores encoded key states as of committed frontiers, fenced like a commit: an accelerator only (design 4).
func (n *Namespace) SaveSnapshots(_ context.Context, t store.Token, p ledger.Partition, at ledger.Frontier, snapshots []store.KeySnapshot) error {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return fmt.Errorf("save snapshots: %w", err)
	}
	if err := n.fence(s, t, at); err != nil {
		return fmt.Errorf("save snapshots: partition %d: %w", p, err)
	}
	for _, k := range snapshots {
		if k.Frontier < 0 || k.Frontier > at || k.Rows < 0 || len(s.byKey[k.KeyID]) == 0 {
			return fmt.Errorf("save snapshots: key %d at %d beyond %d: %w", k.KeyID, k.Frontier, at, store.ErrProtocol)
		}
	}
	for _, k := range snapshots {
		k.State = bytes.Clone(k.State)
		s.snapshots[k.KeyID] = k
	}
	return nil
}

// holding returns the index of the decision that holds a sequence, len(journal) if none does.
func (s *partition) holding(sequence ledger.Sequence) int {
	at, _ := slices.BinarySearchFunc(s.ends, sequence, func(end, want ledger.Sequence) int {
		if end <= want {
			return -1
		}
		return 1
	})
	return at
}

func (s *partition) lastEnd() ledger.Sequence {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}
