package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// RelayPosition returns the relay position row as read under its lock: ErrBinding before the binding.
func (n *Namespace) RelayPosition(ctx context.Context, p ledger.Partition) (r store.RelayPosition, err error) {
	err = n.db.pool.Look(ctx, fmt.Sprintf("read relay position of partition %d", p), func(ctx context.Context, s *session.Session) error {
		return n.readRelayPosition(ctx, s, p, &r)
	})
	return r, err
}

// readRelayPosition locks and reads the relay position row.
func (n *Namespace) readRelayPosition(ctx context.Context, s *session.Session, p ledger.Partition, r *store.RelayPosition) error {
	var nonce []byte
	err := s.QueryRow(ctx, []any{&r.Term, &nonce, &r.Sequence, &r.Output, &r.Source}, "lock_relay", n.id, int32(p))
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("not bound: %w", store.ErrBinding)
	}
	copy(r.Nonce[:], nonce)
	return err
}

// LastReceipt returns the latest receipt of a partition, nil if there is none.
func (n *Namespace) LastReceipt(ctx context.Context, p ledger.Partition) (last *store.Receipt, err error) {
	err = n.db.pool.Read(ctx, fmt.Sprintf("read last receipt of partition %d", p), func(ctx context.Context, s *session.Session) error {
		r := store.Receipt{Partition: p}
		err := s.QueryRow(ctx, []any{&r.First, &r.Next, &r.Offset}, "last_receipt", n.id, int32(p))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		last = &r
		return err
	})
	return last, err
}

// Pending returns whole decisions with outputs from the one that holds from.Sequence on, as many as maxOutputs outputs
// allow and at least one if there is any.
func (n *Namespace) Pending(ctx context.Context, p ledger.Partition, from store.RelayPosition, maxOutputs int) (pending []ledger.Decision, err error) {
	err = n.db.pool.Read(ctx, fmt.Sprintf("read pending outputs of partition %d", p), func(ctx context.Context, s *session.Session) error {
		pending, err = n.pending(ctx, s, p, from, maxOutputs)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pending, nil
}

func (n *Namespace) pending(ctx context.Context, s *session.Session, p ledger.Partition, from store.RelayPosition, maxOutputs int) ([]ledger.Decision, error) {
	var (
		pending []ledger.Decision
		reader  decisionReader
		outputs int
		full    bool
	)
	source := int64(from.Source)
	for !full {
		rows := 0
		err := s.Stream(ctx, "pending", func(v [][]byte) error {
			rows++
			if full {
				return nil
			}
			pending = append(pending, ledger.Decision{})
			d := &pending[len(pending)-1]
			if err := reader.readKeyed(v, d); err != nil {
				return err
			}
			source = int64(d.Offset) + 1
			outputs += len(d.Changes)
			if len(pending) > 1 && outputs > maxOutputs {
				pending = pending[:len(pending)-1]
				full = true
			}
			return nil
		}, session.Int32Param(n.id), session.Int32Param(int32(p)), session.Int64Param(source), session.Int64Param(int64(from.Sequence)))
		if err != nil {
			return nil, err
		}
		full = full || rows < pendingChunk || outputs >= maxOutputs
	}
	return pending, nil
}

// Outbox returns the decision that holds a sequence, nil if none does.
func (n *Namespace) Outbox(ctx context.Context, p ledger.Partition, sequence ledger.Sequence) (d *ledger.Decision, err error) {
	if sequence < 0 {
		return nil, nil
	}
	err = n.db.pool.Read(ctx, fmt.Sprintf("read outbox of partition %d", p), func(ctx context.Context, s *session.Session) error {
		var source ledger.Offset
		if err := s.QueryRow(ctx, []any{&source}, "outbox_source", n.id, int32(p), int64(sequence)); err != nil {
			return err
		}
		found, err := n.pending(ctx, s, p, store.RelayPosition{Source: source, Sequence: sequence}, 1)
		if err == nil && len(found) > 0 {
			d = &found[0]
		}
		return err
	})
	return d, err
}

// Acknowledge stores a receipt and moves the relay position in one transaction (S9). A receipt that is stored already is
// idempotent; one that conflicts, or is for later work, is ErrProtocol; another term or nonce is ErrFence.
func (n *Namespace) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	verb := fmt.Sprintf("acknowledge sequences %d to %d of partition %d", r.First, r.Next, r.Partition)
	if err := store.CheckReceipt(r); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	bounded, cancel := context.WithTimeout(ctx, session.OperationTimeout)
	defer cancel()
	s, err := n.db.pool.Acquire(bounded)
	if err != nil {
		return session.Before(verb, err)
	}
	defer s.Release()
	stored, err := n.storeReceipt(bounded, s, l, r)
	if err != nil {
		return session.Before(verb, err)
	}
	if !stored {
		if err := n.explainReceipt(bounded, s, l, r); err != nil {
			return session.Before(verb, err)
		}
	}
	if err := s.Commit(bounded); err != nil {
		return session.Before(verb, err)
	}
	return nil
}

// storeReceipt sends everything but COMMIT and says whether the receipt fitted.
func (n *Namespace) storeReceipt(ctx context.Context, s *session.Session, l store.Lease, r store.Receipt) (bool, error) {
	if l.Role != store.Relay || l.Partition != r.Partition {
		return false, fmt.Errorf("a lease of %s of partition %d: %w", l.Role, l.Partition, store.ErrFence)
	}
	if err := s.Prepare(ctx, "acknowledge"); err != nil {
		return false, err
	}
	defer s.Arm(ctx)()
	if err := s.SendBegin(ctx); err != nil {
		return false, err
	}
	s.Send("acknowledge", session.Int32Param(n.id), session.Int32Param(int32(r.Partition)), session.Int64Param(l.Term), l.Nonce[:],
		session.Int64Param(int64(r.First)), session.Int64Param(int64(r.Next)), session.Int64Param(int64(r.Offset)))
	results, err := s.Sync(ctx)
	if err != nil {
		return false, err
	}
	return results[2].Rows == 1, nil
}

// explainReceipt reads under the row lock why a receipt did not fit; nil if exactly it is stored.
func (n *Namespace) explainReceipt(ctx context.Context, s *session.Session, l store.Lease, r store.Receipt) error {
	var position store.RelayPosition
	if err := n.readRelayPosition(ctx, s, r.Partition, &position); err != nil {
		return err
	}
	if position.Term != l.Term || position.Nonce != l.Nonce {
		return fmt.Errorf("term %d, installed %d: %w", l.Term, position.Term, store.ErrFence)
	}
	found := store.Receipt{First: r.First, Partition: r.Partition}
	err := s.QueryRow(ctx, []any{&found.Next, &found.Offset}, "find_receipt", n.id, int32(r.Partition), int64(r.First))
	switch {
	case err == nil && found == r:
		return nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	return fmt.Errorf("offset %d; stored next sequence %d at %d: %w", r.Offset, position.Sequence, position.Output, store.ErrProtocol)
}
