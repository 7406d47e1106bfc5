package reader

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store/postgres/session"
)

// Rejected is a quarantined record (S3). Decided is when it was, by the database's clock, and BrokerMS the broker's timestamp, both
// zero if the journal has no row for it.
type Rejected struct {
	Decided   time.Time
	Evidence  ledger.Evidence
	Offset    ledger.Offset
	BrokerMS  int64
	Partition ledger.Partition
	Code      ledger.Rejection
}

// CountRejected counts the quarantined records by code: a pass over all of them.
func (r *Snapshot) CountRejected(ctx context.Context) (map[ledger.Rejection]int64, error) {
	counts := map[ledger.Rejection]int64{}
	rows, err := r.session.Query(ctx, "count_rejections", r.namespace)
	if err != nil {
		return nil, session.Before("count rejected records", err)
	}
	var code int16
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&code, &n}, func() error {
		counts[ledger.Rejection(code)] = n
		return nil
	})
	return counts, session.Before("count rejected records", err)
}

// RejectedRecords returns at most limit quarantined records behind (p, offset), by partition and offset. The first page is
// behind (-1, 0).
func (r *Snapshot) RejectedRecords(ctx context.Context, p ledger.Partition, offset ledger.Offset, limit int) ([]Rejected, error) {
	return collect(ctx, r, "read rejected records", "read_rejections", func(row pgx.CollectableRow) (d Rejected, err error) {
		var keySum, valueSum []byte
		var code int16
		var decided *time.Time
		var broker *int64
		e := &d.Evidence
		err = row.Scan(&d.Partition, &d.Offset, &code, &e.KeyLength, &e.ValueLength, &keySum, &valueSum, &e.Key, &e.Value, &decided, &broker)
		copy(e.KeySHA[:], keySum)
		copy(e.ValueSHA[:], valueSum)
		d.Code = ledger.Rejection(code)
		if decided != nil && broker != nil {
			d.Decided, d.BrokerMS = *decided, *broker
		}
		return d, err
	}, r.namespace, int32(p), int64(offset), limit)
}

// Place is a record among those of its key.
type Place struct {
	Offset    ledger.Offset
	KeyID     ledger.KeyID
	Partition ledger.Partition
}

// Conflicting is a record that was classified CONFLICT or STALE_CONFLICT (S4).
type Conflicting struct {
	Key      ledger.StockKey
	TxnID    string
	Place    Place
	Revision ledger.Revision
}

// CountConflicting counts the records that were classified as conflicts.
func (r *Snapshot) CountConflicting(ctx context.Context) (n int64, err error) {
	err = r.session.QueryRow(ctx, []any{&n}, "count_conflicts", r.namespace)
	return n, session.Before("count conflicts", err)
}

// ConflictingRecords returns at most limit of them behind a place, by partition, key id and offset. The first page is behind
// partition -1.
func (r *Snapshot) ConflictingRecords(ctx context.Context, after Place, limit int) ([]Conflicting, error) {
	return collect(ctx, r, "read conflicts", "read_conflicts", func(row pgx.CollectableRow) (c Conflicting, err error) {
		var txn, item, location []byte
		err = row.Scan(&c.Place.Partition, &c.Place.KeyID, &c.Place.Offset, &c.Revision, &txn, &item, &location)
		c.TxnID, c.Key = string(txn), ledger.StockKey{Item: string(item), Location: string(location)}
		return c, err
	}, r.namespace, int32(after.Partition), int64(after.KeyID), int64(after.Offset), limit)
}

// Recorded is one valid record of a key as the journal holds it.
type Recorded struct {
	Decided  time.Time
	TxnID    string
	Payload  ledger.Payload
	Offset   ledger.Offset
	Revision ledger.Revision
	BrokerMS int64
	Class    ledger.Class
}

// RecordedOf returns what was recorded of some transactions of a key, in offset order: one scan of the key's rows.
func (r *Snapshot) RecordedOf(ctx context.Context, p ledger.Partition, key ledger.KeyID, txns []string) ([]Recorded, error) {
	ids := make([][]byte, len(txns))
	for i, id := range txns {
		ids[i] = []byte(id)
	}
	return collect(ctx, r, "read assertions of a key", "key_assertions", func(found pgx.CollectableRow) (a Recorded, err error) {
		var day *time.Time
		var txn []byte
		var state, kind, class int16
		err = found.Scan(&a.Offset, &a.Decided, &a.BrokerMS, &a.Revision, &a.Payload.Quantity, &day, &state, &kind, &class, &txn)
		a.TxnID, a.Class = string(txn), ledger.Class(class)
		a.Payload.State, a.Payload.Kind = ledger.State(state), ledger.Kind(kind)
		if day != nil {
			a.Payload.Day, _ = ledger.DateOf(day.Year(), int(day.Month()), day.Day())
		}
		return a, err
	}, r.namespace, int32(p), int64(key), ids)
}

// CountsOf returns the transactions of a key that ever stated a count of a day, by their bytes: one scan of the key's rows.
func (r *Snapshot) CountsOf(ctx context.Context, p ledger.Partition, key ledger.KeyID, day ledger.Day) ([]string, error) {
	return collect(ctx, r, "read counts of a key", "key_counts", func(found pgx.CollectableRow) (string, error) {
		var txn []byte
		err := found.Scan(&txn)
		return string(txn), err
	}, r.namespace, int32(p), int64(key), day.Time())
}
