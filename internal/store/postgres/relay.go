package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
	"amends/internal/store/postgres/trail"
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

// Pending returns whole decisions with outputs from the one that holds from.Sequence on, at most as many as maxOutputs
// outputs allow and at least one if there is any. Records without outputs that it looked through are not read again.
func (n *Namespace) Pending(ctx context.Context, p ledger.Partition, from store.RelayPosition, maxOutputs int) (pending []ledger.Decision, err error) {
	err = n.db.pool.Read(ctx, fmt.Sprintf("read pending outputs of partition %d", p), func(ctx context.Context, s *session.Session) error {
		q := search{n: n, s: s, p: p, sequence: from.Sequence, most: maxOutputs, marks: &n.looked}
		q.source = n.looked.From(s.Server(), p, from.Sequence, from.Source)
		pending, err = q.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pending, nil
}

// search reads the outbox of a partition, one window of source offsets at a time, so that no statement takes long however
// many records without outputs lie between.
type search struct {
	n        *Namespace
	s        *session.Session
	marks    *trail.Trail // nil leaves none
	found    []ledger.Decision
	reader   row.Decisions
	source   ledger.Offset   // where the next window begins
	frontier ledger.Offset   // of the partition
	sequence ledger.Sequence // of the first output wanted
	outputs  int
	most     int
	p        ledger.Partition
	full     bool
}

func (q *search) run(ctx context.Context) ([]ledger.Decision, error) {
	for {
		end := q.source + min(pendingWindow, math.MaxInt64-q.source)
		rows, pending := 0, false
		err := q.s.Stream(ctx, "pending", func(v [][]byte) error {
			q.frontier = ledger.Offset(session.ReadInt64(v[row.Frontier]))
			pending = ledger.Sequence(session.ReadInt64(v[row.Frontier+1])) > q.sequence
			if v[row.Offset] == nil {
				return nil
			}
			rows++
			return q.take(v)
		}, session.Int32Param(q.n.id), session.Int32Param(int32(q.p)), session.Int64Param(int64(q.source)),
			session.Int64Param(int64(q.sequence)), session.Int64Param(int64(end)))
		switch {
		case err != nil:
			return nil, err
		case !pending:
			q.mark(q.sequence, q.frontier)
			return nil, nil
		case q.full || q.outputs >= q.most:
			return q.found, nil
		case rows == pendingChunk:
			continue
		case len(q.found) > 0:
			return q.found, nil
		}
		q.source = min(end, q.frontier)
		if q.mark(q.sequence, q.source); q.source == q.frontier {
			return nil, nil
		}
	}
}

func (q *search) mark(sequence ledger.Sequence, offset ledger.Offset) {
	if q.marks != nil {
		q.marks.Mark(q.s.Server(), q.p, sequence, offset)
	}
}

// take adds a row's decision, unless the search has enough.
func (q *search) take(v [][]byte) error {
	if q.full {
		return nil
	}
	q.found = append(q.found, ledger.Decision{})
	d := &q.found[len(q.found)-1]
	if err := q.reader.ReadKeyed(v, d); err != nil {
		return err
	}
	if d.Offset-q.source > pendingLeap {
		q.mark(d.Sequence, d.Offset)
	}
	q.source = d.Offset + 1
	q.outputs += len(d.Changes)
	if len(q.found) > 1 && q.outputs > q.most {
		q.found = q.found[:len(q.found)-1]
		q.full = true
	}
	return nil
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
		q := search{n: n, s: s, p: p, source: source, sequence: sequence, most: 1}
		found, err := q.run(ctx)
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
		session.Int64Param(int64(r.First)), session.Int64Param(int64(r.Next)), session.Int64Param(int64(r.Offset)),
		session.Int64Param(int64(n.looked.From(s.Server(), r.Partition, r.Next-1, 0))))
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
