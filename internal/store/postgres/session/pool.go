package session

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/invariant"
	"amends/internal/store"
)

// Config says how to reach the server. URL is a connection string or URL of PostgreSQL; what it leaves out comes from the
// PG* variables. Credentials, when not nil, returns the URL as it is now: each new connection takes user and password from it.
// MaxConns bounds the pool, 16 if 0. AllowFsyncOff is for benchmarks and tests. One of Statements holds the file sql/NAME.sql
// of a named statement.
type Config struct {
	Statements    []fs.ReadFileFS
	Credentials   func() (string, error)
	URL           string
	Application   string
	MaxConns      int32
	AllowFsyncOff bool
}

// Pool is a bounded number of connections to one database. Safe for concurrent use.
type Pool struct {
	pool        *pgxpool.Pool
	credentials *credentials
	config      Config
}

//go:embed begin.sql durable.sql identify.sql holders.sql
var own embed.FS

var (
	errPooler      = errors.New("a connection pooler stands in front of PostgreSQL: connect to the server itself")
	errUnsupported = errors.New("unsupported server")
	errNotDurable  = errors.New("fsync is off: what is committed could be lost")
)

// serverKey is where a connection keeps its server's identity.
const serverKey = "amends.server"

// Open connects and checks the server: ErrUnavailable if it is away or a standby; an error for a pooler, a version below
// 15, an encoding other than UTF8, or fsync=off. It writes nothing.
func Open(ctx context.Context, c Config) (*Pool, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("open database: %w: %w", store.ErrAddress, err)
	}
	p := &Pool{config: c, credentials: &credentials{url: c.Credentials}}
	config.MaxConns = c.MaxConns
	if config.MaxConns <= 0 {
		config.MaxConns = defaultConns
	}
	prepareConfig(config.ConnConfig, c.Application)
	config.BeforeConnect = p.credentials.refresh
	config.AfterConnect = p.identify
	if p.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := p.Read(ctx, "open database", func(context.Context, *Session) error { return nil }); err != nil {
		p.pool.Close()
		return nil, err
	}
	return p, nil
}

// Beside returns another pool of at most conns connections to the same server, for work that must not wait behind that of
// the first. It connects when it is first used.
func (p *Pool) Beside(ctx context.Context, application string, conns int32) (*Pool, error) {
	config := p.pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = application
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return &Pool{pool: pool, config: p.config, credentials: p.credentials}, nil
}

// Close ends the pool once its connections are back.
func (p *Pool) Close() { p.pool.Close() }

// Dial opens one connection outside the pool, checked like any; it is never opened again behind the caller's back.
func (p *Pool) Dial(ctx context.Context, application string) (*pgx.Conn, error) {
	config := p.pool.Config().ConnConfig
	config.RuntimeParams["application_name"] = application
	if err := p.credentials.refresh(ctx, config); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err := p.credentials.judge(err); err != nil {
		return nil, err
	}
	if err := p.identify(ctx, conn); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTimeout)
		defer cancel()
		return nil, errors.Join(err, conn.Close(closing))
	}
	return conn, nil
}

// Statement returns the text of a named statement.
func (p *Pool) Statement(name string) string {
	return text("sql/"+name+".sql", p.config.Statements...)
}

// text returns the file of that path from the first that has it.
func text(path string, from ...fs.ReadFileFS) string {
	for _, files := range from {
		if b, err := files.ReadFile(path); err == nil {
			return string(b)
		}
	}
	invariant.That(false, "every statement named in the code is a file: "+path)
	return ""
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

// identify reads the server's identity on a new connection and refuses a server that cannot serve. It has a deadline of its
// own: the pool opens connections under none, and one that never answers would keep its place for ever.
func (p *Pool) identify(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, StatementTimeout)
	defer cancel()
	var (
		standby         bool
		segment, fsync  string
		encoding        string
		system          int64
		pid, version    int32
		timeline        uint64
		identifyFailure error
	)
	err := c.QueryRow(ctx, text("identify.sql", own), pgx.QueryExecModeExec).Scan(&standby, &segment, &system, &pid, &fsync, &version, &encoding)
	switch {
	case err != nil:
		return fmt.Errorf("identify server: %w", err)
	case standby:
		return fmt.Errorf("identify server: it is a standby: %w", store.ErrUnavailable)
	case uint32(pid) != c.PgConn().PID():
		return fmt.Errorf("identify server: %w", errPooler)
	case version < 150000 || encoding != "UTF8":
		return fmt.Errorf("identify server: version %d, encoding %s, needed 15 and UTF8: %w", version/10000, encoding, errUnsupported)
	case fsync != "on" && !p.config.AllowFsyncOff:
		return fmt.Errorf("identify server: %w", errNotDurable)
	}
	if timeline, identifyFailure = strconv.ParseUint(segment[:min(8, len(segment))], 16, 32); identifyFailure != nil {
		return fmt.Errorf("identify server: wal segment %q: %w", segment, errUnsupported)
	}
	c.PgConn().CustomData()[serverKey] = store.Server{System: uint64(system), Timeline: uint32(timeline)}
	return nil
}
