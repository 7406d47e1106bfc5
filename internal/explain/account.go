package explain

import (
	"math/big"
	"time"

	"amends/internal/ledger"
	"amends/internal/store/postgres/reader"
)

// Standing is what applies to a transaction (S4): the authority, where it was first stated, and whether it is ambiguous.
type Standing struct {
	Payload   ledger.Payload
	Revision  ledger.Revision
	Offset    ledger.Offset
	Ambiguous bool
}

// active returns the payload that counts, and false where nothing does.
func (s Standing) active() (ledger.Payload, bool) {
	return s.Payload, !s.Ambiguous && s.Payload.State == ledger.Active
}

// Cause is the source record behind an output version, with what it did to its transaction. Before is nil for the first
// record of a transaction. Was is what the balances published before it hold of the transaction: Before, but while the key is
// blocked what stood when it froze. Those of Tail and Compare are the record alone: they say nothing of Before, Was, After and
// Frozen.
type Cause struct {
	Committed time.Time // by the database's clock
	Before    *Standing
	Was       *Standing
	Assertion ledger.Assertion
	After     Standing
	Offset    ledger.Offset
	Arrived   int64 // the broker's timestamp in ms since 1970, for show only
	Partition ledger.Partition
	Class     ledger.Class
	Frozen    bool // the key is BLOCKED after it
}

// Change returns by how much the record changed what its transaction adds to published balances, wherever it falls: nothing
// while the key is BLOCKED, which freezes them. It returns false where a count takes part, which states a balance and adds nothing.
func (c *Cause) Change() (*big.Int, bool) {
	change := new(big.Int)
	if c.Frozen {
		return change, !c.Assertion.Payload.Kind.IsCount()
	}
	if p, ok := c.After.active(); ok {
		if p.Kind.IsCount() {
			return nil, false
		}
		change.SetInt64(p.Units())
	}
	if c.Was != nil {
		if p, ok := c.Was.active(); ok {
			if p.Kind.IsCount() {
				return nil, false
			}
			change.Sub(change, big.NewInt(p.Units()))
		}
	}
	return change, true
}

// causeOf is the source record of an entry of partition p, by itself.
func causeOf(e *reader.Entry, p ledger.Partition) Cause {
	d := &e.Decision
	return Cause{Committed: e.Committed, Assertion: d.Assertion, Offset: d.Offset, Arrived: d.Timestamp, Partition: p, Class: d.Class}
}

// Account is what one stock key's decisions amount to. It is not safe for concurrent use.
type Account struct {
	status       *ledger.Status // the last one published, nil before the first
	blocked      *Cause         // what blocked the key, nil while it is READY
	transactions map[string]Standing
	aside        map[string]*Standing // while blocked: the standing before, of what changed since; nil was unknown
	days         []published          // by distance from the origin
	opening      int64
	origin       ledger.Day
	partition    ledger.Partition
}

// published is what was last published of one day.
type published struct {
	close    int64
	previous int64 // of the alert
	version  ledger.Version
	present  bool
	alerted  bool
}

// NewAccount returns the account of a key of partition p before its first record. opening is its opening balance, origin
// the ledger origin.
func NewAccount(p ledger.Partition, origin ledger.Day, opening int64) *Account {
	return &Account{partition: p, origin: origin, opening: opening, transactions: map[string]Standing{}}
}

// Add takes the key's next decision and returns what it did. It keeps nothing that e points to but the status.
func (a *Account) Add(e *reader.Entry) Cause {
	d := &e.Decision
	c := causeOf(e, a.partition)
	before, known := a.transactions[d.Assertion.TxnID]
	if known {
		c.Before, c.Was = &before, &before
	}
	if kept, frozen := a.aside[d.Assertion.TxnID]; frozen {
		c.Was = kept
	}
	c.After = before
	switch d.Class {
	case ledger.Applied:
		c.After = Standing{Payload: d.Assertion.Payload, Revision: d.Assertion.Revision, Offset: d.Offset}
	case ledger.Conflict:
		c.After.Ambiguous = true
	}
	a.publish(&c, d.Changes)
	c.Frozen = a.blocked != nil
	if c.Before == nil || c.After != before {
		if _, kept := a.aside[d.Assertion.TxnID]; a.blocked != nil && !kept {
			a.aside[d.Assertion.TxnID] = c.Before
		}
		a.transactions[d.Assertion.TxnID] = c.After
	}
	return c
}

// publish notes the outputs of a decision, before its transaction changes.
func (a *Account) publish(c *Cause, changes []ledger.Change) {
	for i := range changes {
		switch ch := &changes[i]; ch.Kind {
		case ledger.Balance:
			day := a.at(ch.Day)
			day.close, day.version, day.present = ch.Close, ch.Version, ch.Present
		case ledger.Alert:
			day := a.at(ch.Day)
			day.previous, day.alerted = ch.Previous, ch.Present
		case ledger.TrustStatus:
			a.status = ch.Status
			switch {
			case !ch.Status.Blocked:
				a.blocked, a.aside = nil, nil
			case a.blocked == nil:
				c.Frozen = true
				by := *c
				a.blocked, a.aside = &by, map[string]*Standing{}
			}
		}
	}
}

// at returns the place of a day, which is at the origin or later.
func (a *Account) at(d ledger.Day) *published {
	if need := int(d-a.origin) + 1; need > len(a.days) {
		a.days = append(a.days, make([]published, need-len(a.days))...)
	}
	return &a.days[d-a.origin]
}

// Balance is the balance of a key as of a business day.
type Balance struct {
	Close    int64
	Previous int64          // the close before, where Alert
	Version  ledger.Version // of the balance output, 0 for the opening balance
	Day      ledger.Day     // the latest day at or before it that has a balance, 0 for the opening balance
	Alert    bool           // that day has an alert
}

// Balance returns the balance as of a day as it was last published: the close of the latest day at or before it that has
// one, else the opening balance. Day 0 asks for the latest of all.
func (a *Account) Balance(as ledger.Day) Balance {
	for i := a.last(as); i >= 0; i-- {
		if a.days[i].present {
			return a.balance(i)
		}
	}
	return Balance{Close: a.opening}
}

func (a *Account) balance(i int) Balance {
	d := &a.days[i]
	return Balance{Close: d.close, Version: d.version, Day: a.origin + ledger.Day(i), Alert: d.alerted, Previous: d.previous}
}

// last returns the index of a day, or of the last one held where it is earlier.
func (a *Account) last(as ledger.Day) int {
	if as == 0 {
		return len(a.days) - 1
	}
	return min(int(as-a.origin), len(a.days)-1)
}

// Balances returns those of the days from..to, both included, that have one, in order. Day 0 leaves an end open.
func (a *Account) Balances(from, to ledger.Day) []Balance {
	var all []Balance
	for i := max(0, int(from-a.origin)); i <= a.last(to); i++ {
		if a.days[i].present {
			all = append(all, a.balance(i))
		}
	}
	return all
}

// Status returns the trust status last published, nil before the first.
func (a *Account) Status() *ledger.Status { return a.status }

// Blocked returns the record that blocked the key, nil while it is READY.
func (a *Account) Blocked() *Cause { return a.blocked }

// contributions calls fn for each assertion that the published closes are derived from.
func (a *Account) contributions(fn func(id string, s Standing)) {
	for id, s := range a.transactions {
		if kept, changed := a.aside[id]; changed {
			if kept == nil {
				continue
			}
			s = *kept
		}
		if _, ok := s.active(); ok {
			fn(id, s)
		}
	}
}
