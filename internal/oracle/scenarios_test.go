package oracle

import (
	"fmt"
	"testing"

	"amends/internal/ledger"

	"github.com/google/go-cmp/cmp"
)

var berlin = ledger.StockKey{Item: "widget", Location: "berlin"}

// day is the n-th day of 2026.
func day(n int) ledger.Day {
	first, _ := ledger.ParseDay("2026-01-01")
	return first + ledger.Day(n-1)
}

func active(txn string, revision int, kind ledger.Kind, n int, quantity int64) ledger.Assertion {
	return ledger.Assertion{Key: berlin, TxnID: txn, Revision: ledger.Revision(revision),
		Payload: ledger.Payload{State: ledger.Active, Kind: kind, Day: day(n), Quantity: ledger.Quantity(quantity)}}
}

func receipt(txn string, revision, n int, quantity int64) ledger.Assertion {
	return active(txn, revision, ledger.Receipt, n, quantity)
}

func issue(txn string, revision, n int, quantity int64) ledger.Assertion {
	return active(txn, revision, ledger.Issue, n, quantity)
}

func cancel(txn string, revision int) ledger.Assertion {
	return ledger.Assertion{Key: berlin, TxnID: txn, Revision: ledger.Revision(revision), Payload: ledger.Payload{State: ledger.Cancelled}}
}

// run is an oracle over one key of partition 0 that fails the test on a rejection.
type run struct {
	*Oracle
	t    *testing.T
	next ledger.Offset
}

func newRun(t *testing.T, opening int64, threshold int64) *run {
	key := Key{Key: berlin, Terms: Terms{Opening: opening, Threshold: &threshold}}
	other := Key{Key: ledger.StockKey{Item: "gadget", Location: "berlin"}, Terms: Terms{Opening: 5}}
	return &run{t: t, Oracle: New(Config{Origin: day(1), Partitions: 2, Keys: []Key{key, other}})}
}

func (r *run) add(as ...ledger.Assertion) (classes []ledger.Class) {
	r.t.Helper()
	for _, a := range as {
		v := r.Add(0, r.next, canonicalKey(a.Key), value(a))
		if v.Rejection != 0 || v.Assertion != a {
			r.t.Fatalf("offset %d: %+v, want %+v", r.next, v, a)
		}
		r.next++
		classes = append(classes, v.Class)
	}
	return classes
}

// want compares what is expected of the key with "day=close" and "day!previous>close" facts, by day.
func (r *run) want(facts ...string) {
	r.t.Helper()
	got := []string{}
	e := r.Expected(berlin)
	for _, b := range e.Balances {
		got = append(got, fmt.Sprintf("%d=%d", b.Day-day(1)+1, b.Close))
		for _, a := range e.Alerts {
			if a.Day == b.Day {
				got = append(got, fmt.Sprintf("%d!%d>%d", a.Day-day(1)+1, a.Previous, a.Close))
			}
		}
	}
	for _, x := range e.Status.Reasons {
		s := x.Code.String()
		if x.Code == ledger.Ambiguous {
			s += fmt.Sprintf(" %s r%d", x.TxnID, x.Revision)
		} else {
			s += fmt.Sprintf(" %d", x.Day-day(1)+1)
		}
		got = append(got, s)
	}
	if facts == nil {
		facts = []string{}
	}
	if d := cmp.Diff(facts, got); d != "" {
		r.t.Errorf("(-want +got):\n%s", d)
	}
}

func (r *run) wantClasses(got []ledger.Class, want ...ledger.Class) {
	r.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		r.t.Errorf("classes (-want +got):\n%s", d)
	}
}

func worked() []ledger.Assertion {
	return []ledger.Assertion{receipt("T-1", 1, 1, 100), issue("T-2", 1, 2, 20), issue("T-3", 1, 3, 30), receipt("T-1", 2, 1, 70), cancel("T-3", 2)}
}

func TestSC01SC02SC03SC04WorkedExample(t *testing.T) {
	r := newRun(t, 0, 60)
	w := worked()
	r.add(w[:3]...)
	r.want("1=100", "2=80", "3=50", "3!80>50") // SC01
	r.add(w[3])
	r.want("1=70", "2=50", "2!70>50", "3=20") // SC02
	r.add(w[4])
	r.want("1=70", "2=50", "2!70>50") // SC03
	r.wantClasses(r.add(w[0], w[2]), ledger.Duplicate, ledger.Duplicate)
	r.want("1=70", "2=50", "2!70>50") // SC04
	if c := r.Counts(); c.Records != 7 || c.Rejected != 0 || c.ByClass[ledger.Duplicate] != 2 || c.ByCode[0] != 7 {
		t.Errorf("counts %+v", c)
	}
}

func TestSC05RecordsDeliveredTwice(t *testing.T) {
	r := newRun(t, 0, 60)
	for i, a := range worked() {
		r.add(a, a)
		r.add(worked()[:i]...)
	}
	r.want("1=70", "2=50", "2!70>50")
}

func TestSC06EveryOrder(t *testing.T) {
	orders := 0
	permute(worked(), func(as []ledger.Assertion) {
		orders++
		r := newRun(t, 0, 60)
		r.add(as...)
		r.want("1=70", "2=50", "2!70>50")
	})
	if orders != 120 {
		t.Fatalf("%d orders", orders)
	}
}

func permute(as []ledger.Assertion, f func([]ledger.Assertion)) {
	var rec func(int)
	rec = func(i int) {
		if i == len(as) {
			f(as)
			return
		}
		for j := i; j < len(as); j++ {
			as[i], as[j] = as[j], as[i]
			rec(i + 1)
			as[i], as[j] = as[j], as[i]
		}
	}
	rec(0)
}

func TestSC07AlertsAreDaily(t *testing.T) {
	r := newRun(t, 4, 3)
	r.add(receipt("R", 1, 1, 5), issue("I", 1, 1, 5))
	r.want("1=4")
	r = newRun(t, 4, 3)
	r.add(issue("I", 1, 1, 5))
	r.want("1=-1", "1!4>-1")
	r.add(receipt("R", 1, 1, 5))
	r.want("1=4")
}

func TestSC08DayMove(t *testing.T) {
	r := newRun(t, 0, 60)
	for n := 1; n <= 10; n++ {
		r.add(receipt(fmt.Sprint("T-", n), 1, n, 10))
	}
	r.add(receipt("X", 1, 3, 10))
	r.want("1=10", "2=20", "3=40", "4=50", "5=60", "6=70", "7=80", "8=90", "9=100", "10=110")
	r.add(receipt("X", 2, 6, 10))
	r.want("1=10", "2=20", "3=30", "4=40", "5=50", "6=70", "7=80", "8=90", "9=100", "10=110")

	r = newRun(t, 0, 60) // alone on its day, and a day 6 without a row
	r.add(receipt("A", 1, 2, 7), receipt("X", 1, 3, 10), receipt("B", 1, 7, 1))
	r.want("2=7", "3=17", "7=18")
	r.add(receipt("X", 2, 6, 10))
	r.want("2=7", "6=17", "7=18")
}

func TestSC09ReceiptBecomesIssue(t *testing.T) {
	r := newRun(t, 0, -1000)
	r.add(receipt("A", 1, 1, 50), receipt("X", 1, 2, 10), issue("B", 1, 3, 1), receipt("C", 1, 9, 2))
	r.want("1=50", "2=60", "3=59", "9=61")
	r.add(issue("X", 2, 2, 10))
	r.want("1=50", "2=40", "3=39", "9=41")
}

func TestSC10SC11ConflictAndResolution(t *testing.T) {
	r := newRun(t, 0, 60)
	r.add(receipt("T-1", 1, 1, 100))
	r.wantClasses(r.add(receipt("T-1", 1, 1, 90)), ledger.Conflict)
	r.want("AMBIGUOUS T-1 r1")
	other := ledger.Assertion{Key: ledger.StockKey{Item: "gadget", Location: "berlin"}, TxnID: "T-1", Revision: 1,
		Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Issue, Day: day(1), Quantity: 3}}
	r.add(other)
	if e := r.Expected(other.Key); e.Status.Blocked || len(e.Balances) != 1 || e.Balances[0].Close != 2 {
		t.Errorf("the other key: %+v", e)
	}
	conflicts := r.Conflicts(berlin)
	if len(conflicts) != 2 || conflicts[0].Offset != 0 || conflicts[1].Offset != 1 || conflicts[1].Assertion.Payload.Quantity != 90 {
		t.Errorf("conflicts %+v", conflicts)
	}
	r.add(issue("T-2", 1, 2, 20), issue("T-3", 1, 3, 30))
	r.want("AMBIGUOUS T-1 r1")
	r.add(receipt("T-1", 2, 1, 70))
	r.want("1=70", "2=50", "2!70>50", "3=20")
	if c := r.Conflicts(berlin); len(c) != 0 {
		t.Errorf("resolved, yet %+v", c)
	}
}

func TestSC12StaleConflict(t *testing.T) {
	r := newRun(t, 0, 60)
	r.wantClasses(r.add(receipt("T-1", 1, 1, 100), receipt("T-1", 3, 1, 70), receipt("T-1", 1, 1, 90), receipt("T-1", 2, 1, 5), receipt("T-1", 2, 1, 6), receipt("T-1", 1, 1, 90)),
		ledger.Applied, ledger.Applied, ledger.StaleConflict, ledger.Stale, ledger.StaleConflict, ledger.Duplicate)
	r.want("1=70")
}

func TestSC13Reactivation(t *testing.T) {
	r := newRun(t, 0, 60)
	r.add(worked()[:3]...)
	r.add(cancel("T-3", 2))
	r.want("1=100", "2=80")
	r.add(issue("T-3", 3, 3, 30))
	r.want("1=100", "2=80", "3=50", "3!80>50")
}

func TestSC14Representable(t *testing.T) {
	r := newRun(t, 9223372036854775800, 60)
	r.add(receipt("T-1", 1, 2, 10))
	r.want("UNREPRESENTABLE 2")
	r.add(receipt("T-1", 2, 2, 5))
	r.want("2=9223372036854775805")
	r.add(receipt("A", 1, 3, 10))
	r.want("UNREPRESENTABLE 3")
	r.add(issue("B", 1, 3, 10))
	r.want("2=9223372036854775805", "3=9223372036854775805")

	r = newRun(t, -8, -20)
	r.add(issue("A", 1, 1, 9223372036854775800))
	r.want("1=-9223372036854775808", "1!-8>-9223372036854775808")
	r.add(issue("B", 1, 1, 1))
	r.want("UNREPRESENTABLE 1")
	r.add(active("C", 1, ledger.ClosingCount, 1, 4)) // a count states the close, so the movements do not matter
	r.want("1=4")
}

// C8, C9, C14, C23, C24: counts (S5).
func TestCounts(t *testing.T) {
	closing := func(txn string, n int, q int64) ledger.Assertion { return active(txn, 1, ledger.ClosingCount, n, q) }
	opening := func(txn string, n int, q int64) ledger.Assertion { return active(txn, 1, ledger.OpeningCount, n, q) }
	r := newRun(t, 0, -1000)
	r.add(receipt("A", 1, 2, 10), issue("B", 1, 3, 1), receipt("C", 1, 5, 1), closing("D", 1, 8))
	r.want("1=8", "2=18", "3=17", "5=18") // C8

	r = newRun(t, 60, 60)
	r.add(closing("A", 100, 1), receipt("B", 1, 1, 56))
	r.want("1=116", "100=1", "100!116>1") // C9

	r = newRun(t, 0, -1000)
	r.add(receipt("A", 1, 1, 10), issue("B", 1, 10, 8), closing("C", 1, 7))
	r.want("1=7", "10=-1") // C14

	r = newRun(t, 0, -1000)
	r.add(receipt("A", 1, 1, 7000), issue("B", 1, 1, 700), closing("C", 1, 6200))
	r.want("1=6200")
	r.add(cancel("C", 2), opening("D", 1, 6200))
	r.want("1=12500") // C23
	r.add(opening("E", 1, 6200))
	r.want("1=12500")
	r.add(opening("F", 1, 6201))
	r.want("COUNTS_DISAGREE 1") // C24
	r.add(receipt("A", 1, 1, 1))
	r.want("AMBIGUOUS A r1", "COUNTS_DISAGREE 1")
	r.add(receipt("A", 2, 1, 7000), cancel("F", 2))
	r.want("1=12500")
}

func TestMoreThanSixteenAmbiguous(t *testing.T) {
	r := newRun(t, 0, 60)
	for i := range 18 {
		r.add(receipt(fmt.Sprintf("T-%02d", 17-i), 1, 1, 1), receipt(fmt.Sprintf("T-%02d", 17-i), 1, 1, 2))
	}
	s := r.Expected(berlin).Status
	if len(s.Reasons) != 16 || s.More != 2 || s.Reasons[0].TxnID != "T-00" || s.Reasons[15].TxnID != "T-15" {
		t.Errorf("%+v", s)
	}
}

func TestSourcesNameCausesOfADay(t *testing.T) {
	r := newRun(t, 0, 60)
	r.add(worked()...)
	offsets := func(n int) (at []ledger.Offset) {
		for _, s := range r.Sources(berlin, day(n)) {
			at = append(at, s.Offset)
		}
		return at
	}
	for n, want := range map[int][]ledger.Offset{1: {3}, 2: {1}, 3: {4}, 4: nil} {
		if d := cmp.Diff(want, offsets(n)); d != "" {
			t.Errorf("day %d: %s", n, d)
		}
	}
	if at, ok := r.Last(berlin); at != 4 || !ok {
		t.Errorf("last %d %v", at, ok)
	}
	if _, ok := r.Last(ledger.StockKey{Item: "gadget", Location: "berlin"}); ok {
		t.Error("a key without records has a last one")
	}
	if e := r.Expected(ledger.StockKey{Item: "gadget", Location: "berlin"}); e.Known || e.Status.Blocked || e.Balances != nil {
		t.Errorf("a key without records: %+v", e)
	}
}

func TestKeysAreInDriftOrder(t *testing.T) {
	o := New(Config{Origin: day(1), Partitions: 8, Open: &Terms{}})
	var want []string
	for _, item := range []string{"b", "a", "A", "é", "aa"} {
		for _, location := range []string{"y", "x"} {
			a := receipt("T", 1, 1, 1)
			a.Key = ledger.StockKey{Item: item, Location: location}
			for p := range ledger.Partition(8) {
				o.Add(p, 0, canonicalKey(a.Key), value(a))
			}
		}
	}
	last := Expectation{Partition: -1}
	for e := range o.All() {
		if e.Partition < last.Partition || e.Partition == last.Partition && e.Key.Compare(last.Key) <= 0 {
			t.Errorf("%v after %v", e.Key, last.Key)
		}
		want, last = append(want, e.Key.Item), e
	}
	if len(want) != 10 || len(o.Keys()) != 10 || o.Counts().ByCode[ledger.Routing] != 70 {
		t.Errorf("%d keys, %+v", len(want), o.Counts())
	}
}
