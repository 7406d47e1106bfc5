package storetest

import (
	"math"

	"amends/internal/ledger"
	"amends/internal/store"
)

// view binds and acquires the view of partition 0.
func (e *env) view() (store.Lease, store.ViewPosition) {
	e.Helper()
	e.bind()
	l := e.acquire(store.View, 0, "view")
	return l, e.viewPosition(0)
}

func (e *env) viewPosition(p ledger.Partition) store.ViewPosition {
	e.Helper()
	position, err := e.ns.ViewPosition(e.ctx, p)
	e.ok(err)
	return position
}

// pageRefused applies a page and expects an error that leaves rows and position alone.
func (e *env) pageRefused(l store.Lease, pg *store.ViewPage, want error) {
	e.Helper()
	position, rows := e.viewPosition(0), e.rows(0)
	e.fails(e.ns.ApplyViewInput(e.ctx, l, pg), want)
	e.equal("position", e.viewPosition(0), position)
	e.equal("rows", e.rows(0), rows)
}

var viewCases = []testCase{
	{"view/new rows and the position commit together", func(e *env) {
		l, at := e.view()
		rows := []store.ViewRow{viewRow(0, widget, jan1, 0, 1, 100), viewRow(0, widget, jan1+1, 1, 1, -5)}
		pg := page(0, at, rows...)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.equal("rows", e.rows(0), rows)
		e.equal("position", e.viewPosition(0), pg.Next)
		e.equal("output", pg.Next.Output, ledger.Frontier(2))
	}},
	{"view/later versions replace, several at once", func(e *env) {
		l, at := e.view()
		first := page(0, at, viewRow(0, widget, jan1, 0, 1, 100), viewRow(0, gadget, jan1, 1, 1, 7))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, first))
		second := page(0, first.Next, viewRow(0, widget, jan1, 4, 4, 70), viewRow(0, widget, jan1+3, 5, 2, 1))
		second.Changes[0].Before, second.Changes[1].Before = 1, 0
		e.ok(e.ns.ApplyViewInput(e.ctx, l, second))
		e.equal("rows", e.rows(0), []store.ViewRow{first.Changes[1].Row, second.Changes[0].Row, second.Changes[1].Row})
	}},
	{"view/all kinds, withdrawals and statuses read back", func(e *env) {
		l, at := e.view()
		status := viewRow(0, widget, 0, 2, 1, 0)
		status.ID.Kind, status.Status, status.Index, status.Count = ledger.TrustStatus, &ledger.Status{}, 2, 3
		blocked := viewRow(0, gadget, 0, 3, 7, 0)
		blocked.ID.Kind = ledger.TrustStatus
		blocked.Status = &ledger.Status{Blocked: true, More: 3, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "a\x00\"\U0001f9fa", Revision: math.MaxInt64},
			{Code: ledger.CountsDisagree, Day: jan1}}}
		raised := viewRow(0, widget, jan1, 1, 1, math.MinInt64)
		raised.ID.Kind, raised.Previous, raised.Threshold = ledger.Alert, math.MaxInt64, -60
		gone := viewRow(0, widget, jan1+1, 4, 2, 0)
		gone.Present, gone.Digest = false, math.MinInt64
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100), raised, status, blocked, gone)
		pg.Changes[3].Before, pg.Changes[4].Before = 0, 0
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.equal("rows", e.rows(0), []store.ViewRow{blocked, pg.Changes[0].Row, raised, gone, status})
		ids := []ledger.OutputID{blocked.ID, gone.ID, raised.ID, {Key: widget, Day: jan1 + 9, Kind: ledger.Balance}, {Key: ledger.StockKey{Item: "n", Location: "n"}}}
		found, err := e.ns.ViewRows(e.ctx, 0, ids)
		e.ok(err)
		e.equal("found", found, map[ledger.OutputID]store.ViewRow{blocked.ID: blocked, gone.ID: gone, raised.ID: raised})
	}},
	{"view/SC20 a tombstone is replaced only from its version", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		gone := viewRow(0, widget, jan1, 1, 2, 0)
		gone.Present = false
		second := page(0, pg.Next, gone)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, second))
		old := page(0, second.Next, viewRow(0, widget, jan1, 2, 2, 100))
		e.pageRefused(l, old, store.ErrProtocol)
		e.equal("rows", e.rows(0), []store.ViewRow{gone})
	}},
	{"view/a row whose stored version is another refuses the page", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100), viewRow(0, widget, jan1+1, 1, 1, 100))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		wrong := page(0, pg.Next, viewRow(0, widget, jan1, 2, 2, 7), viewRow(0, widget, jan1+1, 3, 3, 7))
		e.pageRefused(l, wrong, store.ErrProtocol)
		wrong.Changes[1].Before = 1
		e.ok(e.ns.ApplyViewInput(e.ctx, l, wrong))
	}},
	{"view/a row that should exist and does not refuses the page", func(e *env) {
		l, at := e.view()
		e.pageRefused(l, page(0, at, viewRow(0, widget, jan1, 0, 2, 100)), store.ErrProtocol)
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.pageRefused(l, page(0, pg.Next, viewRow(0, gadget, jan1, 1, 1, 1), viewRow(0, widget, jan1+1, 2, 2, 100)), store.ErrProtocol)
	}},
	{"view/a row that should not exist and does refuses the page", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		again := page(0, pg.Next, viewRow(0, widget, jan1, 1, 1, 100))
		e.pageRefused(l, again, store.ErrProtocol)
	}},
	{"view/one output twice in a page refuses it", func(e *env) {
		l, at := e.view()
		e.pageRefused(l, page(0, at, viewRow(0, widget, jan1, 0, 1, 1), viewRow(0, widget, jan1, 1, 1, 2)), store.ErrProtocol)
	}},
	{"view/another position is fenced", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		for _, change := range []func(*store.ViewPosition){
			func(v *store.ViewPosition) { v.Output++ }, func(v *store.ViewPosition) { v.Cause++ },
			func(v *store.ViewPosition) { v.Sequence, v.Output = v.Sequence+1, v.Output+1 },
		} {
			before := pg.Next
			change(&before)
			r := viewRow(0, widget, jan1+1, before.Sequence, 1, 1)
			r.Cause.Offset = 50
			e.pageRefused(l, page(0, before, r), store.ErrFence)
		}
		e.pageRefused(l, pg, store.ErrFence)
	}},
	{"view/I18 another term or nonce is fenced", func(e *env) {
		l, at := e.view()
		now := e.acquire(store.View, 0, "view")
		e.pageRefused(l, page(0, at, viewRow(0, widget, jan1, 0, 1, 1)), store.ErrFence)
		forged := now
		forged.Nonce[5] ^= 4
		e.pageRefused(forged, page(0, at, viewRow(0, widget, jan1, 0, 1, 1)), store.ErrFence)
		forged = now
		forged.Term++
		e.pageRefused(forged, page(0, at, viewRow(0, widget, jan1, 0, 1, 1)), store.ErrFence)
		e.ok(e.ns.ApplyViewInput(e.ctx, now, page(0, at, viewRow(0, widget, jan1, 0, 1, 1))))
	}},
	{"view/a relay's lease or another partition's writes nothing", func(e *env) {
		_, at := e.view()
		e.pageRefused(e.acquire(store.Relay, 0, "r"), page(0, at, viewRow(0, widget, jan1, 0, 1, 1)), store.ErrFence)
		e.pageRefused(e.acquire(store.View, 1, "v"), page(0, at, viewRow(0, widget, jan1, 0, 1, 1)), store.ErrFence)
	}},
	{"view/a page without rows moves the frontier over repetitions", func(e *env) {
		l, at := e.view()
		pg := page(0, at)
		pg.Next.Output = 12
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.equal("position", e.viewPosition(0), pg.Next)
	}},
	{"view/a position that falls is refused", func(e *env) {
		l, at := e.view()
		pg := page(0, at)
		pg.Next.Output = 12
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		back := page(0, pg.Next)
		back.Next.Output = 11
		e.pageRefused(l, back, store.ErrProtocol)
	}},
	{"view/SC21 a violation is stored with exact bytes and stops for ever", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, 1, 100))
		pg.Stop = &store.Violation{Reason: "equal version, other content", Offset: 1, Key: []byte{0, 0xff}, Value: []byte("{\x00}")}
		pg.Next.Stopped = true
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.equal("stopped", e.viewPosition(0).Stopped, true)
		e.equal("rows before it", len(e.rows(0)), 1)
		var stored []store.Violation
		e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) (err error) {
			stored, err = s.Violations(e.ctx)
			return err
		}))
		e.equal("violations", stored, []store.Violation{*pg.Stop})
		next := pg.Next
		next.Stopped = false
		e.pageRefused(l, page(0, next, viewRow(0, widget, jan1+1, 1, 1, 1)), store.ErrFence)
		again := e.acquire(store.View, 0, "view")
		e.pageRefused(again, page(0, next, viewRow(0, widget, jan1+1, 1, 1, 1)), store.ErrFence)
		e.equal("still stopped", e.viewPosition(0).Stopped, true)
	}},
	{"view/SC21 other partitions go on after a stop", func(e *env) {
		l, at := e.view()
		pg := page(0, at)
		pg.Stop, pg.Next.Stopped = &store.Violation{Reason: "no envelope", Offset: 0}, true
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		other := e.acquire(store.View, 1, "view")
		e.ok(e.ns.ApplyViewInput(e.ctx, other, page(1, e.viewPosition(1), viewRow(1, gadget, jan1, 0, 1, 5))))
		e.equal("rows", len(e.rows(1)), 1)
	}},
	{"view/absent bytes of a violation stay absent", func(e *env) {
		l, at := e.view()
		pg := page(0, at)
		pg.Stop, pg.Next.Stopped = &store.Violation{Reason: "no value", Offset: 3, Key: []byte{}}, true
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		e.ok(e.ns.Snapshot(e.ctx, func(s store.Snapshot) error {
			v, err := s.Violations(e.ctx)
			if err == nil && (v[0].Key == nil || v[0].Value != nil) {
				e.Errorf("key %v value %v", v[0].Key, v[0].Value)
			}
			return err
		}))
	}},
	{"view/a row of another partition or outside the page is refused", func(e *env) {
		l, at := e.view()
		e.pageRefused(l, page(0, at, viewRow(1, widget, jan1, 0, 1, 1)), store.ErrProtocol)
		outside := page(0, at, viewRow(0, widget, jan1, 4, 1, 1))
		outside.Next.Sequence = 4
		e.pageRefused(l, outside, store.ErrProtocol)
	}},
	{"view/SC43 the last version cannot be followed", func(e *env) {
		l, at := e.view()
		pg := page(0, at, viewRow(0, widget, jan1, 0, math.MaxInt64, 1))
		pg.Changes[0].Before = 0
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		over := page(0, pg.Next, viewRow(0, widget, jan1, 1, 2, 1))
		over.Changes[0].Before, over.Changes[0].Row.Version = math.MaxInt64, math.MinInt64
		e.pageRefused(l, over, store.ErrExhausted)
	}},
	{"view/SC37 identifiers keep every byte", func(e *env) {
		l, at := e.view()
		var rows []store.ViewRow
		var ids []ledger.OutputID
		want := map[ledger.OutputID]store.ViewRow{}
		for i, id := range hostile {
			r := viewRow(0, ledger.StockKey{Item: id, Location: id}, jan1, ledger.Sequence(i), 1, int64(i))
			r.Cause.TxnID = id
			rows, ids = append(rows, r), append(ids, r.ID)
			want[r.ID] = r
		}
		pg := page(0, at, rows...)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
		found, err := e.ns.ViewRows(e.ctx, 0, ids)
		e.ok(err)
		e.equal("rows", found, want)
		for i := range rows {
			rows[i].Version, rows[i].Sequence = 2, ledger.Sequence(len(rows)+i)
		}
		second := page(0, pg.Next, rows...)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, second))
		e.equal("rows", len(e.rows(0)), len(hostile))
	}},
}
