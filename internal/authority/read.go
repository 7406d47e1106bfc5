package authority

import (
	"iter"

	"amends/internal/ledger"
)

// Len returns the number of transactions.
func (t *Transactions) Len() int { return len(t.txns) }

// PastLen returns the number of recorded (revision, payload) that their transactions do not hold themselves.
func (t *Transactions) PastLen() int { return len(t.past) }

// Ambiguous returns the number of ambiguous transactions.
func (t *Transactions) Ambiguous() int { return len(t.ambiguous) }

// AmbiguousAt returns the i-th ambiguous transaction by txn_id bytes, 0 <= i < Ambiguous(), with its ambiguous
// revision. The bytes are valid until the next Record and must not be changed.
func (t *Transactions) AmbiguousAt(i int) ([]byte, ledger.Revision) {
	at := t.ambiguous[i]
	return t.id(at), t.txns[at].revision
}

// All yields every transaction with the evidence it holds itself: the first at its highest revision. The order is
// that of first records; the bytes are valid until the next Record and must not be changed.
func (t *Transactions) All() iter.Seq2[[]byte, Evidence] {
	return func(yield func([]byte, Evidence) bool) {
		for i := range t.txns {
			x := &t.txns[i]
			if !yield(t.id(uint32(i)), Evidence{x.revision, x.payload()}) {
				return
			}
		}
	}
}

// Past yields all other evidence with the number of its transaction in the order of All, in the order in which it
// became other evidence: a Record of All and then of Past gives the same evidence again.
func (t *Transactions) Past() iter.Seq2[int, Evidence] {
	return func(yield func(int, Evidence) bool) {
		for i := range t.past {
			e := &t.past[i]
			if !yield(int(e.txn), Evidence{e.revision, e.payload()}) {
				return
			}
		}
	}
}

// ID returns the txn_id of the i-th transaction in the order of All.
func (t *Transactions) ID(i int) string { return string(t.id(uint32(i))) }

// Contributions yields what each transaction contributes to closes (S5), leaving out those that contribute nothing.
func (t *Transactions) Contributions() iter.Seq[ledger.Payload] {
	return func(yield func(ledger.Payload) bool) {
		for i := range t.txns {
			if p := t.txns[i].contribution(); p.State == ledger.Active && !yield(p) {
				return
			}
		}
	}
}

// Bytes returns the memory the evidence takes up, within a few bytes.
func (t *Transactions) Bytes() int64 {
	const header = 200
	return int64(header + cap(t.ids) + txnBytes*cap(t.txns) + pastBytes*cap(t.past) + t.byID.bytes() + t.byPast.bytes() + 4*cap(t.ambiguous))
}
