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

// AuditState returns what audits have left (S10).
func (r *Snapshot) AuditState(ctx context.Context) (state store.AuditState, err error) {
	if err := r.session.QueryRow(ctx, []any{&state.Now}, "read_clock"); err != nil {
		return state, session.Before("read audit state", err)
	}
	rows, err := r.session.Query(ctx, "read_audit_state", r.namespace)
	if err != nil {
		return state, session.Before("read audit state", err)
	}
	state.Partitions, err = pgx.CollectRows(rows, audit)
	return state, session.Before("read audit state", err)
}

func audit(row pgx.CollectableRow) (a store.Audit, err error) {
	var verified, full *time.Time
	var frontier *ledger.Frontier
	var format, chunks *int32
	var system, timeline *int64
	var checksum []byte
	err = row.Scan(&a.Partition, &a.Frontier, &a.Sequence, &a.Cause, &a.Output, &a.Differences, &a.Checked, &verified, &full, &a.Status, &a.Detail,
		&frontier, &format, &chunks, &checksum, &system, &timeline)
	if err != nil {
		return a, err
	}
	if verified != nil {
		a.Verified = *verified
	}
	if full != nil {
		a.Full = *full
	}
	if system != nil {
		a.Server = store.Server{System: uint64(*system), Timeline: uint32(*timeline)}
	}
	if frontier != nil {
		a.Saved = &store.SavedState{Frontier: *frontier, Format: *format, Chunks: *chunks}
		copy(a.Saved.Checksum[:], checksum)
	}
	return a, nil
}

// AuditChunks calls fn for each piece of a partition's saved state, in order. fn may not keep the bytes.
func (r *Snapshot) AuditChunks(ctx context.Context, p ledger.Partition, fn func([]byte) error) error {
	return r.stream(ctx, fmt.Sprintf("read audit state of partition %d", p), "read_audit_chunks", func(v [][]byte) error {
		return fn(v[1])
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)))
}

// Decided calls fn for every decision of a partition with outputs whose source offset is above after and at most to, in
// order. Its cost follows the number of source records between them. fn may keep the decision.
func (r *Snapshot) Decided(ctx context.Context, p ledger.Partition, after, to ledger.Offset, fn func(*ledger.Decision) error) error {
	var reader row.Decisions
	return r.stream(ctx, fmt.Sprintf("read journal of partition %d", p), "read_decided", func(v [][]byte) error {
		d := new(ledger.Decision)
		if err := reader.ReadKeyed(v, d); err != nil {
			return err
		}
		return fn(d)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)), session.Int64Param(int64(after)), session.Int64Param(int64(to)))
}

// Rows calls fn for the view rows that a partition has of these outputs, in no order. Its cost follows their number.
func (r *Snapshot) Rows(ctx context.Context, p ledger.Partition, ids []ledger.OutputID, fn func(store.ViewRow) error) error {
	items, locations := session.NewBytes(len(ids)), session.NewBytes(len(ids))
	days, kinds := session.NewDates(len(ids)), session.NewInt16s(len(ids))
	for _, id := range ids {
		items.Text(id.Key.Item)
		locations.Text(id.Key.Location)
		days.Int32(row.DateOf(id))
		kinds.Int16(int16(id.Kind))
	}
	return r.stream(ctx, fmt.Sprintf("read view rows of partition %d", p), "read_view_rows_by_id", func(v [][]byte) error {
		one, err := viewRow(v, p)
		if err != nil {
			return err
		}
		return fn(one)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)), items.Param(), locations.Param(), days.Param(), kinds.Param())
}

// viewRow reads a row as read_view_rows selects it.
func viewRow(v [][]byte, p ledger.Partition) (store.ViewRow, error) {
	one := store.ViewRow{ID: ledger.OutputID{Key: ledger.StockKey{Item: string(v[0]), Location: string(v[1])},
		Day: row.DayOf(session.ReadInt32(v[2])), Kind: ledger.OutputKind(session.ReadInt16(v[3]))}}
	if err := row.ReadView(v[4:], p, &one); err != nil {
		return one, &store.DamagedRow{ID: one.ID, Err: err}
	}
	return one, nil
}
