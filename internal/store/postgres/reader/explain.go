package reader

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// Entry is one journal row as an explanation needs it: the decision, when it was committed by the database's clock, and
// the receipts that hold its outputs, in order, where they were asked for.
type Entry struct {
	Committed time.Time
	Receipts  []Receipt
	Decision  ledger.Decision
}

// Receipt is a delivery receipt with the time of its acknowledgement by the database's clock.
type Receipt struct {
	Acknowledged time.Time
	store.Receipt
}

// Publication says where one output version lies in the output topic, and when its receipt was written.
type Publication struct {
	At     time.Time
	Offset ledger.Offset
}

// Published returns where the i-th output of an entry lies, and false where no receipt holds it.
func (e *Entry) Published(i int) (Publication, bool) {
	at := e.Decision.Sequence + ledger.Sequence(i)
	for _, r := range e.Receipts {
		if r.First <= at && at < r.Next {
			return Publication{At: r.Acknowledged, Offset: r.Offset + ledger.Offset(at-r.First)}, true
		}
	}
	return Publication{}, false
}

// StoredKey is a stock key that has a valid record.
type StoredKey struct {
	Key       ledger.StockKey
	ID        ledger.KeyID
	Partition ledger.Partition
}

// FindKeys returns those of keys that have a valid record, in the order given.
func (r *Snapshot) FindKeys(ctx context.Context, keys []ledger.StockKey) ([]StoredKey, error) {
	items, locations := session.NewBytes(len(keys)), session.NewBytes(len(keys))
	for _, k := range keys {
		items.Text(k.Item)
		locations.Text(k.Location)
	}
	var found []StoredKey
	err := r.stream(ctx, "find keys", "find_keys", func(v [][]byte) error {
		found = append(found, StoredKey{Key: keys[session.ReadInt64(v[0])-1], Partition: ledger.Partition(session.ReadInt32(v[1])),
			ID: ledger.KeyID(session.ReadInt64(v[2]))})
		return nil
	}, session.Int32Param(r.namespace), items.Param(), locations.Param())
	return found, err
}

// Locations returns the first most locations, by their bytes, at which an item has a valid record.
func (r *Snapshot) Locations(ctx context.Context, item string, most int64) ([]string, error) {
	var found []string
	err := r.stream(ctx, "find locations", "keys_of_item", func(v [][]byte) error {
		found = append(found, string(v[0]))
		return nil
	}, session.Int32Param(r.namespace), []byte(item), session.Int64Param(most))
	return found, err
}

// Frontiers returns the frontier of every partition in order.
func (r *Snapshot) Frontiers(ctx context.Context) ([]store.Cut, error) {
	rows, err := r.session.Query(ctx, "positions", r.namespace)
	if err != nil {
		return nil, session.Before("read positions", err)
	}
	cuts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c store.Cut, err error) {
		return c, row.Scan(&c.Partition, &c.Frontier)
	})
	return cuts, session.Before("read positions", err)
}

// Entries calls fn for the decisions of a key at offsets from..to-1, in offset order, with their receipts where published.
// The entry and what it points to belong to fn only until it returns.
func (r *Snapshot) Entries(ctx context.Context, k StoredKey, from, to ledger.Frontier, published bool, fn func(*Entry) error) error {
	var one entries
	return r.stream(ctx, "read journal of a key", "key_journal", func(v [][]byte) error {
		e, err := one.read(v, one.decisions.Read)
		if err != nil {
			return err
		}
		e.Decision.Assertion.Key = k.Key
		return fn(e)
	}, session.Int32Param(r.namespace), session.Int32Param(int32(k.Partition)), session.Int64Param(int64(k.ID)),
		session.Int64Param(int64(from)), session.Int64Param(int64(to)), session.BoolParam(published))
}

// Outputs calls fn for at most most decisions with outputs of a partition at offsets from..to-1, in offset order, with
// their receipts. The entry and what it points to belong to fn only until it returns.
func (r *Snapshot) Outputs(ctx context.Context, p ledger.Partition, from, to ledger.Frontier, most int64, fn func(*Entry) error) error {
	return r.keyed(ctx, "read outputs", "outputs_after", fn, session.Int32Param(r.namespace), session.Int32Param(int32(p)),
		session.Int64Param(int64(from)), session.Int64Param(int64(to)), session.Int64Param(most))
}

// Changed calls fn for every decision below to of every key that has outputs at offsets from..to-1: key after key by item
// bytes and location bytes, each in offset order, without receipts. The entry and what it points to belong to fn only
// until it returns.
func (r *Snapshot) Changed(ctx context.Context, p ledger.Partition, from, to ledger.Frontier, fn func(*Entry) error) error {
	return r.keyed(ctx, "read changed keys", "changed_keys", fn, session.Int32Param(r.namespace), session.Int32Param(int32(p)),
		session.Int64Param(int64(from)), session.Int64Param(int64(to)))
}

func (r *Snapshot) keyed(ctx context.Context, verb, name string, fn func(*Entry) error, params ...[]byte) error {
	var one entries
	return r.stream(ctx, fmt.Sprintf("%s of partition %d", verb, session.ReadInt32(params[1])), name, func(v [][]byte) error {
		e, err := one.read(v, one.decisions.ReadKeyed)
		if err != nil {
			return err
		}
		return fn(e)
	}, params...)
}

// Columns behind those that package row reads.
const (
	committedColumn = iota + 16
	receiptsColumn
)

// entries reads rows into one entry after the other.
type entries struct {
	entry     Entry
	decisions row.Decisions
}

func (r *entries) read(v [][]byte, decode func([][]byte, *ledger.Decision) error) (*Entry, error) {
	r.entry = Entry{Receipts: r.entry.Receipts[:0], Committed: moment(session.ReadInt64(v[committedColumn]))}
	if err := decode(v, &r.entry.Decision); err != nil {
		return nil, err
	}
	const size = 32
	packed := v[receiptsColumn]
	for ; len(packed) >= size; packed = packed[size:] {
		field := func(i int) int64 { return int64(binary.BigEndian.Uint64(packed[8*i:])) }
		one := Receipt{Acknowledged: moment(field(3))}
		one.First, one.Next, one.Offset = ledger.Sequence(field(0)), ledger.Sequence(field(1)), ledger.Offset(field(2))
		r.entry.Receipts = append(r.entry.Receipts, one)
	}
	return &r.entry, nil
}

// moment turns microseconds since 2000-01-01, as the server sends times, into UTC.
func moment(us int64) time.Time {
	const epoch = 946_684_800 // 2000-01-01 in seconds since 1970
	return time.Unix(epoch+us/1e6, us%1e6*1e3).UTC()
}

// Publications returns where outputs of a partition lie, by sequence; those without a receipt are left out.
func (r *Snapshot) Publications(ctx context.Context, p ledger.Partition, sequences []ledger.Sequence) (map[ledger.Sequence]Publication, error) {
	array, found := session.NewInt64s(len(sequences)), make(map[ledger.Sequence]Publication, len(sequences))
	for _, s := range sequences {
		array.Int64(int64(s))
	}
	err := r.stream(ctx, fmt.Sprintf("read receipts of partition %d", p), "publications", func(v [][]byte) error {
		found[sequences[session.ReadInt64(v[0])-1]] = Publication{Offset: ledger.Offset(session.ReadInt64(v[1])), At: moment(session.ReadInt64(v[2]))}
		return nil
	}, session.Int32Param(r.namespace), session.Int32Param(int32(p)), array.Param())
	return found, err
}

// DecidedBy returns the frontier that a partition below frontier end had reached at a time by the database's clock: past
// the last decision committed then or before. Where that clock went back it is one such place of several.
func (r *Snapshot) DecidedBy(ctx context.Context, p ledger.Partition, end ledger.Frontier, at time.Time) (ledger.Frontier, error) {
	found := ledger.Frontier(0)
	for low, high := int64(0), int64(end); low < high; {
		middle := low + (high-low)/2
		offset, committed, err := r.decisionFrom(ctx, p, middle)
		switch {
		case err != nil:
			return 0, err
		case offset < high && !committed.After(at):
			low = offset + 1
			found = ledger.Frontier(low)
		default:
			high = middle
		}
	}
	return found, nil
}

// Underway reports whether a partition's last decision in this snapshot lies below from while another one is being committed: that
// may bear a time that has passed, which DecidedBy does not see yet.
func (r *Snapshot) Underway(ctx context.Context, p ledger.Partition, from ledger.Frontier) (underway bool, err error) {
	err = r.session.QueryRow(ctx, []any{&underway}, "underway", r.namespace, int32(p), int64(from))
	return underway, session.Before(fmt.Sprintf("look for a decision of partition %d under way", p), err)
}

// decisionFrom returns the first decision at or past an offset, 2^63-1 if there is none.
func (r *Snapshot) decisionFrom(ctx context.Context, p ledger.Partition, from int64) (int64, time.Time, error) {
	var offset int64
	var committed time.Time
	err := r.session.QueryRow(ctx, []any{&offset, &committed}, "journal_after", r.namespace, int32(p), from)
	if errors.Is(err, pgx.ErrNoRows) {
		return math.MaxInt64, committed, nil
	}
	return offset, committed, session.Before(fmt.Sprintf("read journal of partition %d", p), err)
}

// PublishedBy returns the first sequence of a partition that was not published at a time by the database's clock, and the
// source offset of the decision that holds the one before it, 0 where nothing was.
func (r *Snapshot) PublishedBy(ctx context.Context, p ledger.Partition, at time.Time) (next ledger.Sequence, source ledger.Offset, err error) {
	end := int64(math.MaxInt64)
	for low, high := int64(0), end; low < high; {
		middle := low + (high-low)/2
		last, offset, acknowledged, err := r.receiptPast(ctx, p, middle)
		switch {
		case err != nil:
			return 0, 0, err
		case last < end && !acknowledged.After(at):
			low, next, source = last, ledger.Sequence(last), offset
		default:
			high = middle
		}
	}
	return next, source, nil
}

// receiptPast returns the receipt that ends past a sequence first: its end, 2^63-1 if there is none.
func (r *Snapshot) receiptPast(ctx context.Context, p ledger.Partition, past int64) (next int64, source ledger.Offset, at time.Time, err error) {
	err = r.session.QueryRow(ctx, []any{&next, &source, &at}, "receipt_after", r.namespace, int32(p), past)
	if errors.Is(err, pgx.ErrNoRows) {
		return math.MaxInt64, 0, at, nil
	}
	return next, source, at, session.Before(fmt.Sprintf("read receipts of partition %d", p), err)
}
