package postgres

import (
	"context"

	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/store/postgres/upkeep"
)

// Snapshot calls fn with one consistent state, a transaction that is read only and repeatable. It is bounded by ctx
// alone; fn must not read again while a row function runs.
func (n *Namespace) Snapshot(ctx context.Context, fn func(store.Snapshot) error) error {
	return n.Look(ctx, func(s *reader.Snapshot) error { return fn(s) })
}

// Look is Snapshot with everything that there is to read.
func (n *Namespace) Look(ctx context.Context, fn func(*reader.Snapshot) error) error {
	return reader.Look(ctx, n.db.pool, n.id, fn)
}

// Upkeep returns the writes beside the data path.
func (n *Namespace) Upkeep() *upkeep.Upkeep { return upkeep.New(n.db.pool, n.id) }
