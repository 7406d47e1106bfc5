package reader

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// Blocked is a key whose status in the view is BLOCKED (S7). Cause is the record whose decision made that version. Since is
// the first decision of this block: its record and the time of its commit; nil where the journal does not tell, and only the latest known
// if Longer. KeyID is the worker's id of the key, -1 if it has none. After is where a next page begins.
type Blocked struct {
	Status  ledger.Status
	Since   *Begun
	Key     ledger.StockKey
	Cause   store.Cause
	KeyID   ledger.KeyID
	After   int64
	Version ledger.Version
}

// Begun is the decision with which a block began. Longer says that it began even before.
type Begun struct {
	At     time.Time
	Record store.Cause
	Longer bool
}

// CountBlocked returns how many keys the view holds as BLOCKED, by partition; partitions without one are left out.
func (r *Snapshot) CountBlocked(ctx context.Context) (map[ledger.Partition]int64, error) {
	counts := map[ledger.Partition]int64{}
	rows, err := r.session.Query(ctx, "count_blocked", r.namespace)
	if err != nil {
		return nil, session.Before("count blocked keys", err)
	}
	var p ledger.Partition
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&p, &n}, func() error {
		counts[p] = n
		return nil
	})
	return counts, session.Before("count blocked keys", err)
}

// BlockedKeys returns at most limit blocked keys behind (p, after), in a stable order: by partition, then as the view met
// them. The first page is behind (-1, 0).
func (r *Snapshot) BlockedKeys(ctx context.Context, p ledger.Partition, after int64, limit int) ([]Blocked, error) {
	keys, err := collect(ctx, r, "read blocked keys", "read_blocked", func(found pgx.CollectableRow) (b Blocked, err error) {
		var item, location, txn, status []byte
		var sequence ledger.Sequence
		var id *ledger.KeyID
		var decided *time.Time
		err = found.Scan(&b.Cause.Partition, &b.After, &item, &location, &b.Version, &sequence, &b.Cause.Offset, &b.Cause.Revision, &txn,
			&status, &id, &decided)
		if err != nil {
			return b, err
		}
		b.Key = ledger.StockKey{Item: string(item), Location: string(location)}
		b.Cause.TxnID = string(txn)
		parsed, err := row.ReadStatus(status)
		if err != nil {
			return b, fmt.Errorf("view row of sequence %d: %w: %w", sequence, store.ErrIntegrity, err)
		}
		b.Status, b.KeyID = *parsed, -1
		if id != nil {
			b.KeyID = *id
		}
		if decided != nil {
			b.Since = &Begun{At: *decided, Record: b.Cause, Longer: true}
		}
		return b, nil
	}, r.namespace, int32(p), after, limit)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if keys[i].KeyID < 0 || keys[i].Since == nil {
			continue
		}
		if err := r.begun(ctx, &keys[i]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// How far back the beginning of a block is looked for: while a key is blocked each of its decisions with outputs is one
// status, so these are versions of the status.
const (
	blockPage  = 64
	blockPages = 16
)

// begun walks back to the decision that blocked the key: the one behind the latest that left it READY.
func (r *Snapshot) begun(ctx context.Context, b *Blocked) error {
	type decided struct {
		at      time.Time
		txn     []byte
		body    []byte
		cause   store.Cause
		outputs int32
	}
	p, at := b.Cause.Partition, b.Cause.Offset
	for range blockPages {
		page, err := collect(ctx, r, "read status of a blocked key", "key_changes", func(row pgx.CollectableRow) (d decided, err error) {
			return d, row.Scan(&d.cause.Offset, &d.at, &d.cause.Revision, &d.txn, &d.outputs, &d.body)
		}, r.namespace, int32(p), int64(b.KeyID), int64(at), blockPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			changes, err := row.Changes(d.cause.Offset, d.body)
			if err != nil {
				return err
			}
			if len(changes) != 1 || changes[0].Status == nil || !changes[0].Status.Blocked {
				b.Since.Longer = false
				return nil
			}
			d.cause.Partition, d.cause.TxnID = p, string(d.txn)
			b.Since.At, b.Since.Record = d.at, d.cause
			at = d.cause.Offset - 1
		}
		if len(page) < blockPage {
			b.Since.Longer = false
			return nil
		}
	}
	return nil
}
