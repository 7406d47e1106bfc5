package wire

import (
	"slices"

	"amends/internal/invariant"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

// Encoder turns the changes of one partition's decisions into envelopes (S8). Envelope bytes are a function of the
// decision and the configuration alone. What the envelopes of a decision have in common is encoded once. It is for one goroutine.
type Encoder struct {
	cfg       *manifest.Config
	threshold *int64
	txnID     string
	key       ledger.StockKey
	pieces    pieces
	offset    ledger.Offset
	revision  ledger.Revision
	partition ledger.Partition
}

// NewEncoder returns an encoder for the decisions of partition p.
func NewEncoder(cfg *manifest.Config, p ledger.Partition) *Encoder {
	return &Encoder{cfg: cfg, partition: p, offset: -1, pieces: pieces{head: appendHead(nil, cfg.Namespace)}}
}

// Fits reports whether d can have come from this configuration: a key without a threshold has no present alert (S6).
func (e *Encoder) Fits(d *ledger.Decision) bool {
	e.prepare(d)
	return e.threshold != nil || !slices.ContainsFunc(d.Changes, func(c ledger.Change) bool { return c.Kind == ledger.Alert && c.Present })
}

// Append appends the envelope of d.Changes[i]. It panics where d does not fit.
func (e *Encoder) Append(dst []byte, d *ledger.Decision, i int) []byte {
	e.prepare(d)
	c := &d.Changes[i]
	v := Envelope{
		Sequence: d.Sequence + ledger.Sequence(i),
		Output:   ledger.OutputID{Kind: c.Kind, Day: c.Day},
		Version:  c.Version,
		Present:  c.Present,
		Close:    c.Close,
		Previous: c.Previous,
		Status:   c.Status,
		Index:    i,
		Count:    len(d.Changes),
	}
	if c.Kind == ledger.Alert && c.Present {
		v.Threshold = e.watched()
	}
	return e.pieces.append(dst, &v)
}

// Key appends the key of the broker record that carries an envelope of d (S8).
func (e *Encoder) Key(dst []byte, d *ledger.Decision) []byte { return AppendKey(dst, d.Assertion.Key) }

// prepare encodes the pieces of d unless the last decision had the same.
func (e *Encoder) prepare(d *ledger.Decision) {
	a := &d.Assertion
	if e.key != a.Key || len(e.pieces.key) == 0 {
		e.key = a.Key
		e.pieces.key = appendMembers(e.pieces.key[:0], a.Key)
		terms, _ := e.cfg.Terms(a.Key)
		e.threshold = terms.Threshold
	}
	if e.offset != d.Offset || e.revision != a.Revision || e.txnID != a.TxnID {
		e.offset, e.revision, e.txnID = d.Offset, a.Revision, a.TxnID
		e.pieces.cause = appendCause(e.pieces.cause[:0],
			Cause{Partition: e.partition, Offset: d.Offset, TxnID: a.TxnID, Revision: a.Revision})
	}
}

func (e *Encoder) watched() int64 {
	invariant.That(e.threshold != nil, "an alert's key has a threshold (S6)")
	return *e.threshold
}
