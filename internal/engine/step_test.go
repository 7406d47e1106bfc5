package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"amends/internal/fold"
	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/wire"
)

// TestOrder: offsets rise within a partition, from the frontier on, and the frontier never falls (I1).
func TestOrder(t *testing.T) {
	t.Parallel()
	other := receiptAt(1, "T-9", 1, 1, 1)
	other.Record.Partition = 1
	for name, c := range map[string]struct {
		recs []wire.Decoded
		next ledger.Frontier
		want error
	}{
		"below the frontier":  {[]wire.Decoded{receiptAt(0, "T-9", 1, 1, 1)}, 1, ErrOrder},
		"the same twice":      {[]wire.Decoded{receiptAt(1, "T-9", 1, 1, 1), receiptAt(1, "T-9", 1, 1, 1)}, 2, ErrOrder},
		"falling":             {[]wire.Decoded{receiptAt(5, "T-9", 1, 1, 1), receiptAt(4, "T-9", 1, 1, 1)}, 6, ErrOrder},
		"another partition":   {[]wire.Decoded{other}, 2, ErrOrder},
		"next below the last": {[]wire.Decoded{receiptAt(5, "T-9", 1, 1, 1)}, 5, ErrOrder},
		"a move backwards":    {nil, 0, ErrOrder},
		"a key not restored": {[]wire.Decoded{{Record: ledger.SourceRecord{Offset: 1}, Assertion: ledger.Assertion{
			Key: ledger.StockKey{Item: "x", Location: "y"}}}}, 2, ErrMissing},
	} {
		s, pos, _ := prepared(t)
		if b, err := Step(s, pos, c.recs, c.next); !errors.Is(err, c.want) || b.Decisions != nil {
			t.Errorf("%s: %+v %v, want %v", name, b, err, c.want)
		}
	}
}

// TestBareMove: S13, markers alone move the frontier, with no decision and no work.
func TestBareMove(t *testing.T) {
	t.Parallel()
	s, pos, _ := prepared(t)
	b, err := Step(s, pos, nil, 9)
	if err != nil || len(b.Decisions) != 0 || b.Expected != 1 || b.Next != 9 || b.Work != (ledger.Work{}) || b.FirstSequence != 2 || b.NextSequence != 2 {
		t.Errorf("%+v %v", b, err)
	}
	if b, err = Step(s, Position{9, 2}, []wire.Decoded{receiptAt(20, "T-2", 1, 1, 0)}, 30); err != nil || b.Next != 30 || b.Decisions[0].Sequence != 2 {
		t.Errorf("gaps before and after: %+v %v", b, err)
	}
}

// TestStopsAtMaxOutputs: a batch ends with the decision that reaches the bound, and the rest follows.
func TestStopsAtMaxOutputs(t *testing.T) {
	t.Parallel()
	s, pos, _ := prepared(t)
	var recs []wire.Decoded
	const days = 3000
	for i := 1; i <= days; i++ {
		recs = append(recs, receiptAt(ledger.Offset(i), fmt.Sprint("D-", i), 1, 1, i))
	}
	b, err := Step(s, pos, recs, days+1)
	if err != nil || len(b.Decisions) != days {
		t.Fatal(len(b.Decisions), err)
	}
	pos = Position{b.Next, b.NextSequence}
	recs = recs[:0]
	for i := range 20 {
		recs = append(recs, receiptAt(ledger.Offset(days+1+i), "T-1", ledger.Revision(i+2), ledger.Quantity(200+i), 0))
	}
	b, err = Step(s, pos, recs, days+100)
	want := (MaxOutputs + days) / (days + 1) // each changes 3,001 balances
	if err != nil || len(b.Decisions) != want || b.Next != ledger.Frontier(days+1+want) || b.Work.Changed < MaxOutputs || b.Work.Changed >= MaxOutputs+days+1 {
		t.Fatalf("%d decisions, next %d, changed %d, %v", len(b.Decisions), b.Next, b.Work.Changed, err)
	}
	if b, err = Step(s, Position{b.Next, b.NextSequence}, recs[want:], days+100); err != nil || b.Next != days+100 {
		t.Fatalf("the rest: %d decisions, next %d, %v", len(b.Decisions), b.Next, err)
	}
}

// TestEviction: the least recently used states go, none of the batch, and memory stays near the limit.
func TestEviction(t *testing.T) {
	t.Parallel()
	s := testStates(t, 1)
	a := receiptAt(0, "T-1", 1, 1, 0)
	if got := s.Missing([]wire.Decoded{a, a, {Rejection: ledger.Malformed}}); !slices.Equal(got, []ledger.StockKey{widget}) {
		t.Fatalf("missing %v", got)
	}
	if err := s.Restore(widget, 0, false, nil, nil); err != nil {
		t.Fatal(err)
	}
	if s.Missing([]wire.Decoded{a}) != nil || s.Len() != 1 || s.Bytes() < 400 {
		t.Fatalf("the key of the batch was evicted: %d keys, %d bytes", s.Len(), s.Bytes())
	}
	s.Missing(nil)
	if s.Len() != 0 || s.Bytes() != 0 || s.newest != nil || s.oldest != nil {
		t.Fatalf("%d keys, %d bytes", s.Len(), s.Bytes())
	}
}

// TestSnapshotsAreDue where the decisions since outnumber those held, and only then.
func TestSnapshotsAreDue(t *testing.T) {
	t.Parallel()
	s, pos, _ := prepared(t)
	var rows []int64
	for i := range 40 {
		b, err := Step(s, pos, []wire.Decoded{receiptAt(ledger.Offset(i+1), fmt.Sprint("D-", i), 1, 1, i)}, ledger.Frontier(i+2))
		if err != nil {
			t.Fatal(err)
		}
		pos = Position{b.Next, b.NextSequence}
		for _, due := range s.Snapshots(3) {
			rows = append(rows, due.Rows)
		}
	}
	if want := []int64{3, 7, 15, 31}; !slices.Equal(rows, want) {
		t.Errorf("snapshots at %v decisions, want %v", rows, want)
	}
	if due := s.Snapshots(0); due != nil {
		t.Errorf("%d snapshots due without a decision since", len(due))
	}
}

// TestRestoreRefuses histories that contradict themselves, and says so as ErrHistory.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	_, _, good := prepared(t)
	second := ledger.Decision{Offset: 1, Class: ledger.Applied, Assertion: receiptAt(1, "T-2", 1, 5, 1).Assertion,
		Changes: []ledger.Change{{Kind: ledger.Balance, Day: origin + 1, Version: 1, Present: true, Close: 105}}}
	good = append(good, second)
	if err := testStates(t, 1<<30).Restore(widget, 0, true, nil, good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(d []ledger.Decision) []ledger.Decision{
		"no decisions":     func(d []ledger.Decision) []ledger.Decision { return nil },
		"another order":    func(d []ledger.Decision) []ledger.Decision { d[1].Offset = 0; return d },
		"another class":    func(d []ledger.Decision) []ledger.Decision { d[1].Class = ledger.Stale; return d },
		"another key":      func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Key.Item = "gadget"; return d },
		"a rejection":      func(d []ledger.Decision) []ledger.Decision { d[1].Rejection = ledger.Malformed; return d },
		"another close":    func(d []ledger.Decision) []ledger.Decision { d[1].Changes[0].Close++; return d },
		"another quantity": func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Payload.Quantity++; return d },
		"no quantity":      func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Payload.Quantity = 0; return d },
		"no kind":          func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Payload.Kind = 9; return d },
		"a day too early":  func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Payload.Day = origin - 1; return d },
		"a day too late": func(d []ledger.Decision) []ledger.Decision {
			d[1].Changes[0].Day = origin + ledger.HorizonDays
			return d
		},
		"another version":    func(d []ledger.Decision) []ledger.Decision { d[1].Changes[0].Version++; return d },
		"outputs missing":    func(d []ledger.Decision) []ledger.Decision { d[1].Changes = nil; return d },
		"a status missing":   func(d []ledger.Decision) []ledger.Decision { d[0].Changes = d[0].Changes[:1]; return d },
		"a blocked status":   func(d []ledger.Decision) []ledger.Decision { d[0].Changes[1].Status = closeFault(origin); return d },
		"no status payload":  func(d []ledger.Decision) []ledger.Decision { d[0].Changes[1].Status = nil; return d },
		"a later status":     func(d []ledger.Decision) []ledger.Decision { d[0].Changes[1].Version = 2; return d },
		"outputs unordered":  func(d []ledger.Decision) []ledger.Decision { slices.Reverse(d[0].Changes); return d },
		"a decision missing": func(d []ledger.Decision) []ledger.Decision { return d[1:] },
		"an unknown output":  func(d []ledger.Decision) []ledger.Decision { d[1].Changes[0].Kind = 7; return d },
		"no txn_id":          func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.TxnID = ""; return d },
		"no revision":        func(d []ledger.Decision) []ledger.Decision { d[1].Assertion.Revision = 0; return d },
	} {
		d := slices.Clone(good)
		for i := range d {
			d[i].Changes = slices.Clone(d[i].Changes)
		}
		s := testStates(t, 1<<30)
		if err := s.Restore(widget, 0, true, nil, spoil(d)); !errors.Is(err, ErrHistory) || s.Len() != 0 {
			t.Errorf("%s: %v with %d keys, want ErrHistory", name, err, s.Len())
		}
	}
	if err := testStates(t, 1).Restore(ledger.StockKey{Item: "x", Location: "y"}, 0, false, nil, nil); !errors.Is(err, ErrHistory) {
		t.Errorf("a key that is not configured: %v", err)
	}
	if err := testStates(t, 1).Restore(widget, 0, false, nil, good); !errors.Is(err, ErrHistory) {
		t.Errorf("decisions of an unknown key: %v", err)
	}
}

// goldenState is a state with everything a snapshot can hold.
func goldenState(t testing.TB) *state {
	t.Helper()
	s := testStates(t, 1<<30)
	if err := s.Restore(widget, 0, false, nil, nil); err != nil {
		t.Fatal(err)
	}
	count := receiptAt(4, "C", 1, 7, 3)
	count.Assertion.Payload.Kind = ledger.ClosingCount
	gone := receiptAt(5, "T-2", 2, 0, 0)
	gone.Assertion.Payload = ledger.Payload{State: ledger.Cancelled}
	recs := []wire.Decoded{receiptAt(0, "T-1", 2, 100, 0), receiptAt(1, "T-2", 1, 5, 1), receiptAt(2, "T-1", 1, 90, 0), receiptAt(3, "T-1", 1, 80, 0),
		count, gone, receiptAt(6, "T-1", 2, 101, 0)}
	if _, err := Step(s, Position{}, recs, 7); err != nil {
		t.Fatal(err)
	}
	return s.keys[widget]
}

// TestGoldenSnapshot pins format 1: the bytes below are taken apart by hand.
func TestGoldenSnapshot(t *testing.T) {
	t.Parallel()
	want := []byte{
		1,                                   // format
		0,                                   // key id
		7,                                   // decisions
		2,                                   // status version
		1<<1 | 1, 1, 3, 'T', '-', '1', 2, 0, // one reason, blocked: AMBIGUOUS, T-1, revision 2; no more
		3,                   // days
		0, 1, 1, 0, 0xc8, 1, // the origin: present, balance version 1, no alert, close 100
		1, 0, 2, 0, // a day later: withdrawn at version 2
		2, 3, 1, 2, 0xb9, 1, // two days later: balance and alert present, versions 1 and 2 (105 -> 7, then 100 -> 7), close 7: 93 less, 2*93-1
		3,                                     // transactions
		3, 'T', '-', '1', 2, 1 | 1<<2, 0, 100, // revision 2, active receipt on the origin of 100
		3, 'T', '-', '2', 2, 2, // revision 2, cancelled
		1, 'C', 1, 1 | 4<<2, 3, 7, // revision 1, active closing count three days later of 7
		4,                     // past evidence
		0, 1, 1 | 1<<2, 0, 90, // of T-1: revision 1, 90
		0, 1, 1 | 1<<2, 0, 80, // and 80
		1, 1, 1 | 1<<2, 1, 5, // of T-2: revision 1, 5 on the second day
		0, 2, 1 | 1<<2, 0, 101, // of T-1: revision 2, the conflict
	}
	want = binary.BigEndian.AppendUint32(want, journal.Checksum(want))
	if got := goldenState(t).encode(); !bytes.Equal(got, want) {
		t.Errorf("encoded\n% x, want\n% x", got, want)
	}
}

// TestDamagedSnapshots: no changed or missing byte goes unnoticed, and neither does a snapshot of another key.
func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	good := goldenState(t).encode()
	s := testStates(t, 1<<30)
	if err := s.Restore(widget, 0, true, good, nil); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if err := s.Restore(widget, 0, true, bad, nil); !errors.Is(err, ErrSnapshot) {
			t.Errorf("byte %d: %v", i, err)
		}
		if err := s.Restore(widget, 0, true, good[:i], nil); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
	if err := s.Restore(widget, 1, true, good, nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("another key id: %v", err)
	}
	for name, b := range map[string][]byte{"another format": {2, 0, 1}, "nothing but a format": {1}, "trailing bytes": append(bytes.Clone(good[:len(good)-4]), 0)} {
		b = binary.BigEndian.AppendUint32(b, journal.Checksum(b))
		if err := s.Restore(widget, 0, true, b, nil); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// what is whole but derives other outputs than it says was published is history that contradicts itself
	k := goldenState(t)
	k.days.Publish(origin, fold.Published{Close: 99, Balance: 2, Present: true})
	k.txns.Record("T-1", 3, ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: 100, Day: origin})
	k.status = &ledger.Status{}
	if err := s.Restore(widget, 0, true, k.encode(), nil); !errors.Is(err, ErrHistory) {
		t.Errorf("another close: %v", err)
	}
}

// TestForgedSnapshots changes each byte to many values under a right checksum: each is refused, or accepted as a state that
// is accepted again; none panics.
func TestForgedSnapshots(t *testing.T) {
	t.Parallel()
	good := goldenState(t).encode()
	accepted, s := 0, testStates(t, 1<<30)
	for i := 1; i < len(good)-4; i++ {
		for _, b := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 0x40, 0x7f, 0x80, 0xff, good[i] + 1, good[i] - 1} {
			bad := bytes.Clone(good[:len(good)-4])
			bad[i] = b
			bad = binary.BigEndian.AppendUint32(bad, journal.Checksum(bad))
			err := s.Restore(widget, 0, true, bad, nil)
			if err == nil {
				accepted++
				err = s.Restore(widget, 0, true, s.keys[widget].encode(), nil)
			} else if errors.Is(err, ErrSnapshot) || errors.Is(err, ErrHistory) {
				continue
			}
			if err != nil {
				t.Errorf("byte %d as %d: %v", i, b, err)
			}
		}
	}
	if accepted == 0 {
		t.Error("not even the same bytes were accepted")
	}
}

// TestErrorsNameTheKey: an operator learns which key, partition and offset.
func TestErrorsNameTheKey(t *testing.T) {
	t.Parallel()
	err := testStates(t, 1).Restore(widget, 0, true, nil, []ledger.Decision{{Offset: 77, Rejection: ledger.Malformed}})
	for _, part := range []string{`"widget"`, `"berlin"`, "partition 0", "offset 77"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %s", err, part)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(goldenState(f).encode(), true)
	f.Add([]byte{0, 1, 1, 0, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, b []byte, whole bool) {
		if !whole { // let the fuzzer past the checksum and the key id
			b = append([]byte{snapshotFormat, 0}, b...)
			b = binary.BigEndian.AppendUint32(b, journal.Checksum(b))
		}
		s := testStates(t, 1<<30)
		if err := s.Restore(widget, 0, true, b, nil); err != nil {
			if !errors.Is(err, ErrSnapshot) && !errors.Is(err, ErrHistory) {
				t.Fatalf("unclassified error %v", err)
			}
			return
		}
		k := s.keys[widget]
		if err := s.Restore(widget, 0, true, k.encode(), nil); err != nil {
			t.Fatalf("an accepted state is not accepted again: %v", err)
		}
	})
}
