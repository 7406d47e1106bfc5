package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Guard is the loader's guard over one source incarnation (S1): a session lock on a connection of its own, which is
// never opened again behind its back. Safe for concurrent use.
type Guard struct {
	conn *pgx.Conn
	mu   sync.Mutex // guards conn
}

// GuardSource takes the loader's guard of a source incarnation: ErrServiceBusy while another holds it. The caller
// releases it, also after Check failed.
func (db *DB) GuardSource(ctx context.Context, incarnation string) (*Guard, error) {
	verb := "guard source " + incarnation
	ctx, cancel := context.WithTimeout(ctx, session.OperationTimeout)
	defer cancel()
	conn, err := db.pool.Dial(ctx, db.options.Application+" guard")
	if err != nil {
		return nil, session.Before(verb, err)
	}
	g := &Guard{conn: conn}
	var taken bool
	sum := sha256.Sum256([]byte("amends.source " + incarnation))
	err = conn.QueryRow(ctx, db.pool.Statement("guard"), pgx.QueryExecModeExec, int64(binary.BigEndian.Uint64(sum[:]))).Scan(&taken)
	if err == nil && !taken {
		err = store.ErrServiceBusy
	}
	if err != nil {
		return nil, errors.Join(session.Before(verb, err), g.Release(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// Check reports whether the guard is still held: ErrFence if its session ended.
func (g *Guard) Check(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, session.StatementTimeout)
	defer cancel()
	if err := g.conn.Ping(ctx); err != nil {
		return fmt.Errorf("check guard: %w: %w", store.ErrFence, err)
	}
	return nil
}

// Release gives the guard up by ending its session, and waits up to CleanupTimeout until the server has ended it: only then is the
// lock free, and the next load may begin at once. Where the end is not seen the lock goes when the server notices. Releasing
// again does nothing.
func (g *Guard) Release(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, session.CleanupTimeout)
	defer cancel()
	own, err := g.conn.PgConn().Hijack()
	if err != nil { // closed, or not idle
		if err := g.conn.Close(ctx); err != nil {
			return fmt.Errorf("release guard: %w", err)
		}
		return nil
	}
	defer own.Conn.Close()
	defer context.AfterFunc(ctx, func() { _ = own.Conn.SetDeadline(time.Unix(1, 0)) })()
	own.Frontend.Send(&pgproto3.Terminate{})
	if own.Frontend.Flush() == nil {
		_, _ = io.Copy(io.Discard, own.Conn)
	}
	return nil
}
