package memory

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// ViewPosition returns the view position row under its lock: ErrBinding before the binding.
func (n *Namespace) ViewPosition(_ context.Context, p ledger.Partition) (store.ViewPosition, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.bound(p)
	if err != nil {
		return store.ViewPosition{}, fmt.Errorf("read view position: %w", err)
	}
	return *s.view, nil
}

// ViewRows returns the stored rows among ids; absent ones are left out.
func (n *Namespace) ViewRows(_ context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.partition(p)
	if err != nil {
		return nil, fmt.Errorf("read view rows: %w", err)
	}
	rows := make(map[ledger.OutputID]store.ViewRow, len(ids))
	for _, id := range ids {
		if r, ok := s.rows[id]; ok {
			rows[id] = store.CloneRow(r)
		}
	}
	return rows, nil
}

// ApplyViewInput commits one page: rows, position and a violation together (S9). ErrFence unless term, nonce and position
// are the stored ones; ErrProtocol if a row's stored version is not the one given; nothing is written then.
func (n *Namespace) ApplyViewInput(_ context.Context, l store.Lease, page *store.ViewPage) error {
	if err := store.CheckPage(page); err != nil {
		return fmt.Errorf("apply view input: %w", err)
	}
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	s, err := n.bound(page.Partition)
	if err != nil {
		return fmt.Errorf("apply view input: %w", err)
	}
	want := page.Before
	want.Term, want.Nonce = l.Term, l.Nonce
	if l.Role != store.View || l.Partition != page.Partition || *s.view != want {
		return fmt.Errorf("apply view input: partition %d term %d: %w", page.Partition, l.Term, store.ErrFence)
	}
	seen := make(map[ledger.OutputID]bool, len(page.Changes))
	for i := range page.Changes {
		c := &page.Changes[i]
		if s.rows[c.Row.ID].Version != c.Before || seen[c.Row.ID] {
			return fmt.Errorf("apply view input: sequence %d: stored version %d, expected %d: %w",
				c.Row.Sequence, s.rows[c.Row.ID].Version, c.Before, store.ErrProtocol)
		}
		seen[c.Row.ID] = true
	}
	for i := range page.Changes {
		s.rows[page.Changes[i].Row.ID] = store.CloneRow(page.Changes[i].Row)
	}
	if page.Stop != nil {
		v := store.CloneViolation(*page.Stop)
		v.Reason = store.PlainText(v.Reason)
		s.violations = append(s.violations, v)
	}
	next := page.Next
	next.Term, next.Nonce = l.Term, l.Nonce
	*s.view = next
	return nil
}
