package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Claim installs the next epoch with a new random nonce under the row lock and returns the row as it is now (S8). A
// backend of the same role that blocks it for session.BlockedAfter is ended. ErrExhausted at epoch 2^63-1. With ErrCommitUnknown
// the returned row is the one of this attempt: if Observe shows its nonce, the claim is the caller's (S12).
func (n *Namespace) Claim(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	var o store.Owned
	verb := fmt.Sprintf("claim partition %d", p)
	nonce := newNonce()
	err := n.db.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		stop := n.db.endBlockers(ctx, s)
		err := n.readOwned(ctx, s, p, &o)
		stop()
		switch {
		case err != nil:
			return err
		case o.Token.Epoch == math.MaxInt64:
			return fmt.Errorf("epoch: %w", store.ErrExhausted)
		}
		o.Token.Epoch++
		o.Token.Nonce = nonce
		_, err = s.Exec(ctx, "claim", n.id, int32(p), nonce[:])
		return err
	})
	if err != nil && !errors.Is(err, store.ErrCommitUnknown) {
		return store.Owned{}, err
	}
	return o, err
}

// Observe returns the partition row as read under its lock, so that no transaction of it is in progress, with the
// identity of the server that was asked (S12).
func (n *Namespace) Observe(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	var o store.Owned
	err := n.db.pool.Look(ctx, fmt.Sprintf("observe partition %d", p), func(ctx context.Context, s *session.Session) error {
		return n.readOwned(ctx, s, p, &o)
	})
	return o, err
}

// readOwned locks and reads the partition row.
func (n *Namespace) readOwned(ctx context.Context, s *session.Session, p ledger.Partition, o *store.Owned) error {
	var nonce []byte
	err := s.QueryRow(ctx, []any{&o.Token.Epoch, &nonce, &o.Frontier, &o.Sequence}, "observe", n.id, int32(p))
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("no row of partition %d: %w", p, store.ErrProtocol)
	}
	copy(o.Token.Nonce[:], nonce)
	o.Token.Server = s.Server()
	return err
}

// endBlockers ends, once session.BlockedAfter has passed and until stop is called, every backend of the same role that blocks s.
func (db *DB) endBlockers(ctx context.Context, s *session.Session) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	pid := s.PID()
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(session.BlockedAfter):
				db.terminate(context.WithoutCancel(ctx), pid) // and tell of it, though the row may be free the next moment
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// terminate ends the blockers of a backend. Its failure is the lock timeout of the blocked statement, so it reports none,
// and it ends before that: the claimant, which may hold the row by now, waits for it.
func (db *DB) terminate(ctx context.Context, blocked int32) {
	ctx, cancel := context.WithTimeout(ctx, session.CleanupTimeout)
	defer cancel()
	_ = db.pool.Read(ctx, "end blocking backends", func(ctx context.Context, s *session.Session) error {
		rows, err := s.Query(ctx, "terminate", blocked)
		if err != nil {
			return err
		}
		var pid int32
		_, err = pgx.ForEachRow(rows, []any{&pid, nil}, func() error {
			if db.options.Terminated != nil {
				db.options.Terminated(pid)
			}
			return nil
		})
		return err
	})
}

func newNonce() (n store.Nonce) {
	rand.Read(n[:]) // never fails: it ends the process instead
	return n
}
