package workload

import (
	"fmt"
	"math"
	"slices"

	"amends/internal/ledger"
)

// assert chooses what b is told next, and of which transaction; tell records it.
func (h *historian) assert(b *book) (*told, ledger.Assertion) {
	t := h.known(b)
	if t == nil {
		return h.fresh(b)
	}
	if h.r.Percent(h.Conflicts) {
		return h.contradict(t)
	}
	switch n := h.r.Below(100); {
	case n < 40:
		return h.fresh(b)
	case n < 58: // a correction, of which some move the day; of a cancelled transaction a reactivation
		a := t.top
		a.Revision = h.higher(t)
		a.Payload = h.corrected(t)
		return t, a
	case n < 72:
		a := t.top
		a.Revision, a.Payload = h.higher(t), ledger.Payload{State: ledger.Cancelled}
		return t, a
	case n < 80:
		return t, pick(h.r, t.said) // a duplicate
	case n < 90: // a lower revision that was not there, or was
		a := t.top
		a.Revision = 1 + ledger.Revision(h.r.Below(int(min(t.top.Revision, 1<<30))))
		if a.Revision < t.top.Revision && h.r.Percent(80) {
			a.Payload = h.payload(t.top.Payload.Day)
			return t, a
		}
	}
	return h.fresh(b)
}

// known returns a transaction of b, an ambiguous one by preference so that keys become READY again; nil in an empty book.
func (h *historian) known(b *book) *told {
	if len(b.txns) == 0 {
		return nil
	}
	for h.r.Percent(50) && len(b.disputed) > 0 {
		i := h.r.Below(len(b.disputed))
		if t := b.disputed[i]; t.ambiguous {
			return t
		}
		b.disputed = slices.Delete(b.disputed, i, i+1)
	}
	return pick(h.r, b.txns)
}

// fresh begins a transaction.
func (h *historian) fresh(b *book) (*told, ledger.Assertion) {
	id := fmt.Sprintf("T-%d", len(b.txns)+1) // the same under every key: other transactions all the same
	if h.Hostile && h.r.Percent(20) {
		id = pick(h.r, hostileItems)
	}
	if b.ids[id] {
		id = fmt.Sprintf("T-%d", len(b.txns)+1)
	}
	t := new(told)
	if len(b.txns) > 1 && h.r.Percent(2) { // begins with a cancellation
		return t, ledger.Assertion{Key: b.key, TxnID: id, Revision: 1, Payload: ledger.Payload{State: ledger.Cancelled}}
	}
	return t, ledger.Assertion{Key: b.key, TxnID: id, Revision: pick(h.r, []ledger.Revision{1, 1, 1, 2, 5}), Payload: h.payload(0)}
}

// contradict says something else at a recorded revision, by preference the highest.
func (h *historian) contradict(t *told) (*told, ledger.Assertion) {
	a := t.top
	if h.r.Percent(30) {
		a = pick(h.r, t.said)
	}
	if a.Payload.State == ledger.Active && h.r.Percent(20) {
		a.Payload = ledger.Payload{State: ledger.Cancelled}
		return t, a
	}
	a.Payload = h.payload(a.Payload.Day)
	return t, a
}

// higher is a revision above all recorded ones; gaps leave room for stale ones.
func (h *historian) higher(t *told) ledger.Revision {
	if h.Edges && h.r.Percent(2) {
		return math.MaxInt64
	}
	if t.top.Revision > math.MaxInt64-5 {
		return math.MaxInt64
	}
	return t.top.Revision + ledger.Revision(pick(h.r, []int{1, 1, 2, 3}))
}

// corrected is another payload for t.
func (h *historian) corrected(t *told) ledger.Payload {
	day := t.top.Payload.Day
	if day == 0 { // a reactivation, by preference where the transaction was
		for _, a := range t.said {
			day = max(day, a.Payload.Day)
		}
	} else if h.r.Percent(40) {
		day = 0
	}
	p := h.payload(day)
	if p.State == ledger.Active && !p.Kind.IsCount() && h.r.Percent(60) && t.top.Payload.State == ledger.Active && !t.top.Payload.Kind.IsCount() {
		p.Kind = t.top.Payload.Kind
	}
	return p
}

// payload is a movement or count on day d, on any day where d is 0.
func (h *historian) payload(d ledger.Day) ledger.Payload {
	if d == 0 {
		d = h.day()
	}
	p := ledger.Payload{State: ledger.Active, Day: d, Kind: ledger.Receipt, Quantity: ledger.Quantity(h.r.Between(1, 40))}
	switch {
	case h.r.Percent(h.Counts):
		p.Kind = pick(h.r, []ledger.Kind{ledger.OpeningCount, ledger.ClosingCount})
		p.Quantity = ledger.Quantity(pick(h.r, []int{0, 7, 7, 50}))
		if h.r.Percent(50) { // counts meet on the days of stocktaking
			p.Day = h.setting.Origin + ledger.Day(pick(h.r, []int{h.Days / 3, h.Days / 2}))
		}
		if h.Conflicts == 0 { // a friendly source: counts of one day agree
			p.Quantity = ledger.Quantity(p.Day % 5 * 30)
		}
	case h.r.Percent(55):
		p.Kind = ledger.Issue
	}
	if h.Edges && h.r.Percent(25) {
		p.Quantity = math.MaxInt64 - ledger.Quantity(h.r.Below(3))
	}
	return p
}

// day is a day of the history, seldom the last one of the horizon.
func (h *historian) day() ledger.Day {
	if h.r.Percent(1) {
		return h.setting.Origin + ledger.HorizonDays - 1
	}
	return h.setting.Origin + ledger.Day(h.r.Below(h.Days))
}

// tell records that a was said of t.
func (b *book) tell(t *told, a ledger.Assertion) {
	switch {
	case len(t.said) == 0:
		b.txns = append(b.txns, t)
		b.ids[a.TxnID] = true
		t.top = a
	case a.Revision > t.top.Revision:
		t.top, t.ambiguous = a, false
	case a.Revision == t.top.Revision && a.Payload != t.top.Payload && !t.ambiguous:
		t.ambiguous = true
		b.disputed = append(b.disputed, t)
	}
	t.said = append(t.said, a)
}
