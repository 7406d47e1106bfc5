package audit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"amends/internal/ledger"
	"amends/internal/verify"
)

// The recomputation is independent (S10): it says the same when everything that the worker and the relay have stored is gone,
// and a journal that was tampered with changes nothing but what a deep verification says.
func TestS10RecomputationNeedsNothingStored(t *testing.T) {
	t.Parallel()
	w := damaged(t)
	live := func() *verify.Report {
		r, err := w.job().Run(t.Context())
		w.ok(err)
		return r
	}
	whole := live()
	if whole.Status != verify.Blocked || whole.Outputs == 0 || whole.Keys != 7 {
		t.Fatalf("%+v", whole)
	}
	same := func(what string) {
		t.Helper()
		if d := cmp.Diff(whole, live(), cmpopts.IgnoreFields(verify.Report{}, "Elapsed"), cmpopts.IgnoreUnexported(verify.Report{})); d != "" {
			t.Errorf("%s (-before +after):\n%s", what, d)
		}
	}
	w.exec(1, "UPDATE amends.journal SET quantity = quantity + 1 WHERE source_offset = 0 AND partition = (SELECT max(partition) FROM amends.journal)")
	same("a tampered journal")
	if r := w.deep(); r.Status != verify.Drift || r.First.What != verify.Journal || r.First.Offset != 0 {
		t.Errorf("deep: %s, first %+v", r.Status, r.First)
	}
	_, err := w.conn.Exec(t.Context(), `TRUNCATE amends.journal, amends.quarantine, amends.keys, amends.snapshots, amends.receipts, amends.leases,
		amends.verifications, amends.audit_state, amends.audit_chunks`)
	w.ok(err)
	same("every table but the view's, and the positions, is empty")

	// What it expects does not come from the view either: each READY key's outputs and each status are missed, one by one.
	var want int64
	w.ok(w.conn.QueryRow(t.Context(), `SELECT count(*) FROM amends.view_rows AS v JOIN amends.view_keys AS k USING (namespace_id, partition, key_id)
		WHERE v.present AND (v.kind = 3 OR k.item <> 'cog')`).Scan(&want))
	_, err = w.conn.Exec(t.Context(), "TRUNCATE amends.view_rows, amends.view_keys")
	w.ok(err)
	r := live()
	if r.Status != verify.Drift || r.Differences != want || r.First.What != verify.Missing || r.First.Expected.Payload == nil {
		t.Errorf("%s, %d differences, want %d; first %+v", r.Status, r.Differences, want, r.First)
	}
	if cog := (ledger.StockKey{Item: "cog", Location: "berlin"}); len(r.Blocked) != 1 || r.Blocked[0].Key != cog {
		t.Errorf("%+v", r.Blocked)
	}
}
