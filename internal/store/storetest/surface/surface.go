package surface

import (
	"context"
	"testing"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// DB is a store under test.
type DB interface {
	Init(ctx context.Context, cfg *manifest.Config, sourceTopic string) (Namespace, error)
	Namespace(ctx context.Context, cfg *manifest.Config) (Namespace, error)
	GuardSource(ctx context.Context, incarnation string) (Guard, error)
	// Forge puts something into partition 0 of a namespace that no operation would.
	Forge(t testing.TB, namespace string, what Forgery, value int64)
}

// Guard is the loader's guard.
type Guard interface {
	Check(ctx context.Context) error
	Release(ctx context.Context) error
}

// Worker is what a worker does.
type Worker interface {
	Claim(ctx context.Context, p ledger.Partition) (store.Owned, error)
	Observe(ctx context.Context, p ledger.Partition) (store.Owned, error)
	Load(ctx context.Context, t store.Token, p ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error)
	Commit(ctx context.Context, t store.Token, b *ledger.Batch) error
	SaveSnapshots(ctx context.Context, t store.Token, p ledger.Partition, at ledger.Frontier, snapshots []store.KeySnapshot) error
}

// Binder binds.
type Binder interface {
	Bind(ctx context.Context, o manifest.Output) error
	Binding(ctx context.Context) (*manifest.Output, error)
}

// Leaser handles leases.
type Leaser interface {
	AcquireService(ctx context.Context, role store.Role, p ledger.Partition, holder string, ttl time.Duration) (store.Lease, error)
	RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error)
	ReleaseService(ctx context.Context, l store.Lease) error
}

// Relay is what a relay does.
type Relay interface {
	RelayPosition(ctx context.Context, p ledger.Partition) (store.RelayPosition, error)
	LastReceipt(ctx context.Context, p ledger.Partition) (*store.Receipt, error)
	Pending(ctx context.Context, p ledger.Partition, from store.RelayPosition, maxOutputs int) ([]ledger.Decision, error)
	Outbox(ctx context.Context, p ledger.Partition, sequence ledger.Sequence) (*ledger.Decision, error)
	Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error
}

// View is what a view does.
type View interface {
	ViewPosition(ctx context.Context, p ledger.Partition) (store.ViewPosition, error)
	ViewRows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error)
	ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error
}

// Reader is what readers and verifiers do.
type Reader interface {
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
	RecordVerification(ctx context.Context, v store.Verification) error
	LastVerification(ctx context.Context) (*store.Verification, error)
}

// Namespace is one namespace under test.
type Namespace interface {
	Worker
	Binder
	Leaser
	Relay
	View
	Reader
}

// Forgery names a state that only damage or 2^63 operations would bring about.
type Forgery string

// The forgeries. The value is the counter's, or unused.
const (
	Epoch        Forgery = "epoch"
	RelayTerm    Forgery = "relay term"
	ViewTerm     Forgery = "view term"
	NextSequence Forgery = "next sequence"
	Totals       Forgery = "totals" // every cumulative number
	AReceipt     Forgery = "receipt"
	AViewRow     Forgery = "view row"
	AViewError   Forgery = "view error"
	RelayMoved   Forgery = "relay moved"
	ViewMoved    Forgery = "view moved"
)
