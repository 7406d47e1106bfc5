package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// AcquireService takes the lease of a role and partition for ttl: ErrServiceBusy while another holder's has not expired.
// It installs the next term and a new nonce in the role's position row under its lock, which fences the former holder; a
// backend of the same role that blocks it for session.BlockedAfter is ended (S9). After ErrCommitUnknown the same holder may
// simply acquire again.
func (n *Namespace) AcquireService(ctx context.Context, role store.Role, p ledger.Partition, holder string, ttl time.Duration) (store.Lease, error) {
	l := store.Lease{Role: role, Holder: holder, Partition: p, Nonce: newNonce()}
	verb := fmt.Sprintf("acquire %s of partition %d", role, p)
	err := n.db.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		if err := n.leaseFree(ctx, s, "see_lease", role, p, holder); err != nil {
			return err
		}
		// Only who may take it ends what is in its way: never the renewal of a lease in force.
		defer n.db.endBlockers(ctx, s)()
		if err := n.leaseFree(ctx, s, "lock_lease", role, p, holder); err != nil {
			return err
		}
		term, err := n.installTerm(ctx, s, role, p, l.Nonce)
		if err != nil {
			return err
		}
		l.Term = term
		_, err = s.Exec(ctx, "take_lease", n.id, int32(p), string(role), store.PlainText(holder), term, ttl.Microseconds())
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return l, nil
}

// leaseFree reads the lease row by a statement that locks it or not, and says whether holder may take it.
func (n *Namespace) leaseFree(ctx context.Context, s *session.Session, statement string, role store.Role, p ledger.Partition, holder string) error {
	var other string
	var live bool
	err := s.QueryRow(ctx, []any{&other, &live}, statement, n.id, int32(p), string(role))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("not bound: %w", store.ErrBinding)
	case err != nil:
		return err
	case live && other != store.PlainText(holder):
		return fmt.Errorf("held by %s: %w", other, store.ErrServiceBusy)
	}
	return nil
}

// installTerm locks the position row and gives it the next term.
func (n *Namespace) installTerm(ctx context.Context, s *session.Session, role store.Role, p ledger.Partition, nonce store.Nonce) (term int64, err error) {
	install := "install_relay_term"
	if role == store.View {
		install = "install_view_term"
		var position store.ViewPosition
		err = n.readViewPosition(ctx, s, p, &position)
		term = position.Term
	} else {
		var position store.RelayPosition
		err = n.readRelayPosition(ctx, s, p, &position)
		term = position.Term
	}
	switch {
	case err != nil:
		return 0, err
	case term == math.MaxInt64:
		return 0, fmt.Errorf("term: %w", store.ErrExhausted)
	}
	err = s.QueryRow(ctx, []any{&term}, install, n.id, int32(p), nonce[:])
	return term, err
}

// RenewServices extends the leases that holder still has to ttl from now by the database's clock, in one statement, and
// returns those that it no longer has. It has a connection of its own: however busy the pool is, no lease expires for it.
func (n *Namespace) RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error) {
	type place struct {
		role store.Role
		p    ledger.Partition
	}
	partitions, roles, terms := make([]int32, len(leases)), make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		partitions[i], roles[i], terms[i] = int32(l.Partition), string(l.Role), l.Term
	}
	kept := map[place]bool{}
	err := n.db.leases.Transact(ctx, "renew leases", func(ctx context.Context, s *session.Session) error {
		rows, err := s.Query(ctx, "renew_leases", n.id, store.PlainText(holder), partitions, roles, terms, ttl.Microseconds())
		if err != nil {
			return err
		}
		var at place
		_, err = pgx.ForEachRow(rows, []any{&at.p, &at.role}, func() error {
			kept[at] = true
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	var lost []store.Lease
	for _, l := range leases {
		if !kept[place{l.Role, l.Partition}] {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// ReleaseService gives a lease up so that a standby need not wait; one already lost is left alone.
func (n *Namespace) ReleaseService(ctx context.Context, l store.Lease) error {
	verb := fmt.Sprintf("release %s of partition %d", l.Role, l.Partition)
	return n.db.pool.Transact(ctx, verb, func(ctx context.Context, s *session.Session) error {
		_, err := s.Exec(ctx, "release_lease", n.id, int32(l.Partition), string(l.Role), l.Term, store.PlainText(l.Holder))
		return err
	})
}
