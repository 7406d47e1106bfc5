package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// DB holds namespaces. All methods are safe for concurrent use.
type DB struct {
	mu         sync.Mutex
	now        func() time.Time
	namespaces map[string]*space
	guards     map[string]*Guard
	server     store.Server
	nonces     uint64
}

// New returns an empty store whose leases expire by the machine's clock.
func New() *DB { return NewWithClock(time.Now) }

// NewWithClock returns an empty store whose leases expire by now. Nothing but leases and verifications reads it.
func NewWithClock(now func() time.Time) *DB {
	return &DB{now: now, namespaces: map[string]*space{}, guards: map[string]*Guard{}, server: store.Server{System: 1, Timeline: 1}}
}

// Close ends nothing: what is stored stays readable through the same DB.
func (db *DB) Close() {}

// Promote gives the server another timeline, as a failover that lost nothing does: older tokens get ErrServerChanged.
func (db *DB) Promote() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.server.Timeline++
}

// Server returns the server identity that a new token carries.
func (db *DB) Server(context.Context) (store.Server, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.server, nil
}

// Migrate does nothing: there is no schema.
func (db *DB) Migrate(context.Context) error { return nil }

// CheckSchema always succeeds.
func (db *DB) CheckSchema(context.Context) error { return nil }

// MigrationStatus returns no migrations.
func (db *DB) MigrationStatus(context.Context) ([]store.Migration, error) { return nil, nil }

// Init creates the namespace of cfg unless it exists, and returns it. An existing one is left as it is: ErrConfig if its
// configuration or source topic differs, ErrBindRefused if the source is another namespace's output (S2, S9).
func (db *DB) Init(_ context.Context, cfg *manifest.Config, sourceTopic string) (*Namespace, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if s := db.namespaces[cfg.Namespace]; s != nil {
		if s.topic != sourceTopic {
			return nil, fmt.Errorf("initialise namespace %q: source topic stored %q, given %q: %w", cfg.Namespace, s.topic, sourceTopic, store.ErrConfig)
		}
		return db.existing(cfg)
	}
	for name, s := range db.namespaces {
		if s.output != nil && s.output.Incarnation == cfg.SourceIncarnation {
			return nil, fmt.Errorf("initialise namespace %q: its source is the output of %q: %w", cfg.Namespace, name, store.ErrBindRefused)
		}
	}
	db.namespaces[cfg.Namespace] = newSpace(cfg, sourceTopic)
	return db.existing(cfg)
}

// Namespace returns the existing namespace of cfg: ErrNoNamespace, or ErrConfig if its configuration differs (S2).
func (db *DB) Namespace(_ context.Context, cfg *manifest.Config) (*Namespace, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.existing(cfg)
}

func (db *DB) existing(cfg *manifest.Config) (*Namespace, error) {
	s := db.namespaces[cfg.Namespace]
	if s == nil {
		return nil, fmt.Errorf("open namespace %q: %w", cfg.Namespace, store.ErrNoNamespace)
	}
	if s.cfg.Digest() != cfg.Digest() {
		return nil, fmt.Errorf("open namespace %q: %s: %w", cfg.Namespace, strings.Join(manifest.Differences(s.cfg, cfg), "; "), store.ErrConfig)
	}
	return &Namespace{db: db, s: s}, nil
}

// newNonce returns a nonce that no other claim of this DB had. Order, not chance, makes it unique, so that simulations replay.
func (db *DB) newNonce() store.Nonce {
	db.nonces++
	n := store.Nonce{15: 1}
	for i := range 8 {
		n[i] = byte(db.nonces >> (8 * i))
	}
	return n
}

// Guard is the loader's guard over one source incarnation (S1).
type Guard struct {
	db          *DB
	incarnation string
}

// GuardSource takes the loader's guard of a source incarnation: ErrServiceBusy while another holds it.
func (db *DB) GuardSource(_ context.Context, incarnation string) (*Guard, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.guards[incarnation] != nil {
		return nil, fmt.Errorf("guard source %s: %w", incarnation, store.ErrServiceBusy)
	}
	g := &Guard{db: db, incarnation: incarnation}
	db.guards[incarnation] = g
	return g, nil
}

// Check reports whether the guard is still held: ErrFence if not.
func (g *Guard) Check(context.Context) error {
	g.db.mu.Lock()
	defer g.db.mu.Unlock()
	if g.db.guards[g.incarnation] != g {
		return fmt.Errorf("check guard of %s: %w", g.incarnation, store.ErrFence)
	}
	return nil
}

// Release gives the guard up; releasing again does nothing.
func (g *Guard) Release(context.Context) error {
	g.db.mu.Lock()
	defer g.db.mu.Unlock()
	if g.db.guards[g.incarnation] == g {
		delete(g.db.guards, g.incarnation)
	}
	return nil
}

// space is one namespace's state.
type space struct {
	cfg           *manifest.Config
	output        *manifest.Output
	topic         string
	partitions    []*partition
	verifications []store.Verification
}

type leaseRow struct {
	expires time.Time
	holder  string
	term    int64
}

// partition is everything of one partition: the journal in offset order and, beside it, the sequence after each decision's last output.
type partition struct {
	relay        *store.RelayPosition
	view         *store.ViewPosition
	keys         map[ledger.StockKey]ledger.KeyID
	byKey        map[ledger.KeyID][]int
	snapshots    map[ledger.KeyID]store.KeySnapshot
	rows         map[ledger.OutputID]store.ViewRow
	leases       map[store.Role]*leaseRow
	journal      []ledger.Decision
	ends         []ledger.Sequence
	receipts     []store.Receipt
	violations   []store.Violation
	measurements store.Measurements
	owned        store.Owned
}

func newSpace(cfg *manifest.Config, topic string) *space {
	s := &space{cfg: cfg, topic: topic}
	for range cfg.Partitions {
		s.partitions = append(s.partitions, &partition{
			keys: map[ledger.StockKey]ledger.KeyID{}, byKey: map[ledger.KeyID][]int{},
			snapshots: map[ledger.KeyID]store.KeySnapshot{}, rows: map[ledger.OutputID]store.ViewRow{},
			leases: map[store.Role]*leaseRow{},
		})
	}
	return s
}
