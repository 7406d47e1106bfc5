package storetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/store"
)

var errStop = errors.New("stop")

var readCases = []testCase{
	{"read/a snapshot does not move with later commits", func(e *env) {
		o, b, _ := e.threeEach()
		e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
			before, err := s.Partitions(e.ctx)
			e.ok(err)
			e.ok(e.ns.Commit(e.ctx, o.Token, b.one(widget)))
			after, err := s.Partitions(e.ctx)
			e.ok(err)
			e.equal("partitions", after, before)
			n := 0
			e.ok(s.Journal(e.ctx, 0, func(*ledger.Decision) error { n++; return nil }))
			e.equal("journal", n, 5)
			return nil
		}))
		e.equal("frontier", e.observe(0).Frontier, ledger.Frontier(6))
	}},
	{"read/a callback's error ends the iteration and is returned", func(e *env) {
		e.threeEach()
		n := 0
		err := e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
			return s.Journal(e.ctx, 0, func(*ledger.Decision) error { n++; return errStop })
		})
		e.fails(err, errStop)
		e.equal("calls", n, 1)
		e.equal("the store goes on", e.observe(0).Frontier, ledger.Frontier(5))
	}},
	{"read/partitions come in order with everything of theirs", func(e *env) {
		l, _ := e.outbox()
		e.ok(e.ns.Acknowledge(e.ctx, l, store.Receipt{First: 0, Next: 3, Offset: 0}))
		s := e.states()
		e.equal("partitions", len(s), 2)
		e.equal("owned", s[0].Owned, e.observe(0))
		e.equal("rejected", []int64{s[0].Rejected, s[1].Rejected}, []int64{1, 0})
		e.equal("relay", s[0].Relay.Sequence, ledger.Sequence(3))
		e.equal("view", *s[1].View, store.ViewPosition{Cause: -1})
		e.equal("second", s[1].Partition, ledger.Partition(1))
	}},
	{"read/receipts come in order", func(e *env) {
		l, _ := e.outbox()
		all := []store.Receipt{{First: 0, Next: 2, Offset: 0}, {First: 2, Next: 3, Offset: 5}, {First: 3, Next: 10, Offset: 6}}
		for _, r := range all {
			e.ok(e.ns.Acknowledge(e.ctx, l, r))
		}
		e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
			got, err := s.Receipts(e.ctx, 0)
			e.ok(err)
			e.equal("receipts", got, all)
			got, err = s.Receipts(e.ctx, 1)
			e.equal("none", len(got), 0)
			return err
		}))
	}},
	{"read/view rows are ordered by item, location, status last, day, kind", func(e *env) {
		l, at := e.view()
		var rows []store.ViewRow
		for _, k := range []ledger.StockKey{{Item: "a", Location: "b"}, {Item: "a", Location: "\xc3\xa9"}, {Item: "a\x00", Location: "a"}, {Item: "b", Location: "a"}} {
			status := viewRow(0, k, 0, 0, 1, 0)
			status.ID.Kind, status.Status = ledger.TrustStatus, &ledger.Status{}
			raised := viewRow(0, k, jan1, 0, 1, 1)
			raised.ID.Kind = ledger.Alert
			rows = append(rows, viewRow(0, k, ledger.MinDay, 0, 1, 0), viewRow(0, k, jan1, 0, 1, 1), raised, viewRow(0, k, ledger.MaxDay, 0, 1, 2), status)
		}
		shuffled := make([]store.ViewRow, len(rows))
		for i := range rows {
			at := (i * 7) % len(rows)
			rows[at].Sequence = ledger.Sequence(i)
			shuffled[i] = rows[at]
		}
		e.ok(e.ns.ApplyViewInput(e.ctx, l, page(0, at, shuffled...)))
		e.equal("rows", e.rows(0), rows)
	}},
	{"read/verifications are kept and the last is found", func(e *env) {
		none, err := e.ns.LastVerification(e.ctx)
		e.ok(err)
		if none != nil {
			e.Fatalf("verification %+v", none)
		}
		started := time.Now().UTC().Truncate(time.Millisecond)
		first := store.Verification{Started: started, Status: "DRIFT", Detail: "a\x00 row", Keys: 3, Outputs: 9, Differences: 1, Quiesced: true, Deep: true,
			Boundary: []store.Cut{{Partition: 0, Frontier: 5}, {Partition: 1, Frontier: 0}}}
		second := store.Verification{Started: started, Status: "PASS", Audit: true}
		for _, v := range []store.Verification{second, first} {
			e.ok(e.ns.RecordVerification(e.ctx, v))
			got, err := e.ns.LastVerification(e.ctx)
			e.ok(err)
			if got.Finished.IsZero() {
				e.Fatal("no time of finishing")
			}
			want := v
			want.Finished, want.Detail = got.Finished, store.PlainText(v.Detail)
			got.Started = got.Started.UTC()
			if len(want.Boundary) == 0 {
				got.Boundary = nil
			}
			if d := cmp.Diff(want, *got); d != "" {
				e.Fatal(d)
			}
		}
		e.fails(e.ns.RecordVerification(e.ctx, store.Verification{Started: started, Status: "FINE"}), store.ErrProtocol)
	}},
	{"read/an audit adds no verification that says what the newest one says", func(e *env) {
		v := store.Verification{Started: time.Now().UTC(), Status: "DRIFT", Detail: "a row", Differences: 1, Deep: true, Audit: true}
		for n, c := range []struct {
			change func(*store.Verification)
			left   bool // out
		}{
			{func(*store.Verification) {}, false},
			{func(v *store.Verification) { v.Outputs++ }, true},
			{func(v *store.Verification) { v.Differences++ }, false},
			{func(*store.Verification) {}, true},
			{func(v *store.Verification) { v.Detail = "another row" }, false},
			{func(v *store.Verification) { v.Deep = false }, false},
			{func(v *store.Verification) { v.Status = "INCOMPLETE" }, false},
			{func(v *store.Verification) { v.Audit = false }, false},
			{func(*store.Verification) {}, false}, // what people ask for is always kept
			{func(v *store.Verification) { v.Audit = true }, false},
			{func(*store.Verification) {}, true},
		} {
			c.change(&v)
			v.Keys = int64(n)
			e.ok(e.ns.RecordVerification(e.ctx, v))
			got, err := e.ns.LastVerification(e.ctx)
			e.ok(err)
			if (got.Keys != v.Keys) != c.left {
				e.Errorf("step %d: the last is that of step %d, left out: %t", n, got.Keys, c.left)
			}
		}
	}},
}
