package authority

import (
	"bytes"
	"hash/maphash"
	"slices"

	"amends/internal/invariant"
	"amends/internal/ledger"
)

// Transactions is the evidence of one stock key. The zero value is not ready; New makes one. Not safe for
// concurrent use.
type Transactions struct {
	seed      maphash.Seed
	ids       []byte // the txn_ids, one after the other
	txns      []txn
	byID      table // positions in txns by txn_id
	past      []past
	byPast    table    // positions in past by (transaction, revision), and with the payload for later ones
	ambiguous []uint32 // positions in txns, by txn_id bytes
}

// txn is a transaction with its highest revision and the payload recorded first at it. 32 bytes.
type txn struct {
	revision  ledger.Revision
	quantity  ledger.Quantity
	id        uint64 // where its txn_id begins in ids, shifted by idShift, and its length
	day       ledger.Day
	state     ledger.State
	kind      ledger.Kind
	ambiguous bool
}

// past is evidence other than what its transaction holds itself. 32 bytes.
type past struct {
	revision ledger.Revision
	quantity ledger.Quantity
	txn      uint32
	day      ledger.Day
	state    ledger.State
	kind     ledger.Kind
	further  bool // not the first payload recorded at its revision
}

const (
	idShift   = 16
	txnBytes  = 32
	pastBytes = 32
	maxTxns   = 1 << 31 // what a table can number: 64 GiB of transactions of one key
)

// New returns the evidence of a key without records.
func New() *Transactions { return &Transactions{seed: maphash.MakeSeed()} }

// Effect is what one record did. Before and After are what its transaction contributes to closes (S5) before and
// after: the payload of an active transaction, zero for one that is unknown, cancelled or ambiguous.
type Effect struct {
	Before ledger.Payload
	After  ledger.Payload
	Class  ledger.Class
}

// Evidence is one recorded (revision, payload).
type Evidence struct {
	Revision ledger.Revision
	Payload  ledger.Payload
}

// Record classifies a valid assertion of transaction id against all evidence and records it (S4).
func (t *Transactions) Record(id string, revision ledger.Revision, p ledger.Payload) Effect {
	hash := maphash.String(t.seed, id)
	at, known := t.byID.find(hash, func(i uint32) bool { return string(t.id(i)) == id })
	if !known {
		t.insert(hash, id, revision, p)
		return Effect{Class: ledger.Applied, After: contribution(p)}
	}
	x := &t.txns[at]
	same := x.payload() == p
	switch {
	case revision > x.revision:
		return t.supersede(at, revision, p)
	case revision == x.revision && same:
		return t.unchanged(at, ledger.Duplicate)
	case revision == x.revision:
		return t.conflict(at, p)
	}
	return t.unchanged(at, t.recordLower(at, revision, p))
}

// supersede makes a higher revision the authority; what it replaces becomes past evidence.
func (t *Transactions) supersede(at uint32, revision ledger.Revision, p ledger.Payload) Effect {
	x := &t.txns[at]
	before := x.contribution()
	if x.ambiguous {
		i, found := t.ambiguousAt(at)
		invariant.That(found, "an ambiguous transaction is listed")
		t.ambiguous = slices.Delete(t.ambiguous, i, i+1)
		x.ambiguous = false
	}
	t.remember(at, x.revision, x.payload(), false)
	x.revision = revision
	x.quantity, x.day, x.state, x.kind = p.Quantity, p.Day, p.State, p.Kind
	return Effect{Class: ledger.Applied, Before: before, After: contribution(p)}
}

// conflict records a payload other than the first at the highest revision.
func (t *Transactions) conflict(at uint32, p ledger.Payload) Effect {
	x := &t.txns[at]
	if x.ambiguous && t.hasFurther(at, x.revision, p) {
		return Effect{Class: ledger.Duplicate}
	}
	before := x.contribution()
	t.remember(at, x.revision, p, true)
	if !x.ambiguous {
		i, _ := t.ambiguousAt(at)
		t.ambiguous = slices.Insert(t.ambiguous, i, at)
		x.ambiguous = true
	}
	return Effect{Class: ledger.Conflict, Before: before}
}

// recordLower classifies and records evidence below the highest revision.
func (t *Transactions) recordLower(at uint32, revision ledger.Revision, p ledger.Payload) ledger.Class {
	first, found := t.byPast.find(t.hashFirst(at, revision), func(i uint32) bool {
		e := &t.past[i]
		return e.txn == at && e.revision == revision && !e.further
	})
	switch {
	case !found:
		t.remember(at, revision, p, false)
		return ledger.Stale
	case t.past[first].payload() == p || t.hasFurther(at, revision, p):
		return ledger.Duplicate
	}
	t.remember(at, revision, p, true)
	return ledger.StaleConflict
}

func (t *Transactions) unchanged(at uint32, c ledger.Class) Effect {
	now := t.txns[at].contribution()
	return Effect{Class: c, Before: now, After: now}
}

func (t *Transactions) insert(hash uint64, id string, revision ledger.Revision, p ledger.Payload) {
	invariant.That(len(t.txns) < maxTxns && ledger.ValidIdentifier(id), "a key's transactions can be numbered and named")
	t.txns = append(roomy(t.txns, 1), txn{revision: revision, quantity: p.Quantity, day: p.Day, state: p.State, kind: p.Kind,
		id: uint64(len(t.ids))<<idShift | uint64(len(id))})
	t.ids = append(roomy(t.ids, len(id)), id...)
	t.byID.add(hash, uint32(len(t.txns)-1), func(i uint32) uint64 { return maphash.Bytes(t.seed, t.id(i)) })
}

// hasFurther reports whether p is recorded at revision as a payload other than the first.
func (t *Transactions) hasFurther(at uint32, revision ledger.Revision, p ledger.Payload) bool {
	_, found := t.byPast.find(t.hashFurther(at, revision, p), func(i uint32) bool {
		e := &t.past[i]
		return e.txn == at && e.revision == revision && e.further && e.payload() == p
	})
	return found
}

// remember adds past evidence that is not there yet.
func (t *Transactions) remember(at uint32, revision ledger.Revision, p ledger.Payload, further bool) {
	invariant.That(len(t.past) < maxTxns, "a key's evidence can be numbered")
	t.past = append(roomy(t.past, 1), past{txn: at, revision: revision, quantity: p.Quantity, day: p.Day, state: p.State, kind: p.Kind, further: further})
	i := uint32(len(t.past) - 1)
	t.byPast.add(t.hashPast(i), i, t.hashPast)
}

func (t *Transactions) hashPast(i uint32) uint64 {
	e := &t.past[i]
	if e.further {
		return t.hashFurther(e.txn, e.revision, e.payload())
	}
	return t.hashFirst(e.txn, e.revision)
}

func (t *Transactions) hashFirst(at uint32, revision ledger.Revision) uint64 {
	return maphash.Comparable(t.seed, [2]uint64{uint64(at), uint64(revision)})
}

func (t *Transactions) hashFurther(at uint32, revision ledger.Revision, p ledger.Payload) uint64 {
	small := uint64(p.Day)<<16 | uint64(p.State)<<8 | uint64(p.Kind)
	return maphash.Comparable(t.seed, [4]uint64{uint64(at), uint64(revision), uint64(p.Quantity), small})
}

// ambiguousAt returns where transaction at stands, or would stand, among the ambiguous ones.
func (t *Transactions) ambiguousAt(at uint32) (int, bool) {
	return slices.BinarySearchFunc(t.ambiguous, at, func(a, b uint32) int { return bytes.Compare(t.id(a), t.id(b)) })
}

func (t *Transactions) id(i uint32) []byte {
	at := t.txns[i].id
	start := at >> idShift
	return t.ids[start : start+at&(1<<idShift-1)]
}

func (x *txn) payload() ledger.Payload {
	return ledger.Payload{Quantity: x.quantity, Day: x.day, State: x.state, Kind: x.kind}
}

func (x *txn) contribution() ledger.Payload {
	if x.ambiguous {
		return ledger.Payload{}
	}
	return contribution(x.payload())
}

func (e *past) payload() ledger.Payload {
	return ledger.Payload{Quantity: e.quantity, Day: e.day, State: e.state, Kind: e.kind}
}

func contribution(p ledger.Payload) ledger.Payload {
	if p.State != ledger.Active {
		return ledger.Payload{}
	}
	return p
}

// roomy returns s with room for n more elements. It grows by a quarter: a key's memory is mostly these slices, and
// the doubling of append would leave a third of it empty.
func roomy[E any](s []E, n int) []E {
	if len(s)+n <= cap(s) {
		return s
	}
	bigger := make([]E, len(s), len(s)+n+max(len(s)/4, 4))
	copy(bigger, s)
	return bigger
}
