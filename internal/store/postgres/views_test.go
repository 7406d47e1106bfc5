package postgres_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/ledger"
	"amends/internal/store"
)

type outboxRow struct {
	Sequence, Version, CauseOffset int64
	Kind                           string
	Item                           *string
	Day                            ledger.Day
	Present                        bool
	Close, Previous                *int64
	Blocked                        *bool
	Output                         *int64
}

// expectedRow is what the outbox view should say of a change.
func expectedRow(d *ledger.Decision, i int) outboxRow {
	c := &d.Changes[i]
	r := outboxRow{Sequence: int64(d.Sequence) + int64(i), Version: int64(c.Version), CauseOffset: int64(d.Offset), Kind: c.Kind.String(),
		Day: c.Day, Present: c.Present}
	if c.Present && c.Kind != ledger.TrustStatus {
		r.Close = &c.Close
	}
	if c.Present && c.Kind == ledger.Alert {
		r.Previous = &c.Previous
	}
	if c.Kind == ledger.TrustStatus {
		r.Blocked = &c.Status.Blocked
	}
	return r
}

func TestOutboxViewDecodesTheJournal(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	o, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{keys: 1}
	batch := f.batch(3)
	blocked := ledger.Status{Blocked: true, More: 1 << 40, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "x", Revision: 300}}}
	changes := [][]ledger.Change{
		{
			{Kind: ledger.Balance, Day: ledger.MinDay, Version: 1, Present: true, Close: math.MinInt64},
			{Kind: ledger.Alert, Day: ledger.MinDay, Version: math.MaxInt64, Present: true, Close: math.MinInt64, Previous: math.MaxInt64},
			{Kind: ledger.Balance, Day: ledger.MinDay + 1, Version: 300, Present: true, Close: math.MaxInt64},
			{Kind: ledger.Balance, Day: ledger.MinDay + 31, Version: 2},
			{Kind: ledger.Alert, Day: ledger.MinDay + 62, Version: 1, Present: true, Close: -1, Previous: 5},
			{Kind: ledger.Balance, Day: ledger.MaxDay, Version: 1, Present: true},
			{Kind: ledger.TrustStatus, Version: 1, Present: true, Status: &ledger.Status{}},
		},
		{{Kind: ledger.TrustStatus, Version: 2, Present: true, Status: &blocked}},
		{{Kind: ledger.Alert, Day: benchDay, Version: 7}},
	}
	var want []outboxRow
	next := ledger.Sequence(0)
	for i := range batch.Decisions {
		d := &batch.Decisions[i]
		d.Changes, d.Sequence = changes[i], next
		next += ledger.Sequence(len(d.Changes))
		for at := range d.Changes {
			want = append(want, expectedRow(d, at))
		}
	}
	batch.NextSequence = next
	if err := n.Commit(ctx, o.Token, batch); err != nil {
		t.Fatal(err)
	}
	l, err := n.AcquireService(ctx, store.Relay, 0, "r", 1e9)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []store.Receipt{{First: 0, Next: 3, Offset: 10}, {First: 3, Next: 8, Offset: 20}} {
		if err := n.Acknowledge(ctx, l, r); err != nil {
			t.Fatal(err)
		}
		for s := r.First; s < r.Next; s++ {
			at := int64(r.Offset) + int64(s-r.First)
			want[s].Output = &at
		}
	}
	item := f.key(0).Item
	for i := range want {
		want[i].Item = &item
	}
	rows, err := connect(t, url).Query(ctx, `SELECT sequence, version, cause_offset, kind, item, coalesce(day - DATE '0001-01-01' + 1, 0), present, close, previous,
		blocked, output_offset FROM amends.outbox ORDER BY sequence`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r outboxRow, err error) {
		return r, row.Scan(&r.Sequence, &r.Version, &r.CauseOffset, &r.Kind, &r.Item, &r.Day, &r.Present, &r.Close, &r.Previous, &r.Blocked, &r.Output)
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("outbox (-want +got):\n%s", d)
	}
	var published string
	err = connect(t, url).QueryRow(ctx, `SELECT string_agg(coalesce((SELECT r.first_sequence FROM amends.receipts r
		WHERE r.acknowledged_at = amends.published_at(r.namespace_id, 0, s))::text, '-'), ' ' ORDER BY s) FROM generate_series(0, 8) s`).Scan(&published)
	if want := "0 0 0 3 3 3 3 3 -"; err != nil || published != want {
		t.Errorf("sequences were published with receipts %q, want %q, %v", published, want, err)
	}
	var latest, records int
	err = connect(t, url).QueryRow(ctx, `SELECT (SELECT count(*) FROM amends.output_state), (SELECT records FROM amends.key_state)`).Scan(&latest, &records)
	if err != nil || latest != 8 || records != 3 {
		t.Errorf("%d outputs, %d records, %v", latest, records, err)
	}
}

func TestPeoplesViewsOfTheView(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	l, err := n.AcquireService(ctx, store.View, 0, "v", 1e9)
	if err != nil {
		t.Fatal(err)
	}
	page := &store.ViewPage{Before: store.ViewPosition{Cause: -1}, Next: store.ViewPosition{Cause: 10}}
	add := func(item string, kind ledger.OutputKind, day ledger.Day, r store.ViewRow) {
		r.ID = ledger.OutputID{Key: ledger.StockKey{Item: item, Location: "berlin"}, Kind: kind, Day: day}
		r.Sequence, r.Version, r.Count = page.Next.Sequence, 1, 1
		r.Cause = store.Cause{TxnID: "T\x00", Offset: 3, Revision: 4}
		page.Changes = append(page.Changes, store.ViewChange{Row: r})
		page.Next.Sequence++
		page.Next.Output++
	}
	add("widget", ledger.Balance, benchDay, store.ViewRow{Present: true, Close: 50})
	add("widget", ledger.Balance, benchDay+1, store.ViewRow{})
	add("widget", ledger.Alert, benchDay, store.ViewRow{Present: true, Close: 50, Previous: 80, Threshold: 60})
	add("widget", ledger.TrustStatus, 0, store.ViewRow{Present: true, Status: &ledger.Status{}})
	blocked := ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "a\x00b", Revision: 1}}}
	add("nul\x00", ledger.Balance, benchDay, store.ViewRow{Present: true, Close: -7})
	add("nul\x00", ledger.TrustStatus, 0, store.ViewRow{Present: true, Status: &blocked})
	if err := n.ApplyViewInput(ctx, l, page); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		`SELECT string_agg(format('%s %s %s %s %s %s', coalesce(item, '?'), day, present, coalesce(close::text, '-'), trusted, coalesce(cause_txn_id, '?')),
			', ' ORDER BY item_bytes, day) FROM amends.balances`: "? 2026-01-01 t -7 f ?, widget 2026-01-01 t 50 t ?, widget 2026-01-02 f - t ?",
		`SELECT string_agg(format('%s %s %s>%s<%s %s', item, day, previous, close, threshold, trusted), ', ') FROM amends.alerts`:         "widget 2026-01-01 80>50<60 t",
		`SELECT string_agg(format('%s %s %s', coalesce(item, '?'), status, trusted), ', ' ORDER BY item_bytes) FROM amends.statuses`:      "? BLOCKED f, widget READY t",
		`SELECT payload::text FROM amends.statuses WHERE NOT trusted`:                                                                     `{"status":"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"a\u0000b","revision":1}],"more":0}`,
		`SELECT string_agg(encode(item_bytes, 'escape'), ' ' ORDER BY item_bytes) FROM amends.statuses`:                                   `nul\000 widget`,
		`SELECT amends.scaled(-12345, 3)::text || ' ' || amends.scaled(9223372036854775807, 0)::text || ' ' || amends.scaled(5, 9)::text`: "-12.345 9223372036854775807 0.000000005",
	} {
		var got string
		if err := connect(t, url).QueryRow(ctx, sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", sql, got, err, want)
		}
	}
}
