package engine

import (
	"errors"
	"reflect"
	"testing"

	"amends/internal/fold"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

var (
	widget    = ledger.StockKey{Item: "widget", Location: "berlin"}
	origin, _ = ledger.DateOf(2026, 1, 1)
)

func testStates(t testing.TB, limit int64) *States {
	t.Helper()
	cfg, err := manifest.Default("test", "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	return NewStates(cfg, 0, limit)
}

func receiptAt(offset ledger.Offset, txn string, revision ledger.Revision, quantity ledger.Quantity, day int) wire.Decoded {
	return wire.Decoded{Record: ledger.SourceRecord{Offset: offset}, Assertion: ledger.Assertion{Key: widget, TxnID: txn, Revision: revision,
		Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: quantity, Day: origin + ledger.Day(day)}}}
}

// prepared returns states with the key restored from a first decision: 100 on day 0, READY.
func prepared(t *testing.T) (*States, Position, []ledger.Decision) {
	t.Helper()
	s := testStates(t, 1<<30)
	first := receiptAt(0, "T-1", 1, 100, 0)
	s.Missing([]wire.Decoded{first})
	if err := s.Restore(widget, 0, false, nil, nil); err != nil {
		t.Fatal(err)
	}
	b, err := Step(s, Position{}, []wire.Decoded{first}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, Position{b.Next, b.NextSequence}, b.Decisions
}

// TestExhaustion is SC43 for versions, sequences and frontiers: an error, nothing of the record committed, the records
// before it committed, and the state it began to change gone from the cache.
func TestExhaustion(t *testing.T) {
	t.Parallel()
	fine := receiptAt(1, "T-1", 1, 100, 0) // a duplicate: no outputs
	for name, c := range map[string]struct {
		prepare func(*state)
		pos     Position
		last    wire.Decoded
	}{
		"balance version": {func(k *state) {
			k.days.Publish(origin, fold.Published{Close: 100, Balance: ledger.MaxCounter, Present: true})
		}, Position{1, 2}, receiptAt(2, "T-1", 2, 70, 0)},
		"alert version": {func(k *state) {
			k.days.Publish(origin+1, fold.Published{Alert: ledger.MaxCounter})
		}, Position{1, 2}, wire.Decoded{Record: ledger.SourceRecord{Offset: 2}, Assertion: ledger.Assertion{Key: widget, TxnID: "T-2", Revision: 1,
			Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Issue, Quantity: 50, Day: origin + 1}}}},
		"status version": {func(k *state) { k.version = ledger.MaxCounter }, Position{1, 2}, receiptAt(2, "T-1", 1, 70, 0)},
		"sequence":       {func(*state) {}, Position{1, ledger.MaxCounter}, receiptAt(2, "T-2", 1, 70, 0)},
		"frontier":       {func(*state) {}, Position{1, 2}, receiptAt(ledger.MaxCounter, "T-2", 1, 70, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, _ := prepared(t)
			c.prepare(s.keys[widget])
			b, err := Step(s, c.pos, []wire.Decoded{fine, c.last}, ledger.MaxCounter)
			if err != nil || len(b.Decisions) != 1 || b.Next != 2 || b.NextSequence != c.pos.Sequence {
				t.Fatalf("the record before: %+v %v", b, err)
			}
			if c.last.Record.Offset < ledger.MaxCounter && s.Len() != 0 {
				t.Error("a state that is ahead of what can be committed stayed cached")
			}
			s, _, _ = prepared(t)
			c.prepare(s.keys[widget])
			b, err = Step(s, c.pos, []wire.Decoded{c.last}, ledger.MaxCounter)
			if !errors.Is(err, ErrExhausted) || !reflect.DeepEqual(b, ledger.Batch{}) {
				t.Fatalf("%+v %v, want ErrExhausted", b, err)
			}
		})
	}
}

// TestLastCounters: SC43's other side; 2^63-1 itself is still used.
func TestLastCounters(t *testing.T) {
	t.Parallel()
	s, _, _ := prepared(t)
	s.keys[widget].days.Publish(origin, fold.Published{Close: 100, Balance: ledger.MaxCounter - 1, Present: true})
	b, err := Step(s, Position{1, ledger.MaxCounter - 1}, []wire.Decoded{receiptAt(ledger.MaxCounter-1, "T-1", 2, 70, 0)}, ledger.MaxCounter)
	if err != nil || b.NextSequence != ledger.MaxCounter || b.Next != ledger.MaxCounter || b.Decisions[0].Changes[0].Version != ledger.MaxCounter {
		t.Fatalf("%+v %v", b, err)
	}
	s, _, _ = prepared(t)
	b, err = Step(s, Position{1, ledger.MaxCounter}, []wire.Decoded{receiptAt(1, "T-1", 1, 100, 0)}, 2)
	if err != nil || len(b.Decisions) != 1 {
		t.Fatalf("a record without outputs at the last sequence: %+v %v", b, err)
	}
}
