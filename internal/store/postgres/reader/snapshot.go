package reader

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// Statements holds the file of every statement of this package.
//
//go:embed sql/*.sql
var Statements embed.FS

// Snapshot reads one consistent state of a namespace, for one goroutine, inside one transaction.
type Snapshot struct {
	session   *session.Session
	namespace int32
}

// Look calls fn with one consistent state of the namespace of that id, in a transaction that is read only and repeatable. It
// is bounded by ctx alone; fn must not read again while a row function runs.
func Look(ctx context.Context, pool *session.Pool, namespace int32, fn func(*Snapshot) error) error {
	s, err := pool.Acquire(ctx)
	if err != nil {
		return session.Before("take snapshot", err)
	}
	defer s.Release()
	err = s.Run(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0;"+
		" SET LOCAL idle_in_transaction_session_timeout = 0")
	if err != nil {
		return session.Before("take snapshot", err)
	}
	return fn(&Snapshot{session: s, namespace: namespace})
}

// Partitions returns every partition in order.
func (r *Snapshot) Partitions(ctx context.Context) ([]store.PartitionState, error) {
	rows, err := r.session.Query(ctx, "read_partitions", r.namespace)
	if err != nil {
		return nil, session.Before("read partitions", err)
	}
	states, err := pgx.CollectRows(rows, r.partition)
	return states, session.Before("read partitions", err)
}

func (r *Snapshot) partition(row pgx.CollectableRow) (store.PartitionState, error) {
	var (
		state                        store.PartitionState
		nonce, relayNonce, viewNonce []byte
		last                         [9]*int64
		samples                      []int64
		relayTerm, viewTerm          *int64
		relaySequence, viewSequence  *ledger.Sequence
		relayOutput, viewOutput      *ledger.Frontier
		relaySource, viewCause       *ledger.Offset
		stopped                      *bool
		o, total                     = &state.Owned, &state.Measurements.Total
	)
	dst := []any{&state.Partition, &o.Token.Epoch, &nonce, &o.Frontier, &o.Sequence}
	for i := range last {
		dst = append(dst, &last[i])
	}
	for _, field := range sampleFields(total) {
		dst = append(dst, field)
	}
	dst = append(dst, &state.Measurements.Commits, &samples,
		&relayTerm, &relayNonce, &relaySequence, &relayOutput, &relaySource,
		&viewTerm, &viewNonce, &viewOutput, &viewSequence, &viewCause, &stopped)
	if err := row.Scan(dst...); err != nil {
		return state, err
	}
	state.Rejected = total.Work.Rejected
	copy(o.Token.Nonce[:], nonce)
	o.Token.Server = r.session.Server()
	if last[0] != nil {
		state.Measurements.Last = &store.Sample{}
		for i, field := range sampleFields(state.Measurements.Last) {
			*field = *last[i]
		}
	}
	for ; len(samples) >= len(last); samples = samples[len(last):] {
		var one store.Sample
		for i, field := range sampleFields(&one) {
			*field = samples[i]
		}
		state.Measurements.Recent = append(state.Measurements.Recent, one)
	}
	if relayTerm != nil {
		state.Relay = &store.RelayPosition{Term: *relayTerm, Sequence: *relaySequence, Output: *relayOutput, Source: *relaySource}
		copy(state.Relay.Nonce[:], relayNonce)
	}
	if viewTerm != nil {
		state.View = &store.ViewPosition{Term: *viewTerm, Output: *viewOutput, Sequence: *viewSequence, Cause: *viewCause, Stopped: *stopped}
		copy(state.View.Nonce[:], viewNonce)
	}
	return state, nil
}

// sampleFields are the numbers of a sample in the order of the columns.
func sampleFields(s *store.Sample) [9]*int64 {
	w := &s.Work
	return [9]*int64{&w.Records, &w.Accepted, &w.Rejected, &w.RewindDays, &w.RefoldedDays, &w.Changed, &w.Withdrawn, &s.Lock, &s.PreCommit}
}

// ViewRows calls fn for every view row of a partition in the order of package store.
func (r *Snapshot) ViewRows(ctx context.Context, p ledger.Partition, fn func(store.ViewRow) error) error {
	return r.stream(ctx, fmt.Sprintf("read view rows of partition %d", p), "read_view_rows", func(v [][]byte) error {
		one, err := viewRow(v, p)
		if err != nil {
			return err
		}
		return fn(one)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)))
}

// Journal calls fn for every decision of a partition in offset order, with its evidence. fn may keep the decision.
// ErrIntegrity at the end if the quarantine holds rows that no decision has.
func (r *Snapshot) Journal(ctx context.Context, p ledger.Partition, fn func(*ledger.Decision) error) error {
	var reader row.Decisions
	var rejected, quarantined int64
	verb := fmt.Sprintf("read journal of partition %d", p)
	err := r.stream(ctx, verb, "read_journal", func(v [][]byte) error {
		d := new(ledger.Decision)
		if err := reader.ReadKeyed(v, d); err != nil {
			return err
		}
		if err := row.ReadEvidence(v, d); err != nil {
			return err
		}
		if err := row.CheckRow(v, d); err != nil {
			return err
		}
		if d.Rejection != 0 {
			rejected++
		}
		return fn(d)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)))
	if err != nil {
		return err
	}
	if err := r.session.QueryRow(ctx, []any{&quarantined}, "count_quarantine", r.namespace, int32(p)); err != nil {
		return session.Before(verb, err)
	}
	if quarantined != rejected {
		return fmt.Errorf("%s: %d quarantine rows for %d rejected records: %w", verb, quarantined, rejected, store.ErrIntegrity)
	}
	return nil
}

// Violations returns the stored protocol violations by partition.
func (r *Snapshot) Violations(ctx context.Context) ([]store.Violation, error) {
	rows, err := r.session.Query(ctx, "read_violations", r.namespace)
	if err != nil {
		return nil, session.Before("read violations", err)
	}
	violations, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v store.Violation, err error) {
		return v, row.Scan(&v.Partition, &v.Offset, &v.Reason, &v.Key, &v.Value)
	})
	return violations, session.Before("read violations", err)
}

// Receipts returns the receipts of a partition in order.
func (r *Snapshot) Receipts(ctx context.Context, p ledger.Partition) ([]store.Receipt, error) {
	rows, err := r.session.Query(ctx, "read_receipts", r.namespace, int32(p))
	if err != nil {
		return nil, session.Before("read receipts", err)
	}
	receipts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.Receipt, error) {
		one := store.Receipt{Partition: p}
		return one, row.Scan(&one.First, &one.Next, &one.Offset)
	})
	return receipts, session.Before("read receipts", err)
}

// stream keeps apart what the server says, which is wrapped, and what fn says, which is returned as it is. After a damaged
// row the others are read past, so that the snapshot goes on for what else is to be looked at.
func (r *Snapshot) stream(ctx context.Context, verb, name string, fn func([][]byte) error, params ...[]byte) error {
	var own error
	err := r.session.Stream(ctx, name, func(v [][]byte) error {
		if own != nil {
			return nil
		}
		if own = fn(v); errors.Is(own, store.ErrIntegrity) || errors.Is(own, store.ErrSchema) {
			return nil
		}
		return own
	}, params...)
	if own != nil {
		return own
	}
	return session.Before(verb, err)
}
