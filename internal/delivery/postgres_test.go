package delivery_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// TestSC28WorkedExampleOnPostgres: the same bytes, rows and receipts from a database, in pages of any size.
func TestSC28WorkedExampleOnPostgres(t *testing.T) {
	for _, outputs := range []int{1, 3, 100} {
		w := newPostgresWorld(t, twoPartitions)
		w.commit(t, 0, worked(t)...)
		ro, vo := w.relayOptions(), w.viewOptions()
		ro.Serial, ro.PageOutputs, vo.PageOutputs = false, outputs, outputs
		if err := w.relay(t, ro, w.lease(t, store.Relay, 0, "a")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(workedEnvelopes(), values(w.published(t, 0))); d != "" {
			t.Fatal(d)
		}
		w.checkReceipts(t, 0, workedEnvelopes())
		if err := w.materialize(t, vo, w.lease(t, store.View, 0, "a")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
			t.Fatal(d)
		}
	}
}

// TestSC21SC17OnPostgres: repetitions need stored rows, a violation is stored with its bytes, and the stop is durable.
func TestSC21SC17OnPostgres(t *testing.T) {
	w := newPostgresWorld(t, twoPartitions)
	w.commit(t, 0, worked(t)...)
	if err := w.relay(t, w.relayOptions(), w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	l := w.lease(t, store.View, 0, "a")
	if err := w.materialize(t, w.viewOptions(), l); err != nil {
		t.Fatal(err)
	}
	e := workedEnvelopes()
	w.publish(t, 0, widgetKey, e[3], e[10], e[1])
	if err := w.materialize(t, w.viewOptions(), l); err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(e[10], `"txn_id":"T-3"`, `"txn_id":"T\u0000"`, 1)
	w.publish(t, 0, widgetKey, bad)
	for range 2 {
		var stop *delivery.StoppedError
		if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); !errors.As(err, &stop) || stop.Offset != 14 {
			t.Fatal(err)
		}
	}
	st := w.state(t, 0)
	if len(st.violations) != 1 || string(st.violations[0].Value) != bad || !strings.HasPrefix(st.violations[0].Reason, "REPETITION_DIFFERS: ") {
		t.Fatalf("%+v", st.violations)
	}
	if d := cmp.Diff(workedRows, st.show()); d != "" {
		t.Fatal(d)
	}
}

// TestRowsRefuteAnAssumptionOnPostgres: the page is refused, decided on its rows, and stops at the right record.
func TestRowsRefuteAnAssumptionOnPostgres(t *testing.T) {
	w := newPostgresWorld(t, twoPartitions)
	e := workedEnvelopes()
	w.publish(t, 0, widgetKey, e[0], e[1], strings.Replace(e[2], `"version":1`, `"version":7`, 1), e[3], e[4])
	var stop *delivery.StoppedError
	if err := w.materialize(t, w.viewOptions(), w.lease(t, store.View, 0, "a")); !errors.As(err, &stop) || stop.Offset != 2 {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"2026-01-01 balance v1 100", "- status v1 0"}, w.state(t, 0).show()); d != "" {
		t.Fatal(d)
	}
}

// TestSC33LargeRepairOnPostgres: 3,650 days twice, in small relay pages and one view page a repair.
func TestSC33LargeRepairOnPostgres(t *testing.T) {
	w := newPostgresWorld(t, twoPartitions)
	want := append(w.fill(t, 0, 1, 3_650), w.fill(t, 0, 1, 3_650)...)
	o := w.relayOptions()
	o.Serial, o.PageOutputs = false, 1_000
	if err := w.relay(t, o, w.lease(t, store.Relay, 0, "a")); err != nil {
		t.Fatal(err)
	}
	w.checkReceipts(t, 0, want)
	vo := w.viewOptions()
	vo.PageOutputs = 500
	s := delivery.NewViewStepper(vo, w.lease(t, store.View, 0, "a"))
	defer s.Close()
	err := settle(t, s, func(delivery.Progress) bool {
		if n := w.viewAt(t, 0).Output; n != 0 && n != 3_650 && n != 7_300 {
			t.Fatalf("the frontier is %d, inside a repair", n)
		}
		return w.viewAt(t, 0).Output == 7_300
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range w.state(t, 0).rows {
		if r.Version != 2 || r.Cause.Offset != ledger.Offset(1) {
			t.Fatalf("row %+v", r)
		}
	}
}
