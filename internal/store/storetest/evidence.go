package storetest

import (
	"bytes"
	"math"
	"strings"

	"amends/internal/ledger"
	"amends/internal/store"
)

// roundTrip commits decisions of partition 0 and compares what is read back.
func (e *env) roundTrip(b *builder, decisions ...ledger.Decision) {
	e.Helper()
	o := e.claim(0)
	e.ok(e.ns.Commit(e.ctx, o.Token, b.batch(decisions...)))
	want := make([]ledger.Decision, len(decisions))
	for i := range decisions {
		want[i] = store.CloneDecision(&decisions[i])
	}
	e.equal("journal", e.journal(0), want)
}

var evidenceCases = []testCase{
	{"evidence/every class", func(e *env) {
		b := newBuilder(0)
		var all []ledger.Decision
		for _, class := range []ledger.Class{ledger.Applied, ledger.Duplicate, ledger.Conflict, ledger.Stale, ledger.StaleConflict} {
			d := b.valid(widget)
			d.Class = class
			all = append(all, d)
		}
		e.roundTrip(b, all...)
	}},
	{"evidence/every kind and both states", func(e *env) {
		b := newBuilder(0)
		var all []ledger.Decision
		for _, kind := range []ledger.Kind{ledger.Receipt, ledger.Issue, ledger.OpeningCount, ledger.ClosingCount} {
			d := b.valid(widget, ready(ledger.Version(kind)))
			d.Assertion.Payload.Kind = kind
			if kind.IsCount() {
				d.Assertion.Payload.Quantity = 0
			}
			all = append(all, d)
		}
		cancelled := b.valid(widget, withdrawn(ledger.Balance, jan1, 2))
		cancelled.Assertion.Payload = ledger.Payload{State: ledger.Cancelled}
		e.roundTrip(b, append(all, cancelled)...)
	}},
	{"evidence/numbers at their limits", func(e *env) {
		b := newBuilder(0)
		low := b.valid(widget, balance(ledger.MinDay, 1, math.MinInt64), alert(ledger.MinDay, math.MaxInt64, math.MaxInt64, math.MinInt64))
		low.Assertion.Payload.Day, low.Timestamp = ledger.MinDay, math.MinInt64
		high := b.valid(widget, balance(ledger.MinDay, 2, math.MaxInt64), balance(ledger.MaxDay, 1, math.MaxInt64), ready(1))
		high.Assertion.Payload.Day, high.Assertion.Payload.Quantity = ledger.MaxDay, math.MaxInt64
		high.Assertion.Revision, high.Timestamp = math.MaxInt64, math.MaxInt64
		e.roundTrip(b, low, high)
	}},
	{"evidence/SC37 identifiers keep every byte", func(e *env) {
		b := newBuilder(0)
		var all []ledger.Decision
		for _, id := range hostile {
			d := b.valid(ledger.StockKey{Item: id, Location: id}, ready(1))
			d.Assertion.TxnID = id
			all = append(all, d)
		}
		e.roundTrip(b, all...)
		keys := make([]ledger.StockKey, len(hostile))
		for i, id := range hostile {
			keys[i] = ledger.StockKey{Item: id, Location: id}
		}
		histories, err := e.ns.Load(e.ctx, e.observe(0).Token, 0, keys, false)
		e.ok(err)
		for i := range histories {
			e.equal("history", histories[i].Decisions, all[i:i+1])
		}
	}},
	{"evidence/statuses with all their reasons", func(e *env) {
		status := ledger.Status{Blocked: true, More: math.MaxInt64}
		for i := range ledger.MaxReasons {
			status.Reasons = append(status.Reasons, ledger.Reason{Code: ledger.Ambiguous, TxnID: hostile[i%len(hostile)], Revision: math.MaxInt64})
		}
		status.Reasons = append(status.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: ledger.MaxDay})
		unfit := ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Unrepresentable, Day: jan1}}}
		b := newBuilder(0)
		e.roundTrip(b,
			b.valid(widget, ledger.Change{Kind: ledger.TrustStatus, Version: 1, Present: true, Status: &status}),
			b.valid(widget, ledger.Change{Kind: ledger.TrustStatus, Version: 2, Present: true, Status: &unfit}), b.valid(widget, ready(3)))
	}},
	{"evidence/SC33 one decision with thousands of outputs", func(e *env) {
		b := newBuilder(0)
		var changes []ledger.Change
		for i := range ledger.Day(3_650) {
			changes = append(changes, balance(jan1+i, 1, int64(i)*7-100), withdrawn(ledger.Alert, jan1+i, 2))
		}
		e.roundTrip(b, b.valid(widget, append(changes, ready(1))...))
	}},
	{"quarantine/SC15 every code with its exact bytes", func(e *env) {
		b := newBuilder(0)
		var all []ledger.Decision
		for code := ledger.TooLarge; code <= ledger.Routing; code++ {
			all = append(all, b.rejected(code, []byte{byte(code), 0, 0xff}, []byte{0xc3, 0x28, byte(code)}))
		}
		e.roundTrip(b, all...)
		e.equal("rejected", e.states()[0].Rejected, int64(len(all)))
	}},
	{"quarantine/absent and empty bytes differ", func(e *env) {
		b := newBuilder(0)
		e.roundTrip(b, b.rejected(ledger.Malformed, nil, []byte{}), b.rejected(ledger.Malformed, []byte{}, nil))
		stored := e.journal(0)
		if stored[0].Evidence.Key != nil || stored[0].Evidence.Value == nil || stored[1].Evidence.Key == nil || stored[1].Evidence.Value != nil {
			e.Fatal("an absent key or value reads back as an empty one, or the reverse")
		}
	}},
	{"quarantine/TOO_LARGE keeps lengths and sums of more than its bytes", func(e *env) {
		b := newBuilder(0)
		d := b.rejected(ledger.TooLarge, bytes.Repeat([]byte{1}, ledger.MaxKeyBytes), bytes.Repeat([]byte{2}, ledger.MaxValueBytes))
		d.Evidence.KeyLength, d.Evidence.ValueLength = 10_000_000, math.MaxInt64
		d.Evidence.KeySHA[0], d.Evidence.ValueSHA[31] = 9, 8
		e.roundTrip(b, d)
	}},
	{"quarantine/valid and rejected records mix in offset order", func(e *env) {
		b := newBuilder(0)
		e.roundTrip(b, b.rejected(ledger.Routing, []byte("k"), []byte("v")), b.valid(widget, ready(1)),
			b.rejected(ledger.Malformed, nil, nil), b.valid(gadget, ready(1)), b.valid(widget))
	}},
}

// hostile are identifiers that something on the way might change (S3, SC37, C40).
var hostile = []string{"\x00", "a\x00b", "'; DROP TABLE x; --", "<script>", "\u202eabc", "\U0001f9fa\U0001f469\u200d\U0001f680", "e\u0301", "\u00e9",
	" ", "\\x00", "\"", "\u2028", strings.Repeat("\U0001f9fa", ledger.MaxIdentifierBytes/4), "85123A", "85123a", "NULL"}
