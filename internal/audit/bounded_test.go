package audit_test

import (
	"testing"
	"time"

	"amends/internal/audit"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/verify"
)

// rows counts what audits recorded among the verifications.
func (w *world) rows() (n int) {
	w.Helper()
	w.ok(w.conn.QueryRow(w.Context(), "SELECT count(*) FROM amends.verifications WHERE audit").Scan(&n))
	return n
}

// says is the status of the verification that tells most of now.
func (w *world) says() string {
	w.Helper()
	var last *store.Verification
	w.ok(w.ns.Look(w.Context(), func(s *reader.Snapshot) (err error) {
		last, err = s.LastVerification(w.Context())
		return err
	}))
	return last.Status
}

// S10: while cycles find the same, however often they run, one row a minute says so; the partitions' rows tell of every cycle. What
// is new is recorded at once.
func TestS10AuditThatFindsTheSameAddsOneRowAMinute(t *testing.T) {
	t.Parallel()
	w := begun(t)
	running := audit.New(w.options(nil))
	again := "something differs"
	for i, c := range []struct {
		change string
		status verify.Status
		full   string
		rows   int
	}{
		{"UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1", verify.Drift, "partition 0 has no saved state", 1},
		{"", verify.Drift, again, 1},
		{"", verify.Drift, again, 1},
		{"UPDATE amends.view_rows SET close = 101 WHERE close = 100 AND kind = 1", verify.Drift, again, 2}, // another first difference
		{"", verify.Drift, again, 2},
		{"UPDATE amends.verifications SET finished_at = finished_at - interval '1 minute' WHERE differences = 2", verify.Drift, again, 3},
		{"", verify.Drift, again, 3},
		{"UPDATE amends.view_rows SET close = close - 1 WHERE close IN (81, 101) AND kind = 1", verify.Pass, again, 4},
		{"", verify.Pass, "", 4},
	} {
		if c.change != "" {
			_, err := w.conn.Exec(t.Context(), c.change)
			w.ok(err)
		}
		before := time.Time{}
		if i > 0 {
			before = w.state().Partitions[0].Checked
		}
		w.next(running, c.status, c.full)
		if n := w.rows(); n != c.rows || w.says() != string(c.status) {
			t.Errorf("cycle %d: %d rows, want %d; the last says %s, want %s", i, n, c.rows, w.says(), c.status)
		}
		if now := w.state().Partitions[0]; !now.Checked.After(before) || now.Status != string(c.status) {
			t.Errorf("cycle %d: %+v, the one before at %v", i, now, before)
		}
	}
	o := w.options(nil)
	o.FullEvery = 0
	for range 3 {
		w.is(w.once(o), verify.Pass, "it is due")
	}
	if n := w.rows(); n != 4 {
		t.Errorf("%d rows: full cycles that find everything equal add one a minute too", n)
	}
	w.ok(w.ns.RecordVerification(t.Context(), store.Verification{Started: time.Now(), Status: "DRIFT", Differences: 1, Deep: true}))
	w.is(w.once(o), verify.Pass, "the last verification found a difference")
	if n := w.rows(); n != 5 || w.says() != "PASS" { // else the difference would stand
		t.Errorf("%d rows, the last says %s", n, w.says())
	}
}

// Of what audits recorded the newest rows stay, and those that say most of now; what people recorded stays whole.
func TestAuditRowsAreTrimmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	insert := func(n int64, status string, deep, audit bool) {
		t.Helper()
		w.exec(n, `INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail)
			SELECT now(), 0, 0, 0, (SELECT namespace_id FROM amends.namespaces), false, $3::boolean, $4::boolean, $2::text, '[]', '' FROM generate_series(1, $1::bigint)`, n, status, deep, audit)
	}
	trim := func(of string, want int) {
		t.Helper()
		w.ok(w.ns.Upkeep().TrimVerifications(t.Context()))
		var n int
		w.ok(w.conn.QueryRow(t.Context(), "SELECT count(*) FROM amends.verifications WHERE "+of).Scan(&n))
		if n != want {
			t.Errorf("%d rows with %s are left, want %d", n, of, want)
		}
	}
	insert(3, "PASS", true, false)
	insert(5, "PASS", false, true)
	insert(7, "DRIFT", true, true) // the last of them stands until another deep one
	insert(6, "PASS", false, true) // and the last of these came to a result
	insert(store.MaxAuditRows, "INCOMPLETE", true, true)
	trim("status = 'INCOMPLETE'", store.MaxAuditRows)
	trim("audit AND status = 'DRIFT'", 1)
	trim("audit AND status = 'PASS'", 1)
	trim("NOT audit", 3)
	if got := w.says(); got != "DRIFT" {
		t.Errorf("the last verification says %s", got)
	}
	insert(2, "PASS", true, true)
	trim("status = 'INCOMPLETE'", store.MaxAuditRows-2)
	trim("audit", store.MaxAuditRows)
	trim("NOT audit", 3)
}
