package oracle

import (
	"cmp"
	"slices"

	"amends/internal/ledger"
)

// Source is a valid source record and where it was first seen.
type Source struct {
	Assertion ledger.Assertion
	Offset    ledger.Offset
	Partition ledger.Partition
}

// Sources returns the records that decide what day d of a key has: the authority of every transaction of which any
// record names the day, so that those are named too which moved away or cancelled it. In offset order. Of an ambiguous
// transaction it is the first record at the contested revision. The cost follows all records of the key.
func (o *Oracle) Sources(name ledger.StockKey, d ledger.Day) []Source {
	return o.collect(name, func(t *transaction, add func(claim, ledger.Offset)) {
		if t.names(d) {
			add(t.top, t.offset)
		}
	})
}

// Conflicts returns the records at the contested revision of every ambiguous transaction of a key, each different
// payload once at its first offset, in offset order.
func (o *Oracle) Conflicts(name ledger.StockKey) []Source {
	return o.collect(name, func(t *transaction, add func(claim, ledger.Offset)) {
		if !t.contested {
			return
		}
		add(t.top, t.offset)
		for i, c := range t.older.claims {
			if c.revision == t.top.revision {
				add(c, t.older.offset[i])
			}
		}
	})
}

// Last returns the offset of the last valid record of a key, and false where there is none.
func (o *Oracle) Last(name ledger.StockKey) (ledger.Offset, bool) {
	k, ok := o.keys[name]
	if !ok {
		return 0, false
	}
	return k.last, true
}

func (o *Oracle) collect(name ledger.StockKey, from func(*transaction, func(claim, ledger.Offset))) []Source {
	k, ok := o.keys[name]
	if !ok {
		return nil
	}
	var found []Source
	for i := range k.transactions {
		t := &k.transactions[i]
		from(t, func(c claim, at ledger.Offset) {
			found = append(found, Source{Partition: k.partition, Offset: at,
				Assertion: ledger.Assertion{Key: k.name, TxnID: t.id, Revision: c.revision, Payload: c.payload}})
		})
	}
	slices.SortFunc(found, func(a, b Source) int { return cmp.Compare(a.Offset, b.Offset) })
	return found
}

// names reports whether any record of t falls on day d.
func (t *transaction) names(d ledger.Day) bool {
	if t.top.payload.Day == d {
		return true
	}
	return t.older != nil && slices.ContainsFunc(t.older.claims, func(c claim) bool { return c.payload.Day == d })
}
