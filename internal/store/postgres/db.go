package postgres

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"sync"

	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/store/postgres/schema"
	"amends/internal/store/postgres/session"
	"amends/internal/store/postgres/upkeep"
)

// Every statement is a file; its name is the prepared statement's name.
//
//go:embed sql/*.sql
var sqlFiles embed.FS

// BlockedAfter is how long a claimant waits for a row before it ends the backend that blocks it.
const BlockedAfter = session.BlockedAfter

// Options say how to reach the server. URL is a connection string or URL of PostgreSQL; what it leaves out comes from the
// PG* variables. Credentials, when not nil, returns the URL as it is now: each new connection takes user and password from it,
// so that they can be rotated under a running process. MaxConns bounds the pool, 16 if 0. AllowFsyncOff is for benchmarks and
// tests. Terminated, when not nil, is told the process id of each backend that a claimant ended because it blocked the claim.
type Options struct {
	URL           string
	Credentials   func() (string, error)
	Application   string
	MaxConns      int32
	AllowFsyncOff bool
	Terminated    func(pid int32)
}

// DB is a pool of connections to one database, and one more that renews leases. Safe for concurrent use.
type DB struct {
	pool    *session.Pool
	leases  *session.Pool // the one connection that renews
	options Options
	buffers sync.Pool
}

// Open connects and checks the server: ErrUnavailable if it is away or a standby; an error for a pooler, a version below
// 15, an encoding other than UTF8, or fsync=off. It writes nothing.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Application == "" {
		o.Application = "amends"
	}
	pool, err := session.Open(ctx, session.Config{Statements: []fs.ReadFileFS{sqlFiles, reader.Statements, upkeep.Statements}, URL: o.URL, Credentials: o.Credentials, Application: o.Application,
		MaxConns: o.MaxConns, AllowFsyncOff: o.AllowFsyncOff})
	if err != nil {
		return nil, err
	}
	leases, err := pool.Beside(ctx, o.Application+" leases", 1)
	if err != nil {
		pool.Close()
		return nil, err
	}
	db := &DB{pool: pool, leases: leases, options: o}
	db.buffers.New = func() any { return new(writeBuffers) }
	return db, nil
}

// Close ends the pools once their connections are back.
func (db *DB) Close() {
	db.leases.Close()
	db.pool.Close()
}

// Server returns the identity of the server that a connection reaches now: one that is open proves nothing before it has been
// asked, and where it has ended another is opened. It is the connection that renews leases, as the renewals ask for it: however
// busy the pool is, no lease expires for it.
func (db *DB) Server(ctx context.Context) (server store.Server, err error) {
	for range 2 {
		err = db.leases.Read(ctx, "read server identity", func(ctx context.Context, s *session.Session) error {
			server = s.Server()
			return s.Ping(ctx)
		})
		if !errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	return server, err
}

// Migrate applies the missing migrations in one transaction, one process at a time. ErrSchema, naming each difference, if
// what is applied is not a prefix of this binary's migrations with the same checksums; nothing changes then.
func (db *DB) Migrate(ctx context.Context) error { return schema.Migrate(ctx, db.pool) }

// MigrationStatus returns every migration that this binary or the database has, in order. It writes nothing; a database
// without the schema has none applied.
func (db *DB) MigrationStatus(ctx context.Context) ([]store.Migration, error) {
	return schema.Status(ctx, db.pool)
}

// MigrationPlan returns the missing migrations in the order in which Migrate applies them, with what each does to the tables
// that are there: ErrSchema where Migrate would refuse. It writes nothing.
func (db *DB) MigrationPlan(ctx context.Context) ([]store.MigrationStep, error) {
	return schema.Plan(ctx, db.pool)
}

// CheckSchema succeeds if exactly this binary's migrations are applied: ErrNoSchema, or ErrSchema naming each difference.
// It writes nothing.
func (db *DB) CheckSchema(ctx context.Context) error { return schema.Check(ctx, db.pool) }
