package oracle

import (
	"cmp"
	"iter"
	"slices"

	"amends/internal/ledger"
)

// Expectation is what must be published of one key, by payload and presence (S5 to S8). Of a BLOCKED key only the
// status is expected: its balances and alerts stay frozen as last committed, which depends on arrival order.
// Without a valid record (not Known) nothing is expected, the status included, and the key counts as READY.
type Expectation struct {
	Status    ledger.Status
	Key       ledger.StockKey
	Balances  []Balance // by day
	Alerts    []Alert   // by day
	Partition ledger.Partition
	Known     bool
}

// Balance is the close of a business day that has a balance output (S5).
type Balance struct {
	Close int64
	Day   ledger.Day
}

// Alert is a day whose close fell below the threshold (S6).
type Alert struct {
	Previous  int64
	Close     int64
	Threshold int64
	Day       ledger.Day
}

// Expected derives what must be published of key. Its cost follows the key's days and ambiguous transactions.
func (o *Oracle) Expected(name ledger.StockKey) Expectation {
	k, ok := o.keys[name]
	if !ok {
		where, _ := o.place(name)
		return Expectation{Key: name, Partition: where.partition}
	}
	return k.expected()
}

// All derives what must be published of every key with a valid record, in the order of drift reports: by partition,
// item bytes, location bytes. Nothing may be added while it runs.
func (o *Oracle) All() iter.Seq[Expectation] {
	return func(yield func(Expectation) bool) {
		for _, k := range o.ordered() {
			if !yield(k.expected()) {
				return
			}
		}
	}
}

// Keys returns the keys with a valid record in the order of All.
func (o *Oracle) Keys() []ledger.StockKey {
	ordered := o.ordered()
	names := make([]ledger.StockKey, len(ordered))
	for i, k := range ordered {
		names[i] = k.name
	}
	return names
}

func (o *Oracle) ordered() []*key {
	ks := make([]*key, 0, len(o.keys))
	for _, k := range o.keys {
		ks = append(ks, k)
	}
	slices.SortFunc(ks, func(a, b *key) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), a.name.Compare(b.name))
	})
	return ks
}

func (k *key) expected() Expectation {
	e := Expectation{Key: k.name, Partition: k.partition, Known: true}
	k.ambiguities(&e.Status)
	for i := range k.days {
		if k.days[i].disagree() {
			e.Status.Reasons = append(e.Status.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: k.days[i].day})
			break
		}
	}
	if len(e.Status.Reasons) == 0 {
		if day, ok := k.fold(&e); !ok {
			e.Status.Reasons = []ledger.Reason{{Code: ledger.Unrepresentable, Day: day}}
		}
	}
	if e.Status.Blocked = len(e.Status.Reasons) > 0; e.Status.Blocked {
		e.Balances, e.Alerts = nil, nil
	}
	return e
}

// ambiguities names the first ambiguous transactions by the bytes of their ids and counts the others.
func (k *key) ambiguities(s *ledger.Status) {
	if len(k.contested) == 0 {
		return
	}
	for i := range k.contested {
		t := &k.transactions[i]
		s.Reasons = append(s.Reasons, ledger.Reason{Code: ledger.Ambiguous, TxnID: t.id, Revision: t.top.revision})
	}
	slices.SortFunc(s.Reasons, func(a, b ledger.Reason) int { return cmp.Compare(a.TxnID, b.TxnID) })
	if n := len(s.Reasons); n > ledger.MaxReasons {
		s.More = int64(n - ledger.MaxReasons)
		s.Reasons = s.Reasons[:ledger.MaxReasons:ledger.MaxReasons]
	}
}

// fold derives balances and alerts day by day. It returns the first day whose close does not fit an int64, and false.
func (k *key) fold(e *Expectation) (ledger.Day, bool) {
	e.Balances = make([]Balance, 0, len(k.days))
	previous := k.terms.Opening
	for i := range k.days {
		t := &k.days[i]
		if t.n == 0 {
			continue
		}
		closing, ok := t.close(amountOf(previous)).int64()
		if !ok {
			return t.day, false
		}
		e.Balances = append(e.Balances, Balance{Day: t.day, Close: closing})
		if limit := k.terms.Threshold; limit != nil && previous >= *limit && closing < *limit {
			e.Alerts = append(e.Alerts, Alert{Day: t.day, Previous: previous, Close: closing, Threshold: *limit})
		}
		previous = closing
	}
	return 0, true
}
