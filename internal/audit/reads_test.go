package audit_test

import (
	"cmp"
	"errors"
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

// The verified cut moves back by a full cycle only, and a cycle that verified nothing leaves it with its time and its server.
func TestVerifiedCutDoesNotMoveBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	cycle := store.AuditCycle{Status: "PASS", Server: store.Server{System: 1<<63 + 5, Timeline: 1<<32 - 1}, Frontier: 9, Output: 8, Sequence: 7, Cause: 6, Verified: true, Full: true}
	record := func(c store.AuditCycle) store.Audit {
		t.Helper()
		w.ok(w.ns.Upkeep().RecordAudit(t.Context(), []store.AuditCycle{c}))
		return w.state().Partitions[0]
	}
	first := record(cycle)
	if first.Frontier != 9 || first.Output != 8 || first.Sequence != 7 || first.Cause != 6 || first.Server != cycle.Server || first.Verified.IsZero() || first.Full.IsZero() || first.Saved != nil {
		t.Errorf("%+v", first)
	}
	for _, c := range []store.AuditCycle{
		{Status: "BLOCKED", Server: store.Server{System: 1, Timeline: 1}, Frontier: 8, Output: 7, Sequence: 6, Cause: 5, Verified: true},
		{Status: "DRIFT", Server: store.Server{System: 1, Timeline: 1}, Frontier: 20, Output: 20, Sequence: 20, Cause: 19, Differences: 2, Detail: "why\x00"},
	} {
		got := record(c)
		if got.Checked.Equal(first.Checked) || got.Status != c.Status || got.Differences != c.Differences {
			t.Errorf("%+v", got)
		}
		got.Checked, got.Status, got.Differences, got.Detail = first.Checked, first.Status, first.Differences, first.Detail
		if d := gocmp.Diff(first, got); d != "" {
			t.Errorf("%+v moved it (-before +after):\n%s", c, d)
		}
	}
	for _, at := range []ledger.Frontier{7, 10} {
		cycle.Frontier, cycle.Server.Timeline = at, 2
		if got := record(cycle); got.Frontier != at || got.Server != cycle.Server || !got.Verified.After(first.Verified) {
			t.Errorf("%+v", got)
		}
	}
	saved := store.SavedState{Frontier: 10, Format: 1, Chunks: 1}
	for name, err := range map[string]error{
		"a partition without a cycle": w.ns.Upkeep().SaveAudit(t.Context(), 1, saved, [][]byte{{1}}),
		"no chunks":                   w.ns.Upkeep().SaveAudit(t.Context(), 0, saved, nil),
		"a status that is none":       w.ns.Upkeep().RecordAudit(t.Context(), []store.AuditCycle{{Status: "FINE"}}),
	} {
		if !errors.Is(err, store.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
