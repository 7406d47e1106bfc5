package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/wire"
)

// fiveRecords are the worked example's.
func fiveRecords() []ledger.Assertion {
	return []ledger.Assertion{
		active("T-1", 1, ledger.Receipt, 100, 1),
		active("T-2", 1, ledger.Issue, 20, 2),
		active("T-3", 1, ledger.Issue, 30, 3),
		active("T-1", 2, ledger.Receipt, 70, 1),
		cancelled("T-3", 2),
	}
}

// final folds decisions to what is present at the end, without versions.
func final(decisions []ledger.Decision) map[string]string {
	out := map[string]string{}
	for _, d := range decisions {
		for _, c := range d.Changes {
			id := fmt.Sprintf("%s %s @%d", d.Assertion.Key.Item, c.Kind, c.Day)
			if !c.Present {
				delete(out, id)
				continue
			}
			c.Version = 0
			out[id] = describe(c)
		}
	}
	return out
}

// outputs returns the outputs of decisions in order, causes aside.
func outputs(decisions []ledger.Decision) []string {
	var out []string
	for _, d := range decisions {
		for i, c := range d.Changes {
			out = append(out, fmt.Sprintf("%d %s %s", d.Sequence+ledger.Sequence(i), d.Assertion.Key.Item, describe(c)))
		}
	}
	return out
}

// TestSC05 delivers every record twice, in every interleaving that keeps first deliveries in order.
func TestSC05RedeliveriesChangeNothing(t *testing.T) {
	t.Parallel()
	want, interleavings := []string(nil), 0
	once := newLine(t, worked(t), 0, roomy)
	for i, a := range fiveRecords() {
		once.step(once.record(ledger.Offset(i), a))
	}
	want = outputs(once.journal)
	var deliver func(order []int, first int, open []int)
	deliver = func(order []int, first int, open []int) {
		if first == 5 && len(open) == 0 {
			interleavings++
			l := newLine(t, once.cfg, 0, roomy)
			var recs []wire.Decoded
			for at, i := range order {
				recs = append(recs, l.record(ledger.Offset(at), fiveRecords()[i]))
			}
			l.step(recs...)
			if got := outputs(l.journal); !slices.Equal(got, want) {
				t.Fatalf("order %v: %v, want %v", order, got, want)
			}
			return
		}
		if first < 5 {
			deliver(append(slices.Clone(order), first), first+1, append(slices.Clone(open), first))
		}
		for i, again := range open {
			deliver(append(slices.Clone(order), again), first, slices.Delete(slices.Clone(open), i, i+1))
		}
	}
	deliver(nil, 0, nil)
	if interleavings != 945 { // 10! / (2^5 * 5!)
		t.Errorf("%d interleavings, want 945", interleavings)
	}
}

// TestSC06 takes the five records in all 120 orders: the end is the same, and the oracle agrees in each.
func TestSC06AnyOrderEndsTheSame(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"widget balance @739617": "balance @1 v0 70", "widget balance @739618": "balance @2 v0 50",
		"widget alert @739618": "alert @2 v0 70 -> 50", "widget status @0": "status v0 READY",
	}
	cfg := worked(t)
	orders := permutations(5)
	if len(orders) != 120 {
		t.Fatalf("%d orders", len(orders))
	}
	for _, order := range orders {
		l, o := newLine(t, cfg, 0, roomy), oracle.New(oracleConfig(cfg))
		for at, i := range order {
			rec := l.record(ledger.Offset(at), fiveRecords()[i])
			l.step(rec)
			o.Add(0, rec.Record.Offset, rec.Record.Key, rec.Record.Value)
		}
		if diff := cmp.Diff(want, final(l.journal)); diff != "" {
			t.Fatalf("order %v (-want +got):\n%s", order, diff)
		}
		e := o.Expected(widget)
		if e.Status.Blocked || !slices.Equal(e.Balances, []oracle.Balance{{Day: day(1), Close: 70}, {Day: day(2), Close: 50}}) ||
			!slices.Equal(e.Alerts, []oracle.Alert{{Day: day(2), Previous: 70, Close: 50, Threshold: 60}}) {
			t.Fatalf("order %v: the oracle expects %+v", order, e)
		}
	}
}

// TestC12 enters movements of one day in every order: same close, same final outputs.
func TestC12OneDayInAnyOrder(t *testing.T) {
	t.Parallel()
	moves := []ledger.Assertion{active("A", 1, ledger.Receipt, 7, 1), active("B", 1, ledger.Issue, 90, 1), active("C", 1, ledger.Receipt, 100, 1),
		active("D", 1, ledger.Issue, 2, 1), active("E", 1, ledger.Receipt, 45, 1)}
	want := map[string]string{"widget balance @739617": "balance @1 v0 60", "widget status @0": "status v0 READY"}
	for _, order := range permutations(len(moves)) {
		l := newLine(t, worked(t), 0, roomy)
		for at, i := range order {
			l.step(l.record(ledger.Offset(at), moves[i]))
		}
		if diff := cmp.Diff(want, final(l.journal)); diff != "" {
			t.Fatalf("order %v (-want +got):\n%s", order, diff)
		}
	}
}

func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for i := 0; i <= len(p); i++ {
			out = append(out, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return out
}

// TestSC33 corrects day 1 of 3,650: 3,650 new versions in one decision, each exact. C1 is the same with 50,000 movements.
// Shows B10.
func TestSC33DeepCorrection(t *testing.T) {
	t.Parallel()
	const days = 3_650
	l := newLine(t, config(t, manifest.StockKey{Key: widget, Terms: terms(0, nil)}), 0, roomy)
	var recs []wire.Decoded
	for i := range days {
		recs = append(recs, l.record(ledger.Offset(i), active(fmt.Sprintf("T-%d", i), 1, ledger.Receipt, 2, i+1)))
	}
	l.step(recs...)
	d := l.step(l.record(days, active("T-0", 2, ledger.Receipt, 3, 1)))[0]
	if len(d.Changes) != days {
		t.Fatalf("%d outputs, want %d", len(d.Changes), days)
	}
	for i, c := range d.Changes {
		if want := (ledger.Change{Kind: ledger.Balance, Day: day(i + 1), Version: 2, Present: true, Close: int64(2*i + 3)}); c != want {
			t.Fatalf("output %d: %+v, want %+v", i, c, want)
		}
	}
	if l.work.RewindDays != days-1 || l.work.RefoldedDays != 2*days {
		t.Errorf("work %+v", l.work)
	}
}

// TestC01 cancels a movement of day 1 under 50,000 movements of one key on 1,000 days.
func TestC01CancellationUnderManyMovements(t *testing.T) {
	t.Parallel()
	const movements, days = 50_000, 1_000
	l := newLine(t, config(t, manifest.StockKey{Key: widget, Terms: terms(0, nil)}), 0, roomy)
	recs := make([]wire.Decoded, movements)
	for i := range recs {
		recs[i] = l.record(ledger.Offset(i), active(fmt.Sprintf("T-%d", i), 1, ledger.Receipt, 1, i*days/movements+1))
	}
	l.step(recs...)
	d := l.step(l.record(movements, cancelled("T-7", 2)))[0]
	if len(d.Changes) != days {
		t.Fatalf("%d outputs, want %d", len(d.Changes), days)
	}
	for i, c := range d.Changes {
		if want := int64(50*(i+1) - 1); c.Close != want || c.Day != day(i+1) || c.Version != 51 {
			t.Fatalf("output %d: %+v, want close %d at version 51", i, c, want)
		}
	}
}

// TestC35 rejects a quantity beyond 2^63-1 and goes on; the rejection takes no sequence and touches no state.
func TestC35RejectedRecordsDecideNothing(t *testing.T) {
	t.Parallel()
	l := newLine(t, worked(t), 0, roomy)
	l.step(l.record(0, active("T-1", 1, ledger.Receipt, 100, 1)))
	value := []byte(`{"schema":1,"txn_id":"T-2","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":327267367867168100000}`)
	d := l.step(l.decode(ledger.SourceRecord{Offset: 1, Key: wire.AppendKey(nil, widget), Value: value})...)[0]
	if d.Rejection != ledger.InvalidValue || d.Evidence == nil || string(d.Evidence.Value) != string(value) || d.Changes != nil || d.Class != 0 {
		t.Errorf("%+v", d)
	}
	if l.pos.Frontier != 2 || l.pos.Sequence != 2 {
		t.Errorf("position %+v, want frontier 2, sequence 2", l.pos)
	}
	if d = l.step(l.record(2, active("T-2", 1, ledger.Issue, 30, 2)))[0]; d.Sequence != 2 || d.KeyID != 0 || d.NewKey {
		t.Errorf("%+v", d)
	}
	if l.work.Rejected != 1 || l.work.Accepted != 2 || l.work.Records != 3 {
		t.Errorf("work %+v", l.work)
	}
}

// TestKeyIDs: a key is named by the offset of its first valid record, once.
func TestKeyIDs(t *testing.T) {
	t.Parallel()
	gadget := ledger.StockKey{Item: "gadget", Location: "berlin"}
	l := newLine(t, config(t, manifest.StockKey{Key: widget, Terms: terms(0, nil)}, manifest.StockKey{Key: gadget, Terms: terms(0, nil)}), 0, roomy)
	b := active("T-1", 1, ledger.Receipt, 1, 1)
	b.Key = gadget
	l.step(l.decode(ledger.SourceRecord{Offset: 3})...)
	got := l.step(l.record(5, b), l.record(9, active("T-1", 1, ledger.Receipt, 1, 1)), l.record(10, b))
	for i, want := range []struct {
		id    ledger.KeyID
		first bool
	}{{5, true}, {9, true}, {5, false}} {
		if got[i].KeyID != want.id || got[i].NewKey != want.first {
			t.Errorf("decision %d: key %d new %v, want %+v", i, got[i].KeyID, got[i].NewKey, want)
		}
	}
}
