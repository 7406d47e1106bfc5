package row

import (
	"bytes"
	"errors"
	"fmt"

	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Columns of a journal row as load_journal, pending and read_journal select them; item and location follow.
const (
	Offset = iota // the source offset
	colBrokerMS
	KeyID // of a valid record
	colRevision
	colQuantity
	colSequence
	colDay
	colState
	colKind
	colClass
	colRejection
	colDigest
	colTxnID
	colBody
	colItem
	colLocation
	colEvidence               // read_journal only: the quarantine row's offset, the evidence, its code, and the number of outputs
	Frontier    = colEvidence // pending only: the partition's, then its next sequence
)

// arenaChanges is how many changes are allocated together.
const arenaChanges = 1_024

// Decisions turns journal rows into decisions. Changes of many rows share an allocation.
type Decisions struct {
	arena []ledger.Change
}

// Read fills d from a row's typed columns and body. The key is the caller's to set. store.ErrIntegrity for a damaged body,
// store.ErrSchema for one of another format.
func (r *Decisions) Read(v [][]byte, d *ledger.Decision) error {
	d.Offset = ledger.Offset(session.ReadInt64(v[Offset]))
	d.Timestamp = session.ReadInt64(v[colBrokerMS])
	d.KeyID = ledger.KeyID(session.ReadInt64(v[KeyID]))
	d.Sequence = ledger.Sequence(session.ReadInt64(v[colSequence]))
	d.Class = ledger.Class(session.ReadInt16(v[colClass]))
	d.Rejection = ledger.Rejection(session.ReadInt16(v[colRejection]))
	d.NewKey = d.Rejection == 0 && ledger.Offset(d.KeyID) == d.Offset
	copy(d.Digest[:], v[colDigest])
	a := &d.Assertion
	a.TxnID = string(v[colTxnID])
	a.Revision = ledger.Revision(session.ReadInt64(v[colRevision]))
	a.Payload.State = ledger.State(session.ReadInt16(v[colState]))
	a.Payload.Kind = ledger.Kind(session.ReadInt16(v[colKind]))
	a.Payload.Quantity = ledger.Quantity(session.ReadInt64(v[colQuantity]))
	if v[colDay] != nil {
		a.Payload.Day = ledger.Day(session.ReadInt32(v[colDay]) + DateEpoch)
	}
	if v[colBody] == nil {
		return nil
	}
	if cap(r.arena)-len(r.arena) < 16 {
		r.arena = make([]ledger.Change, 0, arenaChanges)
	}
	free := r.arena[len(r.arena):]
	changes, err := journal.AppendChanges(free, v[colBody])
	if err != nil {
		return damaged(d.Offset, err)
	}
	if len(changes) <= cap(free) {
		r.arena = r.arena[:len(r.arena)+len(changes)]
	}
	d.Changes = changes[:len(changes):len(changes)]
	return nil
}

// damaged says what a body that cannot be read means: another format is another binary's, else an operator must look.
func damaged(at ledger.Offset, err error) error {
	if errors.Is(err, journal.ErrFormat) {
		return fmt.Errorf("journal row at offset %d: %w: %w", at, store.ErrSchema, err)
	}
	return fmt.Errorf("journal row at offset %d: %w: %w", at, store.ErrIntegrity, err)
}

// ReadKeyed is Read for rows that carry their key: store.ErrIntegrity too where a valid record has none.
func (r *Decisions) ReadKeyed(v [][]byte, d *ledger.Decision) error {
	if err := r.Read(v, d); err != nil {
		return err
	}
	if d.Rejection != 0 {
		return nil
	}
	if v[colItem] == nil {
		return fmt.Errorf("journal row at offset %d: no key of id %d: %w", d.Offset, d.KeyID, store.ErrIntegrity)
	}
	d.Assertion.Key = ledger.StockKey{Item: string(v[colItem]), Location: string(v[colLocation])}
	return nil
}

// ReadEvidence reads the quarantine row of a rejected record: store.ErrIntegrity where it has none.
func ReadEvidence(v [][]byte, d *ledger.Decision) error {
	if d.Rejection == 0 {
		return nil
	}
	if v[colEvidence] == nil {
		return fmt.Errorf("journal row at offset %d: no quarantine row: %w", d.Offset, store.ErrIntegrity)
	}
	e := &ledger.Evidence{KeyLength: session.ReadInt64(v[colEvidence+1]), ValueLength: session.ReadInt64(v[colEvidence+2]),
		Key: bytes.Clone(v[colEvidence+5]), Value: bytes.Clone(v[colEvidence+6])}
	copy(e.KeySHA[:], v[colEvidence+3])
	copy(e.ValueSHA[:], v[colEvidence+4])
	d.Evidence = e
	if len(v[colEvidence+3]) != len(e.KeySHA) || len(v[colEvidence+4]) != len(e.ValueSHA) {
		return fmt.Errorf("journal row at offset %d: the length of a sum in its quarantine row: %w", d.Offset, store.ErrIntegrity)
	}
	if code := ledger.Rejection(session.ReadInt16(v[colEvidence+7])); code != d.Rejection {
		return fmt.Errorf("journal row at offset %d: rejected as %q, its quarantine row as %q: %w", d.Offset, d.Rejection, code, store.ErrIntegrity)
	}
	return nil
}

// CheckRow compares the columns of a journal row that Read does not need with those that it does: store.ErrIntegrity where
// they contradict each other. The schema's constraints say the same; damage asks no constraint.
func CheckRow(v [][]byte, d *ledger.Decision) error {
	n := int(session.ReadInt32(v[colEvidence+8]))
	rejected, dated := d.Rejection != 0, d.Assertion.Payload.State == ledger.Active
	fault := ""
	switch {
	case n != len(d.Changes):
		fault = fmt.Sprintf("it says %d outputs and holds %d", n, len(d.Changes))
	case len(v[colDigest]) != len(d.Digest):
		fault = "the length of its digest"
	case (v[colSequence] == nil) != (n == 0) || (v[colBody] == nil) != (n == 0):
		fault = "a sequence or a body without outputs, or outputs without them"
	case !all(rejected, v, KeyID, colRevision, colState, colClass, colTxnID) || (v[colRejection] == nil) == rejected:
		fault = "columns of a rejected record in an assertion, or the other way round"
	case !all(rejected || !dated, v, colQuantity, colDay, colKind):
		fault = "columns of an active assertion in another, or the other way round"
	}
	if fault == "" {
		return nil
	}
	return fmt.Errorf("journal row at offset %d: %s: %w", d.Offset, fault, store.ErrIntegrity)
}

// all reports whether all columns are NULL, or none is.
func all(null bool, v [][]byte, columns ...int) bool {
	for _, c := range columns {
		if (v[c] == nil) != null {
			return false
		}
	}
	return true
}
