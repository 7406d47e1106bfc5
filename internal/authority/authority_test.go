package authority

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"amends/internal/ledger"
)

func receipt(quantity int64, day int) ledger.Payload {
	return ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: ledger.Quantity(quantity), Day: ledger.Day(739_616 + day)}
}

var cancel = ledger.Payload{State: ledger.Cancelled}

// TestClassesByTheTable walks S4's table row by row, SC04, SC12 and C29 among them.
func TestClassesByTheTable(t *testing.T) {
	t.Parallel()
	var none ledger.Payload
	a, b, c := receipt(100, 1), receipt(90, 1), receipt(100, 2)
	steps := []struct {
		revision      ledger.Revision
		payload       ledger.Payload
		class         ledger.Class
		before, after ledger.Payload
		ambiguous     bool
	}{
		{5, a, ledger.Applied, none, a, false},
		{5, a, ledger.Duplicate, a, a, false},
		{3, b, ledger.Stale, a, a, false},
		{3, b, ledger.Duplicate, a, a, false},
		{3, c, ledger.StaleConflict, a, a, false},
		{3, c, ledger.Duplicate, a, a, false},
		{3, b, ledger.Duplicate, a, a, false},
		{3, cancel, ledger.StaleConflict, a, a, false},
		{5, b, ledger.Conflict, a, none, true},
		{5, a, ledger.Duplicate, none, none, true},
		{5, b, ledger.Duplicate, none, none, true},
		{5, c, ledger.Conflict, none, none, true},
		{4, b, ledger.Stale, none, none, true},
		{6, cancel, ledger.Applied, none, none, false},
		{5, c, ledger.Duplicate, none, none, false},
		{5, receipt(1, 9), ledger.StaleConflict, none, none, false},
		{6, b, ledger.Conflict, none, none, true},
		{9, b, ledger.Applied, none, b, false},
		{9, receipt(90, 2), ledger.Conflict, b, none, true},
		{ledger.MaxCounter, c, ledger.Applied, none, c, false},
		{1, c, ledger.Stale, c, c, false},
	}
	x := New()
	for i, s := range steps {
		e := x.Record("T-1", s.revision, s.payload)
		if e != (Effect{s.before, s.after, s.class}) || (x.Ambiguous() > 0) != s.ambiguous {
			t.Errorf("step %d: %+v with %d ambiguous, want %+v", i, e, x.Ambiguous(), s)
		}
	}
	if x.Len() != 1 {
		t.Errorf("%d transactions, want 1", x.Len())
	}
}

// naive answers from the list of everything recorded.
type naive struct {
	all []struct {
		id string
		e  Evidence
	}
}

func (n *naive) contribution(id string) (p ledger.Payload, highest ledger.Revision, ambiguous bool) {
	payloads := map[ledger.Payload]bool{}
	for _, r := range n.all {
		if r.id != id || r.e.Revision < highest {
			continue
		}
		if r.e.Revision > highest {
			highest = r.e.Revision
			clear(payloads)
		}
		payloads[r.e.Payload] = true
		p = r.e.Payload
	}
	if len(payloads) > 1 || p.State != ledger.Active {
		return ledger.Payload{}, highest, len(payloads) > 1
	}
	return p, highest, false
}

func (n *naive) record(id string, revision ledger.Revision, p ledger.Payload) Effect {
	before, highest, _ := n.contribution(id)
	e := Effect{Before: before, After: before}
	at := 0
	for _, r := range n.all {
		if r.id == id && r.e.Revision == revision {
			at++
			if r.e.Payload == p {
				e.Class = ledger.Duplicate
				return e
			}
		}
	}
	switch {
	case revision > highest:
		e.Class = ledger.Applied
	case revision == highest:
		e.Class = ledger.Conflict
	case at == 0:
		e.Class = ledger.Stale
	default:
		e.Class = ledger.StaleConflict
	}
	n.all = append(n.all, struct {
		id string
		e  Evidence
	}{id, Evidence{revision, p}})
	e.After, _, _ = n.contribution(id)
	return e
}

// TestEqualsNaive compares random evidence, the ambiguous transactions in byte order, and a state rebuilt from what All
// and Past yield.
func TestEqualsNaive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, n := New(), &naive{}
		ids := make([]string, 1+rng.IntN(12))
		for i := range ids {
			ids[i] = string([]byte{byte(rng.IntN(256)), byte(rng.IntN(4))}[:1+rng.IntN(2)])
		}
		for range 150 {
			id, revision := ids[rng.IntN(len(ids))], ledger.Revision(1+rng.IntN(5))
			p := cancel
			if rng.IntN(4) > 0 {
				p = receipt(int64(1+rng.IntN(3)), rng.IntN(2))
			}
			if got, want := x.Record(id, revision, p), n.record(id, revision, p); got != want {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
		}
		checkAmbiguous(t, x, n, ids)
		again := rebuilt(x)
		checkAmbiguous(t, again, n, ids)
		for _, r := range n.all {
			if e := again.Record(r.id, r.e.Revision, r.e.Payload); e.Class != ledger.Duplicate {
				t.Fatalf("seed %d: rebuilt evidence lacks %+v", seed, r)
			}
		}
		if got, want := x.Len()+x.PastLen(), len(n.all); got != want {
			t.Fatalf("seed %d: %d pieces of evidence, want %d", seed, got, want)
		}
	}
}

func rebuilt(x *Transactions) *Transactions {
	again := New()
	var ids []string
	for id, e := range x.All() {
		ids = append(ids, string(id))
		again.Record(string(id), e.Revision, e.Payload)
	}
	for i, e := range x.Past() {
		again.Record(ids[i], e.Revision, e.Payload)
	}
	return again
}

func checkAmbiguous(t *testing.T, x *Transactions, n *naive, ids []string) {
	t.Helper()
	var want, got []string
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	contributing := map[ledger.Payload]int{}
	for _, id := range ids {
		p, highest, ambiguous := n.contribution(id)
		if ambiguous {
			want = append(want, fmt.Sprintf("%q r%d", id, highest))
		}
		if p.State == ledger.Active {
			contributing[p]++
		}
	}
	for i := range x.Ambiguous() {
		id, revision := x.AmbiguousAt(i)
		got = append(got, fmt.Sprintf("%q r%d", id, revision))
	}
	if !slices.Equal(want, got) {
		t.Fatalf("ambiguous %v, want %v", got, want)
	}
	for p := range x.Contributions() {
		contributing[p]--
	}
	for p, n := range contributing {
		if n != 0 {
			t.Fatalf("contribution %+v differs by %d", p, n)
		}
	}
}

// TestIdentifiersAreBytes: C40, identifiers differ by bytes alone, NUL and 512 bytes included.
func TestIdentifiersAreBytes(t *testing.T) {
	t.Parallel()
	x := New()
	ids := []string{"A", "a", "A\x00", "\x00", "é", "e\u0301", string(bytes.Repeat([]byte("x"), 512)), string(bytes.Repeat([]byte("x"), 511))}
	for _, id := range ids {
		if e := x.Record(id, 1, cancel); e.Class != ledger.Applied {
			t.Errorf("%q: %v", id, e.Class)
		}
	}
	for i, id := range ids {
		if e := x.Record(id, 1, cancel); e.Class != ledger.Duplicate || x.ID(i) != id {
			t.Errorf("%q: %v, %q", id, e.Class, x.ID(i))
		}
	}
}

// TestLongTransactions: a transaction with 200,000 revisions or payloads, in any order, costs no more a record than
// others (C3). Quadratic work would take minutes.
func TestLongTransactions(t *testing.T) {
	t.Parallel()
	const n = 200_000
	x := New()
	for i := range int64(n) {
		x.Record("up", ledger.Revision(i+1), receipt(1, 1))
		x.Record("down", ledger.Revision(n-i), receipt(1, 1))
		x.Record("wide", 1, receipt(i+1, 1))
		x.Record("wide below", ledger.Revision(2-i/(n-1)), receipt(i+1, 1))
	}
	for i := range int64(n) {
		for _, id := range []string{"up", "down"} {
			if e := x.Record(id, ledger.Revision(i+1), receipt(1, 1)); e.Class != ledger.Duplicate {
				t.Fatalf("%s r%d: %v", id, i+1, e.Class)
			}
		}
		if e := x.Record("wide", 1, receipt(i+1, 1)); e.Class != ledger.Duplicate {
			t.Fatalf("wide %d: %v", i+1, e.Class)
		}
	}
}

// TestMemory: 32 bytes a transaction and a piece of past evidence, and what Bytes says is what is held.
func TestMemory(t *testing.T) {
	t.Parallel()
	if a, b := unsafe.Sizeof(txn{}), unsafe.Sizeof(past{}); a != txnBytes || b != pastBytes {
		t.Fatalf("a transaction is %d bytes, past evidence %d", a, b)
	}
	const n = 20_000
	x := New()
	for i := range n {
		x.Record(fmt.Sprintf("T-%08d", i), 1, receipt(5, i%30))
	}
	if per := x.Bytes() / n; per > 90 {
		t.Errorf("%d bytes a transaction", per)
	}
}

func BenchmarkRecord(b *testing.B) {
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprintf("T-%08d", i)
	}
	for b.Loop() {
		x := New()
		for _, id := range ids {
			x.Record(id, 1, receipt(5, 3))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/record")
}
