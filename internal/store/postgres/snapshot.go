package postgres

import (
	"context"

	"amends/internal/store"
	"amends/internal/store/postgres/reader"
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
