package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/store"
)

// Session is one connection taken from the pool for one operation, by one goroutine.
type Session struct {
	pooled *pgxpool.Conn
	conn   *pgx.Conn
	pg     *pgconn.PgConn
	own    *Pool
	server store.Server
	broken bool
	sent   []Result
}

// Acquire takes a connection. The caller releases it.
func (p *Pool) Acquire(ctx context.Context) (*Session, error) {
	c, err := p.pool.Acquire(ctx)
	if err := p.credentials.judge(err); err != nil {
		return nil, err
	}
	server, _ := c.Conn().PgConn().CustomData()[serverKey].(store.Server)
	return &Session{own: p, pooled: c, conn: c.Conn(), pg: c.Conn().PgConn(), server: server}, nil
}

// Release gives the connection back, or closes it: one that broke, or that is not idle and cannot be rolled back.
func (s *Session) Release() {
	if s.pooled == nil {
		return
	}
	c := s.pooled
	s.pooled = nil
	if !s.broken && s.pg.TxStatus() != 'I' && !s.pg.IsBusy() && !s.pg.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), CleanupTimeout)
		_, err := s.pg.Exec(ctx, "ROLLBACK").ReadAll()
		s.broken = err != nil
		cancel()
	}
	if !s.broken {
		c.Release()
		return
	}
	conn := c.Hijack()
	conn.PgConn().Conn().Close()
	ctx, cancel := context.WithTimeout(context.Background(), CleanupTimeout)
	defer cancel()
	conn.Close(ctx)
}

// Prepare makes the named statements on this connection; each costs a round trip the first time only.
func (s *Session) Prepare(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := s.conn.Prepare(ctx, name, s.own.Statement(name)); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	return nil
}

// Query runs a named statement.
func (s *Session) Query(ctx context.Context, name string, args ...any) (pgx.Rows, error) {
	if err := s.Prepare(ctx, name); err != nil {
		return nil, err
	}
	return s.conn.Query(ctx, name, args...)
}

// QueryRow runs a named statement and scans its one row into dst: pgx.ErrNoRows if there is none.
func (s *Session) QueryRow(ctx context.Context, dst []any, name string, args ...any) error {
	if err := s.Prepare(ctx, name); err != nil {
		return err
	}
	return s.naming(ctx, func() error { return s.conn.QueryRow(ctx, name, args...).Scan(dst...) })
}

// Exec runs a named statement and returns how many rows it affected.
func (s *Session) Exec(ctx context.Context, name string, args ...any) (int64, error) {
	if err := s.Prepare(ctx, name); err != nil {
		return 0, err
	}
	tag, err := s.conn.Exec(ctx, name, args...)
	return tag.RowsAffected(), err
}

// Begin starts a durable transaction of a cold path.
func (s *Session) Begin(ctx context.Context) error {
	_, err := s.pg.Exec(ctx, text("begin.sql", own)+";"+text("durable.sql", own)).ReadAll()
	return err
}

// Commit sends COMMIT and waits for its outcome under a deadline of its own, whatever deadline ctx has, and for
// AbandonTimeout once ctx was cancelled: an answer on its way is still read. ErrCommitUnknown where the outcome is not known, ErrNotReplicated with it where the
// server committed but warned; any other error is a rollback.
func (s *Session) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTimeout)
	defer cancel()
	defer context.AfterFunc(caller, func() {
		if errors.Is(caller.Err(), context.Canceled) {
			time.AfterFunc(AbandonTimeout, cancel)
		}
	})()
	disarm := s.Arm(ctx)
	s.pg.Frontend().SendQuery(&pgproto3.Query{String: "COMMIT"})
	o, err := s.converse(ctx)
	disarm()
	var pg *pgconn.PgError
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrCommitUnknown, err)
	case errors.As(o.failure, &pg) && pg.SeverityUnlocalized == "ERROR":
		return fmt.Errorf("commit rolled back: %w", o.failure)
	case o.failure != nil:
		s.broken = true
		return fmt.Errorf("%w: %w", store.ErrCommitUnknown, o.failure)
	case o.unreplicated:
		return fmt.Errorf("%w: %w", store.ErrCommitUnknown, store.ErrNotReplicated)
	case len(o.tags) != 1 || o.tags[0] != "COMMIT":
		return fmt.Errorf("commit rolled back: the server answered %s", strings.Join(o.tags, ", "))
	}
	return nil
}

// Transact runs work in one transaction on one connection and commits it. Its errors are wrapped as verb says.
func (p *Pool) Transact(ctx context.Context, verb string, work func(context.Context, *Session) error) error {
	bounded, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	s, err := p.Acquire(bounded)
	if err != nil {
		return Before(verb, err)
	}
	defer s.Release()
	if err := s.Begin(bounded); err != nil {
		return Before(verb, err)
	}
	if err := work(bounded, s); err != nil {
		return Before(verb, err)
	}
	if err := s.Commit(bounded); err != nil {
		return Before(verb, err)
	}
	return nil
}

// Look runs work in a transaction that ends by rolling back: it may lock rows, and waits for no replica.
func (p *Pool) Look(ctx context.Context, verb string, work func(context.Context, *Session) error) error {
	return p.Read(ctx, verb, func(ctx context.Context, s *Session) error {
		if err := s.Begin(ctx); err != nil {
			return err
		}
		return work(ctx, s)
	})
}

// Read runs work outside a transaction on one connection.
func (p *Pool) Read(ctx context.Context, verb string, work func(context.Context, *Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	s, err := p.Acquire(ctx)
	if err != nil {
		return Before(verb, err)
	}
	defer s.Release()
	return Before(verb, work(ctx, s))
}

// Arm bounds reads and writes of the connection by ctx until the returned function is called.
func (s *Session) Arm(ctx context.Context) (disarm func()) {
	conn := s.pg.Conn()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			conn.SetDeadline(time.Time{})
			return
		}
		s.broken = true // the deadline may be set at any later moment
	}
}

// Server returns the identity of the server that the connection was opened to.
func (s *Session) Server() store.Server { return s.server }

// Ping asks the server for nothing, and so whether it is there.
func (s *Session) Ping(ctx context.Context) error { return s.pg.Ping(ctx) }

// PID returns the process id of the backend.
func (s *Session) PID() int32 { return int32(s.pg.PID()) }

// Own runs the named statement once on this connection, to make what only the connection sees. It reports whether that
// is there: a role that may make no temporary tables has none.
func (s *Session) Own(ctx context.Context, name string) (bool, error) {
	data := s.pg.CustomData()
	if made, tried := data[name].(bool); tried {
		return made, nil
	}
	err := s.Run(ctx, s.own.Statement(name))
	if err != nil && code(err) != pgerrcode.InsufficientPrivilege {
		return false, err
	}
	data[name] = err == nil
	return err == nil, nil
}

// Run runs statements that take no values and whose rows do not matter.
func (s *Session) Run(ctx context.Context, sql string) error {
	_, err := s.pg.Exec(ctx, sql).ReadAll()
	return err
}

// RunWith runs one statement, not a named one, with values.
func (s *Session) RunWith(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return s.conn.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

// Break makes Release close the connection: it holds something that nobody will read.
func (s *Session) Break() { s.broken = true }

// ExecBinary runs a named statement with binary parameters and returns how many rows it affected.
func (s *Session) ExecBinary(ctx context.Context, name string, params ...[]byte) (int64, error) {
	if err := s.Prepare(ctx, name); err != nil {
		return 0, err
	}
	tag, err := s.pg.ExecPrepared(ctx, name, params, binaryFormat, binaryFormat).Close()
	return tag.RowsAffected(), err
}

// Stream runs a named statement with binary parameters and calls fn for each row, whose values live until fn returns.
func (s *Session) Stream(ctx context.Context, name string, fn func([][]byte) error, params ...[]byte) error {
	if err := s.Prepare(ctx, name); err != nil {
		return err
	}
	r := s.pg.ExecPrepared(ctx, name, params, binaryFormat, binaryFormat)
	for r.NextRow() {
		if err := fn(r.Values()); err != nil {
			s.broken = true // rows are left unread
			return err
		}
	}
	_, err := r.Close()
	return err
}
