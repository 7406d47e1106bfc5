package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/store"
)

// Options say how to reach the server. URL is a connection string or URL of PostgreSQL; what it leaves out comes from the
// PG* variables. MaxConns bounds the pool, 16 if 0. AllowFsyncOff is for benchmarks and tests. Terminated, when not nil,
// is told the process id of each backend that a claimant ended because it blocked the claim.
type Options struct {
	URL           string
	Application   string
	MaxConns      int32
	AllowFsyncOff bool
	Terminated    func(pid int32)
}

// DB is a pool of connections to one database. Safe for concurrent use.
type DB struct {
	pool    *pgxpool.Pool
	options Options
	buffers sync.Pool
}

var (
	errPooler      = errors.New("a connection pooler stands in front of PostgreSQL: connect to the server itself")
	errUnsupported = errors.New("unsupported server")
	errNotDurable  = errors.New("fsync is off: what is committed could be lost")
)

// serverKey is where a connection keeps its server's identity.
const serverKey = "amends.server"

// Open connects and checks the server: ErrUnavailable if it is away or a standby; an error for a pooler, a version below
// 15, an encoding other than UTF8, or fsync=off. It writes nothing.
func Open(ctx context.Context, o Options) (*DB, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if o.Application == "" {
		o.Application = "amends"
	}
	db := &DB{options: o}
	db.buffers.New = func() any { return new(writeBuffers) }
	config.MaxConns = max(o.MaxConns, 0)
	if config.MaxConns == 0 {
		config.MaxConns = defaultConns
	}
	prepareConfig(config.ConnConfig, o.Application)
	config.AfterConnect = db.identify
	if db.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := db.ping(ctx); err != nil {
		db.pool.Close()
		return nil, err
	}
	return db, nil
}

// prepareConfig sets what every connection has: limits, durability, and plans that do not depend on the first values seen.
func prepareConfig(c *pgx.ConnConfig, application string) {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	for name, value := range map[string]string{
		"application_name": application, "search_path": "pg_catalog", "TimeZone": "UTC", "DateStyle": "ISO",
		"lock_timeout": ms(LockTimeout), "statement_timeout": ms(StatementTimeout),
		"idle_in_transaction_session_timeout": ms(IdleTimeout), "synchronous_commit": "on",
		// Every statement walks an index: no plan may depend on how large a table was when it was made.
		"plan_cache_mode": "force_generic_plan", "jit": "off", "enable_seqscan": "off", "enable_bitmapscan": "off",
		"enable_hashjoin": "off", "enable_mergejoin": "off",
	} {
		c.RuntimeParams[name] = value
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = OperationTimeout
	}
}

func (db *DB) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	c, err := db.pool.Acquire(ctx)
	if err != nil {
		return before("open database", err)
	}
	c.Release()
	return nil
}

// identify reads the server's identity on a new connection and refuses a server that cannot serve.
func (db *DB) identify(ctx context.Context, c *pgx.Conn) error {
	var (
		standby         bool
		segment, fsync  string
		encoding        string
		system          int64
		pid, version    int32
		timeline        uint64
		identifyFailure error
	)
	err := c.QueryRow(ctx, statement("identify"), pgx.QueryExecModeExec).Scan(&standby, &segment, &system, &pid, &fsync, &version, &encoding)
	switch {
	case err != nil:
		return fmt.Errorf("identify server: %w", err)
	case standby:
		return fmt.Errorf("identify server: it is a standby: %w", store.ErrUnavailable)
	case uint32(pid) != c.PgConn().PID():
		return fmt.Errorf("identify server: %w", errPooler)
	case version < 150000 || encoding != "UTF8":
		return fmt.Errorf("identify server: version %d, encoding %s, needed 15 and UTF8: %w", version/10000, encoding, errUnsupported)
	case fsync != "on" && !db.options.AllowFsyncOff:
		return fmt.Errorf("identify server: %w", errNotDurable)
	}
	if timeline, identifyFailure = strconv.ParseUint(segment[:min(8, len(segment))], 16, 32); identifyFailure != nil {
		return fmt.Errorf("identify server: wal segment %q: %w", segment, errUnsupported)
	}
	c.PgConn().CustomData()[serverKey] = store.Server{System: uint64(system), Timeline: uint32(timeline)}
	return nil
}

// Close ends the pool once its connections are back.
func (db *DB) Close() { db.pool.Close() }

// Server returns the identity of the server that a connection reaches now.
func (db *DB) Server(ctx context.Context) (store.Server, error) {
	s, err := db.acquire(ctx)
	if err != nil {
		return store.Server{}, before("read server identity", err)
	}
	defer s.release()
	return s.server, nil
}
