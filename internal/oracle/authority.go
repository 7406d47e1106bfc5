package oracle

import "amends/internal/ledger"

// claim is what one record says of its transaction.
type claim struct {
	payload  ledger.Payload
	revision ledger.Revision
}

// transaction groups the valid records of one identity (S4).
type transaction struct {
	older     *evidence // every claim recorded but top; nil where there is none
	id        string
	top       claim         // a claim at the highest revision, the first recorded
	offset    ledger.Offset // where top was first recorded
	contested bool          // the highest revision has two or more payloads
}

// evidence holds what was recorded of a transaction beside its top claim, each claim once, at its first offset.
type evidence struct {
	claims []claim
	offset []ledger.Offset
	exact  map[claim]struct{}           // of all claims, once there are many
	level  map[ledger.Revision]struct{} // of all revisions, once there are many
}

// manyClaims is where a scan of the claims gives way to sets.
const manyClaims = 16

// record adds what one record says, at offset, and returns its class against what was there before.
func (t *transaction) record(c claim, at ledger.Offset) ledger.Class {
	if c == t.top {
		return ledger.Duplicate
	}
	exact, level := t.older.find(c)
	switch {
	case exact:
		return ledger.Duplicate
	case c.revision > t.top.revision:
		t.shelve(t.top, t.offset)
		t.top, t.offset, t.contested = c, at, false
		return ledger.Applied
	case c.revision == t.top.revision:
		t.shelve(c, at)
		t.contested = true
		return ledger.Conflict
	}
	t.shelve(c, at)
	if level {
		return ledger.StaleConflict
	}
	return ledger.Stale
}

// active returns the payload that counts, and false where the transaction is cancelled or ambiguous.
func (t *transaction) active() (ledger.Payload, bool) {
	return t.top.payload, !t.contested && t.top.payload.State == ledger.Active
}

func (t *transaction) shelve(c claim, at ledger.Offset) {
	if t.older == nil {
		t.older = new(evidence)
	}
	t.older.add(c, at)
}

// find reports whether c is held, and whether any claim of its revision is.
func (e *evidence) find(c claim) (exact, level bool) {
	if e == nil {
		return false, false
	}
	if e.exact != nil {
		_, exact = e.exact[c]
		_, level = e.level[c.revision]
		return exact, level
	}
	for _, h := range e.claims {
		exact = exact || h == c
		level = level || h.revision == c.revision
	}
	return exact, level
}

func (e *evidence) add(c claim, at ledger.Offset) {
	e.claims = append(e.claims, c)
	e.offset = append(e.offset, at)
	if e.exact == nil && len(e.claims) > manyClaims {
		e.exact = make(map[claim]struct{}, 2*manyClaims)
		e.level = make(map[ledger.Revision]struct{}, 2*manyClaims)
		for _, h := range e.claims {
			e.exact[h] = struct{}{}
			e.level[h.revision] = struct{}{}
		}
	}
	if e.exact != nil {
		e.exact[c] = struct{}{}
		e.level[c.revision] = struct{}{}
	}
}
