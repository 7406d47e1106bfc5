package session

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
)

// naming runs what may wait for a lock. A lock timeout that it returns names the sessions that held the lock, as seen while
// it waited: afterwards nobody can tell.
func (s *Session) naming(ctx context.Context, wait func() error) error {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), BlockedAfter+CleanupTimeout)
	defer cancel()
	seen := make(chan string, 1)
	timer := time.AfterFunc(BlockedAfter, func() { seen <- s.own.holders(look, s.PID()) })
	err := wait()
	if timer.Stop() || code(err) != pgerrcode.LockNotAvailable {
		return err
	}
	if holders := <-seen; holders != "" {
		return fmt.Errorf("%w; held by %s", err, holders)
	}
	return err
}

// holders says in words who blocks a backend, "" if nobody does or it cannot be read in time.
func (p *Pool) holders(ctx context.Context, blocked int32) (holders string) {
	_ = p.Read(ctx, "name blocking backends", func(ctx context.Context, s *Session) error {
		return s.conn.QueryRow(ctx, text("holders.sql", own), pgx.QueryExecModeExec, blocked).Scan(&holders)
	})
	return holders
}
