package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"amends/internal/ledger"
	"amends/internal/store"
)

// Snapshot calls fn with one consistent state: nothing that happens later shows in it.
func (n *Namespace) Snapshot(_ context.Context, fn func(store.Snapshot) error) error {
	n.db.mu.Lock()
	s := n.copy()
	n.db.mu.Unlock()
	return fn(s)
}

// snapshot is a deep copy of what readers see.
type snapshot struct {
	states     []store.PartitionState
	rows       [][]store.ViewRow
	journal    [][]ledger.Decision
	receipts   [][]store.Receipt
	violations []store.Violation
}

func (n *Namespace) copy() *snapshot {
	c := &snapshot{}
	for p, s := range n.s.partitions {
		state := store.PartitionState{Partition: ledger.Partition(p), Owned: n.owned(s), Rejected: s.measurements.Total.Work.Rejected, Measurements: s.measurements.Clone()}
		if s.relay != nil {
			relay, view := *s.relay, *s.view
			state.Relay, state.View = &relay, &view
		}
		c.states = append(c.states, state)
		rows := make([]store.ViewRow, 0, len(s.rows))
		for _, r := range s.rows {
			rows = append(rows, store.CloneRow(r))
		}
		slices.SortFunc(rows, compareRows)
		c.rows = append(c.rows, rows)
		journal := make([]ledger.Decision, len(s.journal))
		for i := range s.journal {
			journal[i] = store.CloneDecision(&s.journal[i])
		}
		c.journal = append(c.journal, journal)
		c.receipts = append(c.receipts, slices.Clone(s.receipts))
		for _, v := range s.violations {
			c.violations = append(c.violations, store.CloneViolation(v))
		}
	}
	return c
}

// compareRows orders rows by item bytes, location bytes, status last, day, kind.
func compareRows(a, b store.ViewRow) int {
	status := func(r store.ViewRow) int {
		if r.ID.Kind == ledger.TrustStatus {
			return 1
		}
		return 0
	}
	return cmp.Or(a.ID.Key.Compare(b.ID.Key), status(a)-status(b), cmp.Compare(a.ID.Day, b.ID.Day), cmp.Compare(a.ID.Kind, b.ID.Kind))
}

func (s *snapshot) Partitions(context.Context) ([]store.PartitionState, error) { return s.states, nil }

func (s *snapshot) Violations(context.Context) ([]store.Violation, error) { return s.violations, nil }

func (s *snapshot) Receipts(_ context.Context, p ledger.Partition) ([]store.Receipt, error) {
	if err := s.check(p); err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	return s.receipts[p], nil
}

func (s *snapshot) ViewRows(ctx context.Context, p ledger.Partition, fn func(store.ViewRow) error) error {
	if err := s.check(p); err != nil {
		return fmt.Errorf("read view rows: %w", err)
	}
	for _, r := range s.rows[p] {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read view rows: %w", err)
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshot) Journal(ctx context.Context, p ledger.Partition, fn func(*ledger.Decision) error) error {
	if err := s.check(p); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	for i := range s.journal[p] {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		if err := fn(&s.journal[p][i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *snapshot) check(p ledger.Partition) error {
	if p < 0 || int(p) >= len(s.states) {
		return fmt.Errorf("partition %d of %d: %w", p, len(s.states), store.ErrProtocol)
	}
	return nil
}

// RecordVerification keeps a finished verification (S10) and sets its Finished time. An audit's cycle is left out where the newest
// verification is one that says the same and is younger than store.SameAuditEvery.
func (n *Namespace) RecordVerification(_ context.Context, v store.Verification) error {
	if !store.ValidStatus(v.Status) {
		return fmt.Errorf("record verification: status %q: %w", v.Status, store.ErrProtocol)
	}
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	v.Finished, v.Detail = n.db.now(), store.PlainText(v.Detail)
	v.Boundary = slices.Clone(v.Boundary)
	if at := len(n.s.verifications) - 1; at >= 0 {
		if last := &n.s.verifications[at]; v.Same(last) && v.Finished.Sub(last.Finished) < store.SameAuditEvery {
			return nil
		}
	}
	n.s.verifications = append(n.s.verifications, v)
	return nil
}

// LastVerification returns the verification recorded last, nil if there is none.
func (n *Namespace) LastVerification(context.Context) (*store.Verification, error) {
	n.db.mu.Lock()
	defer n.db.mu.Unlock()
	if len(n.s.verifications) == 0 {
		return nil, nil
	}
	v := n.s.verifications[len(n.s.verifications)-1]
	v.Boundary = slices.Clone(v.Boundary)
	return &v, nil
}
