package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"amends/internal/store"
)

// session is one connection taken from the pool for one operation.
type session struct {
	pooled *pgxpool.Conn
	conn   *pgx.Conn
	pg     *pgconn.PgConn
	server store.Server
	broken bool
	sent   []expected
}

// acquire takes a connection. The caller releases it.
func (db *DB) acquire(ctx context.Context) (*session, error) {
	c, err := db.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	server, _ := c.Conn().PgConn().CustomData()[serverKey].(store.Server)
	return &session{pooled: c, conn: c.Conn(), pg: c.Conn().PgConn(), server: server}, nil
}

// release gives the connection back, or closes it: one that broke, or that is not idle and cannot be rolled back.
func (s *session) release() {
	if s.pooled == nil {
		return
	}
	c := s.pooled
	s.pooled = nil
	if !s.broken && s.pg.TxStatus() != 'I' && !s.pg.IsBusy() && !s.pg.IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
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
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	conn.Close(ctx)
}

// prepare makes the named statements on this connection; each costs a round trip the first time only.
func (s *session) prepare(ctx context.Context, names ...string) error {
	for _, name := range names {
		if _, err := s.conn.Prepare(ctx, name, statement(name)); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	return nil
}

// query runs a named statement.
func (s *session) query(ctx context.Context, name string, args ...any) (pgx.Rows, error) {
	if err := s.prepare(ctx, name); err != nil {
		return nil, err
	}
	return s.conn.Query(ctx, name, args...)
}

// queryRow runs a named statement and scans its one row into dst: pgx.ErrNoRows if there is none.
func (s *session) queryRow(ctx context.Context, dst []any, name string, args ...any) error {
	if err := s.prepare(ctx, name); err != nil {
		return err
	}
	return s.conn.QueryRow(ctx, name, args...).Scan(dst...)
}

// exec runs a named statement and returns how many rows it affected.
func (s *session) exec(ctx context.Context, name string, args ...any) (int64, error) {
	if err := s.prepare(ctx, name); err != nil {
		return 0, err
	}
	tag, err := s.conn.Exec(ctx, name, args...)
	return tag.RowsAffected(), err
}

// begin starts a durable transaction of a cold path.
func (s *session) begin(ctx context.Context) error {
	_, err := s.pg.Exec(ctx, statement("begin")+";"+statement("durable")).ReadAll()
	return err
}

// commit sends COMMIT and waits for its outcome under a deadline of its own, whatever becomes of ctx: a commit that was
// sent is never abandoned early. ErrCommitUnknown where the outcome is not known, ErrNotReplicated with it where the
// server committed but warned; any other error is a rollback.
func (s *session) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CommitTimeout)
	defer cancel()
	disarm := s.arm(ctx)
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

// transact runs work in one transaction on one connection and commits it. Its errors are wrapped as verb says.
func (db *DB) transact(ctx context.Context, verb string, work func(context.Context, *session) error) error {
	bounded, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	s, err := db.acquire(bounded)
	if err != nil {
		return before(verb, err)
	}
	defer s.release()
	if err := s.begin(bounded); err != nil {
		return before(verb, err)
	}
	if err := work(bounded, s); err != nil {
		return before(verb, err)
	}
	if err := s.commit(bounded); err != nil {
		return before(verb, err)
	}
	return nil
}

// look runs work in a transaction that ends by rolling back: it may lock rows, and waits for no replica.
func (db *DB) look(ctx context.Context, verb string, work func(context.Context, *session) error) error {
	return db.read(ctx, verb, func(ctx context.Context, s *session) error {
		if err := s.begin(ctx); err != nil {
			return err
		}
		return work(ctx, s)
	})
}

// read runs work outside a transaction on one connection.
func (db *DB) read(ctx context.Context, verb string, work func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	s, err := db.acquire(ctx)
	if err != nil {
		return before(verb, err)
	}
	defer s.release()
	return before(verb, work(ctx, s))
}

// arm bounds reads and writes of the connection by ctx until the returned function is called.
func (s *session) arm(ctx context.Context) (disarm func()) {
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
