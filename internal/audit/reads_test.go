package audit_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// The reads of what changed give what the reads of everything give: decisions of a range, rows by their ids, strange
// identifiers and statuses among them; an id without a row gives none.
func TestReadsOfWhatChangedEqualReadsOfEverything(t *testing.T) {
	t.Parallel()
	w := damaged(t)
	ctx := t.Context()
	w.ok(w.ns.Look(ctx, func(s *reader.Snapshot) error {
		for p := range ledger.Partition(2) {
			var rows, byID []store.ViewRow
			ids := []ledger.OutputID{{Key: ledger.StockKey{Item: "nowhere", Location: "x"}, Kind: ledger.Balance, Day: 1}}
			w.ok(s.ViewRows(ctx, p, func(r store.ViewRow) error {
				rows, ids = append(rows, r), append(ids, r.ID)
				return nil
			}))
			ids = append(ids, ledger.OutputID{Key: rows[0].ID.Key, Kind: ledger.Balance, Day: ledger.MaxDay})
			w.ok(s.Rows(ctx, p, ids, func(r store.ViewRow) error {
				byID = append(byID, r)
				return nil
			}))
			w.ok(s.Rows(ctx, 1-p, ids, func(store.ViewRow) error {
				t.Error("a row of another partition")
				return nil
			}))
			for _, list := range [][]store.ViewRow{rows, byID} {
				slices.SortFunc(list, func(a, b store.ViewRow) int { return cmp.Compare(a.Sequence, b.Sequence) })
			}
			if d := gocmp.Diff(rows, byID); len(rows) < 10 || d != "" {
				t.Errorf("%d rows of partition %d (-all +by id):\n%s", len(rows), p, d)
			}
			for _, span := range [][2]ledger.Offset{{-1, 1 << 40}, {2, 9}, {3, 3}} {
				var all, between []ledger.Decision
				w.ok(s.Journal(ctx, p, func(d *ledger.Decision) error {
					if d.Offset > span[0] && d.Offset <= span[1] && len(d.Changes) > 0 {
						all = append(all, *d)
					}
					return nil
				}))
				w.ok(s.Decided(ctx, p, span[0], span[1], func(d *ledger.Decision) error {
					between = append(between, *d)
					return nil
				}))
				if d := gocmp.Diff(all, between); d != "" {
					t.Errorf("decisions of partition %d in %v (-all +between):\n%s", p, span, d)
				}
			}
		}
		return nil
	}))
}
