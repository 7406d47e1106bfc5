package reader

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Moment is when a snapshot was taken, by the database's clock, and what the namespace's row says.
type Moment struct {
	Now         time.Time
	Created     time.Time
	SourceTopic string
}

// Moment returns when the snapshot's transaction began.
func (r *Snapshot) Moment(ctx context.Context) (m Moment, err error) {
	err = r.session.QueryRow(ctx, []any{&m.Now, &m.Created, &m.SourceTopic}, "read_moment", r.namespace)
	return m, session.Before("read namespace", err)
}

// Oldest says since when the longest waiting work of a partition waits; nil where nothing does. Undelivered is the time of the
// decision that holds the first output without a receipt, Unapplied that of the receipt of the first output that the view lacks.
type Oldest struct {
	Undelivered *time.Time
	Unapplied   *time.Time
	Partition   ledger.Partition
}

// OldestWork returns one entry a partition, in order.
func (r *Snapshot) OldestWork(ctx context.Context) ([]Oldest, error) {
	return collect(ctx, r, "read oldest work", "oldest_work", func(row pgx.CollectableRow) (o Oldest, err error) {
		return o, row.Scan(&o.Partition, &o.Undelivered, &o.Unapplied)
	}, r.namespace)
}

// Lease is who may publish or materialize a partition. Live says that it had not expired by the database's clock.
type Lease struct {
	Role      store.Role
	Holder    string
	Term      int64
	Partition ledger.Partition
	Live      bool
}

// Leases returns the lease rows by partition and role.
func (r *Snapshot) Leases(ctx context.Context) ([]Lease, error) {
	return collect(ctx, r, "read leases", "read_leases", func(row pgx.CollectableRow) (l Lease, err error) {
		return l, row.Scan(&l.Partition, &l.Role, &l.Holder, &l.Term, &l.Live)
	}, r.namespace)
}

// LastVerification returns the verification that tells most of now, nil if there is none (S10): the one recorded last, unless the
// last that came to a result, or the last such deep one, found DRIFT. What an incomplete or a less thorough one did not look at is
// not refuted by it.
func (r *Snapshot) LastVerification(ctx context.Context) (*store.Verification, error) {
	var v store.Verification
	var boundary []byte
	err := r.session.QueryRow(ctx, []any{&v.Started, &v.Finished, &v.Keys, &v.Outputs, &v.Differences, &v.Quiesced, &v.Deep, &v.Audit,
		&v.Status, &boundary, &v.Detail}, "read_last_verification", r.namespace)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(boundary, &v.Boundary)
	}
	return &v, session.Before("read last verification", err)
}

// collect reads every row of a named statement.
func collect[T any](ctx context.Context, r *Snapshot, verb, name string, one pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := r.session.Query(ctx, name, args...)
	if err != nil {
		return nil, session.Before(verb, err)
	}
	all, err := pgx.CollectRows(rows, one)
	return all, session.Before(verb, err)
}
