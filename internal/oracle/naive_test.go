package oracle

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"amends/internal/ledger"
	"amends/internal/pace"

	"github.com/google/go-cmp/cmp"
)

// naiveClass is S4's table, read off the list of what came before.
func naiveClass(before []ledger.Assertion, a ledger.Assertion) ledger.Class {
	highest, level, exact := ledger.Revision(0), false, false
	for _, b := range before {
		if b.TxnID != a.TxnID {
			continue
		}
		highest = max(highest, b.Revision)
		level = level || b.Revision == a.Revision
		exact = exact || b == a
	}
	switch {
	case exact:
		return ledger.Duplicate
	case a.Revision > highest:
		return ledger.Applied
	case a.Revision == highest:
		return ledger.Conflict
	case !level:
		return ledger.Stale
	}
	return ledger.StaleConflict
}

// naiveExpected computes one key from the list of its records alone, with math/big, slowly.
func naiveExpected(name ledger.StockKey, p ledger.Partition, terms Terms, records []ledger.Assertion) Expectation {
	e := Expectation{Key: name, Partition: p, Known: true}
	ids := map[string]bool{}
	for _, a := range records {
		ids[a.TxnID] = true
	}
	sorted := []string{}
	for id := range ids {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	active := map[ledger.Day][]ledger.Payload{}
	for _, id := range sorted {
		top, payloads := ledger.Revision(0), map[ledger.Payload]bool{}
		for _, a := range records {
			if a.TxnID == id && a.Revision > top {
				top = a.Revision
			}
		}
		for _, a := range records {
			if a.TxnID == id && a.Revision == top {
				payloads[a.Payload] = true
			}
		}
		if len(payloads) > 1 {
			if len(e.Status.Reasons) < 16 {
				e.Status.Reasons = append(e.Status.Reasons, ledger.Reason{Code: ledger.Ambiguous, TxnID: id, Revision: top})
			} else {
				e.Status.More++
			}
			continue
		}
		for p := range payloads {
			if p.State == ledger.Active {
				active[p.Day] = append(active[p.Day], p)
			}
		}
	}
	days := []ledger.Day{}
	for d := range active {
		days = append(days, d)
	}
	slices.Sort(days)
	for _, d := range days {
		if count(active[d], ledger.OpeningCount, 0) < 0 || count(active[d], ledger.ClosingCount, 0) < 0 {
			e.Status.Reasons = append(e.Status.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: d})
			break
		}
	}
	if e.Status.Blocked = len(e.Status.Reasons) > 0; e.Status.Blocked {
		return e
	}
	return naiveFold(e, terms, days, active)
}

func naiveFold(e Expectation, terms Terms, days []ledger.Day, active map[ledger.Day][]ledger.Payload) Expectation {
	previous := big.NewInt(terms.Opening)
	e.Balances = []Balance{}
	for _, d := range days {
		closing := new(big.Int).Set(previous)
		if n := count(active[d], ledger.OpeningCount, 0); n > 0 {
			closing.SetInt64(n - 1)
		}
		for _, p := range active[d] {
			switch p.Kind {
			case ledger.Receipt:
				closing.Add(closing, big.NewInt(int64(p.Quantity)))
			case ledger.Issue:
				closing.Sub(closing, big.NewInt(int64(p.Quantity)))
			}
		}
		if n := count(active[d], ledger.ClosingCount, 0); n > 0 {
			closing.SetInt64(n - 1)
		}
		if !closing.IsInt64() {
			e.Balances, e.Alerts = nil, nil
			e.Status = ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Unrepresentable, Day: d}}}
			return e
		}
		e.Balances = append(e.Balances, Balance{Day: d, Close: closing.Int64()})
		if t := terms.Threshold; t != nil && previous.Int64() >= *t && closing.Int64() < *t {
			e.Alerts = append(e.Alerts, Alert{Day: d, Previous: previous.Int64(), Close: closing.Int64(), Threshold: *t})
		}
		previous = closing
	}
	return e
}

// count returns 1 + the quantity that the counts of a kind state, 0 where there is none, -1 where they disagree. The
// test's counts stay below the largest quantity.
func count(payloads []ledger.Payload, kind ledger.Kind, found int64) int64 {
	for _, p := range payloads {
		if p.Kind == kind {
			if found != 0 && found != int64(p.Quantity)+1 {
				return -1
			}
			found = int64(p.Quantity) + 1
		}
	}
	return found
}

// value writes an assertion as S3 shows it; the test's identifiers need no escapes.
func value(a ledger.Assertion) []byte {
	if a.Payload.State == ledger.Cancelled {
		return fmt.Appendf(nil, `{"schema":1,"txn_id":"%s","revision":%d,"state":"cancelled","item":"%s","location":"%s"}`,
			a.TxnID, a.Revision, a.Key.Item, a.Key.Location)
	}
	return fmt.Appendf(nil, `{"schema":1,"txn_id":"%s","revision":%d,"state":"active","item":"%s","location":"%s","day":"%s","kind":"%s","quantity":%d}`,
		a.TxnID, a.Revision, a.Key.Item, a.Key.Location, a.Payload.Day, a.Payload.Kind, a.Payload.Quantity)
}

func TestOracleEqualsNaiveAfterEveryRecord(t *testing.T) {
	t.Parallel()
	reached := map[string]int{}
	for seed := range uint64(pace.Of(800)) {
		r := rand.New(rand.NewPCG(seed, 1))
		name := ledger.StockKey{Item: "widget", Location: "berlin"}
		limit := int64(r.IntN(60))
		terms := Terms{Opening: int64(r.IntN(100)), Threshold: &limit}
		huge := r.IntN(4) == 0
		if huge {
			terms.Opening = math.MaxInt64 - int64(r.IntN(50))
		}
		o := New(Config{Origin: 1, Partitions: 1, Keys: []Key{{Key: name, Terms: terms}}})
		var records []ledger.Assertion
		txns, revisions := 1+r.IntN(60), 1+r.IntN(3)
		for i := range 80 {
			a := ledger.Assertion{Key: name, TxnID: fmt.Sprintf("T-%d", r.IntN(txns)), Revision: ledger.Revision(1 + r.IntN(revisions)), Payload: ledger.Payload{State: ledger.Cancelled}}
			if i > 60 || seed%3 > 0 && r.IntN(3) > 0 { // a revision of its own keeps the key READY or makes it so again
				a.Revision += ledger.Revision(i) * 8
			}
			if r.IntN(5) > 0 {
				a.Payload = ledger.Payload{State: ledger.Active, Kind: ledger.Kind(1 + r.IntN(2)), Day: ledger.Day(1 + r.IntN(12)), Quantity: ledger.Quantity(1 + r.IntN(3))}
				if r.IntN(8) == 0 {
					a.Payload.Kind, a.Payload.Quantity = ledger.Kind(3+r.IntN(2)), ledger.Quantity(r.IntN(2))
				} else if huge && r.IntN(3) == 0 {
					a.Payload.Quantity = math.MaxInt64 - ledger.Quantity(r.IntN(3))
				}
			}
			want := naiveClass(records, a)
			records = append(records, a)
			v := o.Add(0, ledger.Offset(i), canonicalKey(name), value(a))
			if v.Class != want || v.Assertion != a {
				t.Fatalf("seed %d record %d: verdict %+v, want class %s of %+v", seed, i, v, want, a)
			}
			got, expect := o.Expected(name), naiveExpected(name, 0, terms, records)
			if d := cmp.Diff(expect, got); d != "" {
				t.Fatalf("seed %d record %d (-naive +oracle):\n%s", seed, i, d)
			}
			reached[want.String()]++
			for _, x := range got.Status.Reasons {
				reached[x.Code.String()]++
			}
			if got.Status.More > 0 {
				reached["more"]++
			}
			if !got.Status.Blocked {
				reached["ready"]++
			}
			reached["alerts"] += len(got.Alerts)
		}
	}
	for _, what := range []string{"DUPLICATE", "APPLIED", "CONFLICT", "STALE", "STALE_CONFLICT", "AMBIGUOUS", "COUNTS_DISAGREE", "UNREPRESENTABLE", "more", "ready", "alerts"} {
		if reached[what] < pace.Of(100) {
			t.Errorf("%s occurred %d times, want %d", what, reached[what], pace.Of(100))
		}
	}
	t.Log(reached)
}

// I13 at the edge: 128 bits hold any day exactly.
func TestAmountEqualsBig(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	sum, want := amount{}, new(big.Int)
	for range pace.Of(200_000) {
		n := int64(r.Uint64()>>r.IntN(64)) >> 1
		if r.IntN(2) == 0 {
			sum, want = sum.plus(amountOf(n)), want.Add(want, big.NewInt(n))
		} else {
			sum, want = sum.minus(amountOf(n)), want.Sub(want, big.NewInt(n))
		}
		got := new(big.Int).Lsh(big.NewInt(sum.high), 64)
		if got.Add(got, new(big.Int).SetUint64(sum.low)).Cmp(want) != 0 {
			t.Fatalf("%v, want %v", got, want)
		}
		if v, ok := sum.int64(); ok != want.IsInt64() || ok && v != want.Int64() {
			t.Fatalf("int64 of %v = %d %v", want, v, ok)
		}
	}
	edge := amountOf(math.MaxInt64).plus(amountOf(1))
	if _, ok := edge.int64(); ok {
		t.Error("2^63 fits")
	}
	if v, ok := edge.minus(amountOf(1)).int64(); !ok || v != math.MaxInt64 {
		t.Error("2^63-1 does not fit")
	}
	if v, ok := amountOf(math.MinInt64).int64(); !ok || v != math.MinInt64 {
		t.Error("-2^63 does not fit")
	}
}
