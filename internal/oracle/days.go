package oracle

import (
	"slices"

	"amends/internal/ledger"
)

// total is what the active movements and counts of one business day say.
type total struct {
	counts *counts // nil where the day never had a count
	moved  amount  // receipts less issues
	n      int     // active movements and counts
	day    ledger.Day
}

// counts holds the active counts of one day, per moment.
type counts struct {
	opening, closing tallies
}

// tallies are the different quantities that the counts of one moment state, each with how many state it: a hostile source
// can have them all differ.
type tallies map[ledger.Quantity]int

// change adds (by = 1) or takes away (by = -1) one count of quantity q.
func (t *tallies) change(q ledger.Quantity, by int) {
	if *t == nil {
		*t = tallies{}
	}
	if (*t)[q] += by; (*t)[q] == 0 {
		delete(*t, q)
	}
}

// agreed returns the one quantity that is stated, and false where none is, or several.
func (t tallies) agreed() (ledger.Quantity, bool) {
	if len(t) == 1 {
		for q := range t {
			return q, true
		}
	}
	return 0, false
}

// at returns the total of day d, making it where there is none. The days of k are in order.
func (k *key) at(d ledger.Day) *total {
	n := len(k.days)
	if n > 0 && k.days[n-1].day == d {
		return &k.days[n-1]
	}
	i := n
	if n > 0 && k.days[n-1].day > d {
		var found bool
		if i, found = slices.BinarySearchFunc(k.days, d, func(t total, d ledger.Day) int { return int(t.day) - int(d) }); found {
			return &k.days[i]
		}
	}
	k.days = slices.Insert(k.days, i, total{day: d})
	return &k.days[i]
}

// apply adds (by = 1) or takes away (by = -1) an active payload from its day.
func (k *key) apply(p ledger.Payload, by int) {
	t := k.at(p.Day)
	t.n += by
	q := amountOf(int64(p.Quantity))
	switch {
	case p.Kind.IsCount():
		if t.counts == nil {
			t.counts = new(counts)
		}
		if p.Kind == ledger.OpeningCount {
			t.counts.opening.change(p.Quantity, by)
		} else {
			t.counts.closing.change(p.Quantity, by)
		}
	case (p.Kind == ledger.Receipt) == (by > 0):
		t.moved = t.moved.plus(q)
	default:
		t.moved = t.moved.minus(q)
	}
}

// disagree reports whether counts of one moment of the day state different quantities.
func (t *total) disagree() bool {
	return t.counts != nil && (len(t.counts.opening) > 1 || len(t.counts.closing) > 1)
}

// close returns the exact close of a day that has a balance and no disagreeing counts, after the previous close (S5).
func (t *total) close(previous amount) amount {
	base := previous
	if t.counts != nil {
		if q, ok := t.counts.closing.agreed(); ok {
			return amountOf(int64(q))
		}
		if q, ok := t.counts.opening.agreed(); ok {
			base = amountOf(int64(q))
		}
	}
	return base.plus(t.moved)
}
