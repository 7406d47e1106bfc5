package worker

import (
	"context"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// Store is what a worker needs of a namespace; store/postgres and store/memory have it.
type Store interface {
	// Claim installs the next epoch of a partition with a new nonce and returns the row.
	Claim(ctx context.Context, p ledger.Partition) (store.Owned, error)
	// Observe reads the row under its lock, with the identity of the server asked.
	Observe(ctx context.Context, p ledger.Partition) (store.Owned, error)
	// Load returns the histories of the first of keys, at least one, in the order asked; whole leaves snapshots out. It
	// fails with store.ErrServerChanged where the server asked is not the token's.
	Load(ctx context.Context, t store.Token, p ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error)
	// Commit applies one batch under a token: all of it or nothing, or store.ErrCommitUnknown.
	Commit(ctx context.Context, t store.Token, b *ledger.Batch) error
	// SaveSnapshots stores encoded key states as of committed frontiers.
	SaveSnapshots(ctx context.Context, t store.Token, p ledger.Partition, at ledger.Frontier, snapshots []store.KeySnapshot) error
}

// Source is a member of the source group; broker.Group is one.
type Source interface {
	Poll(ctx context.Context) ([]broker.Fetched, error)
	AllowRebalance()
	Seek(p ledger.Partition, at ledger.Frontier)
	Hold(p ledger.Partition, held bool)
	Close(ctx context.Context)
}

// Topics looks at topics on a client of its own; broker.Admin does.
type Topics interface {
	Topic(ctx context.Context, name string) (broker.Topic, error)
}
