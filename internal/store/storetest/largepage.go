package storetest

import (
	"strings"

	"amends/internal/ledger"
	"amends/internal/store"
)

// largePageRows is more than any store writes in the way of a small page.
const largePageRows = 1_000

// largePage returns version of every output of a large page: every kind, withdrawn ones and long identifiers among them.
func largePage(at store.ViewPosition, version ledger.Version) *store.ViewPage {
	rows := make([]store.ViewRow, largePageRows)
	for i := range rows {
		key := ledger.StockKey{Item: "widget", Location: strings.Repeat("l", 1+i%512)}
		r := viewRow(0, key, jan1, at.Sequence+ledger.Sequence(i), version, int64(i))
		r.Cause.TxnID = strings.Repeat("\x00t", 1+i%256)
		switch i % 4 {
		case 1:
			r.ID.Kind, r.Previous, r.Threshold = ledger.Alert, int64(i)+1, -int64(i)
		case 2:
			r.ID.Kind, r.ID.Day, r.Close, r.Status = ledger.TrustStatus, 0, 0, &ledger.Status{Blocked: version > 1, More: int64(i)}
			if r.Status.Blocked {
				r.Status.Reasons = []ledger.Reason{{Code: ledger.Ambiguous, TxnID: r.Cause.TxnID, Revision: 3}}
			} else {
				r.Status.More = 0
			}
		case 3:
			r.Present, r.Close = version == 1, 0
		}
		r.ID.Day += ledger.Day(i / 512) // a key has each kind once a day
		if r.ID.Kind == ledger.TrustStatus {
			r.ID.Day = 0
			r.ID.Key.Item = strings.Repeat("i", 1+i/512)
		}
		rows[i] = r
	}
	return page(0, at, rows...)
}

// densePage returns version of every balance that a few keys have on many days, except where a key has none.
func densePage(at store.ViewPosition, version ledger.Version) *store.ViewPage {
	var rows []store.ViewRow
	for i := range largePageRows {
		if i%7 == 3 {
			continue
		}
		key := ledger.StockKey{Item: "widget", Location: strings.Repeat("l", 1+i%5)}
		rows = append(rows, viewRow(0, key, jan1+ledger.Day(i/5), at.Sequence+ledger.Sequence(len(rows)), version, int64(i)*int64(version)))
	}
	return page(0, at, rows...)
}

// rowsAre compares partition 0 with the rows of pages, whatever their order.
func (e *env) rowsAre(pages ...*store.ViewPage) {
	e.Helper()
	want, found := map[ledger.OutputID]store.ViewRow{}, map[ledger.OutputID]store.ViewRow{}
	for _, pg := range pages {
		for _, c := range pg.Changes {
			want[c.Row.ID] = c.Row
		}
	}
	for _, r := range e.rows(0) {
		found[r.ID] = r
	}
	e.equal("rows", found, want)
}

var largePageCases = []testCase{
	{"view/a large page of many days of few keys replaces every row", func(e *env) {
		l, at := e.view()
		other := page(0, at, viewRow(0, ledger.StockKey{Item: "widget", Location: "l"}, jan1+largePageRows, at.Sequence, 1, 5))
		e.ok(e.ns.ApplyViewInput(e.ctx, l, other))
		at = other.Next
		for version := ledger.Version(1); version <= 3; version++ {
			pg := densePage(at, version)
			e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
			at = pg.Next
			e.rowsAre(pg, other)
		}
		wrong := densePage(at, 4)
		wrong.Changes[17].Before, wrong.Changes[17].Row.Version = 4, 5
		e.pageRefused(l, wrong, store.ErrProtocol)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, densePage(at, 4)))
	}},
	{"view/a large page replaces every row, in every kind", func(e *env) {
		l, at := e.view()
		for version := ledger.Version(1); version <= 3; version++ {
			pg := largePage(at, version)
			e.ok(e.ns.ApplyViewInput(e.ctx, l, pg))
			at = pg.Next
			e.rowsAre(pg)
			e.equal("position", e.viewPosition(0), at)
		}
	}},
	{"view/a large page with one other version writes nothing, and what it left does not reach the next", func(e *env) {
		l, at := e.view()
		first := largePage(at, 1)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, first))
		wrong := largePage(first.Next, 2)
		c := &wrong.Changes[largePageRows/2]
		c.Before, c.Row.Version = 2, 3
		e.pageRefused(l, wrong, store.ErrProtocol)
		e.ok(e.ns.ApplyViewInput(e.ctx, l, largePage(first.Next, 2)))
	}},
}
