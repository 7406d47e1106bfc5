package inspect

import (
	"context"
	"io"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/store"
)

// Columns names the fields of a row as ShowRows gives them.
func Columns() []string {
	return []string{"output", "item", "location", "day", "version", "present", "close", "previous", "threshold", "status", "partition", "sequence",
		"cause_offset", "cause_txn_id", "cause_revision", "value"}
}

// ShowRows calls fn for every row of the view, withdrawn ones included, in the order of ShowJSON. Identifiers are exact;
// what an output does not have is empty. Quantities are whole units, but in the last column, which says what ShowText shows.
func ShowRows(ctx context.Context, namespace string, scale int32, from Snapshots, fn func(fields ...string) error) error {
	return show(ctx, io.Discard, namespace, from, func(v *shown) error {
		return v.rows(every, func(r *store.ViewRow) error { return fn(append(fieldsOf(r), Value(r, scale))...) })
	})
}

func fieldsOf(r *store.ViewRow) []string {
	var day, closing, previous, threshold, status string
	if r.ID.Kind != ledger.TrustStatus {
		day = r.ID.Day.String()
	}
	if r.Present {
		switch r.ID.Kind {
		case ledger.Balance:
			closing = decimal(r.Close)
		case ledger.Alert:
			closing, previous, threshold = decimal(r.Close), decimal(r.Previous), decimal(r.Threshold)
		default:
			status = Value(r, 0)
		}
	}
	return []string{r.ID.Kind.String(), r.ID.Key.Item, r.ID.Key.Location, day, decimal(r.Version), strconv.FormatBool(r.Present), closing, previous,
		threshold, status, decimal(r.Cause.Partition), decimal(r.Sequence), decimal(r.Cause.Offset), r.Cause.TxnID, decimal(r.Cause.Revision)}
}

func decimal[N ~int32 | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }
