package storetest

import (
	"crypto/sha256"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

var (
	widget = ledger.StockKey{Item: "widget", Location: "berlin"}
	gadget = ledger.StockKey{Item: "gadget", Location: "paris"}
)

const jan1 = ledger.Day(739_617) // 2026-01-01

// builder makes consecutive batches of one partition by hand: what they say need not be what an engine would decide.
type builder struct {
	ids      map[ledger.StockKey]ledger.KeyID
	offset   ledger.Offset
	sequence ledger.Sequence
	p        ledger.Partition
}

func newBuilder(p ledger.Partition) *builder {
	return &builder{p: p, ids: map[ledger.StockKey]ledger.KeyID{}}
}

// valid returns the next decision of a key with these changes.
func (b *builder) valid(key ledger.StockKey, changes ...ledger.Change) ledger.Decision {
	d := ledger.Decision{Offset: b.offset, Class: ledger.Applied, Timestamp: 1_700_000_000_000 + int64(b.offset), Changes: changes,
		Assertion: ledger.Assertion{Key: key, TxnID: fmt.Sprintf("T-%d", b.offset), Revision: 1,
			Payload: ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Day: jan1, Quantity: 100}}}
	sum := sha256.Sum256([]byte(d.Assertion.TxnID))
	copy(d.Digest[:], sum[:])
	if len(changes) > 0 {
		d.Sequence = b.sequence
	}
	id, known := b.ids[key]
	if !known {
		id = ledger.KeyID(b.offset)
		b.ids[key] = id
	}
	d.KeyID, d.NewKey = id, !known
	b.offset++
	b.sequence += ledger.Sequence(len(changes))
	return d
}

// rejected returns the next decision, a rejected record.
func (b *builder) rejected(code ledger.Rejection, key, value []byte) ledger.Decision {
	d := ledger.Decision{Offset: b.offset, Rejection: code, Timestamp: -1, Evidence: &ledger.Evidence{Key: key, Value: value,
		KeyLength: int64(len(key)), ValueLength: int64(len(value)), KeySHA: sha256.Sum256(key), ValueSHA: sha256.Sum256(value)}}
	d.Digest[0] = byte(code)
	b.offset++
	return d
}

// batch returns the batch of decisions that follow each other up to now.
func (b *builder) batch(decisions ...ledger.Decision) *ledger.Batch {
	batch := &ledger.Batch{Partition: b.p, Decisions: decisions, Next: ledger.Frontier(b.offset), NextSequence: b.sequence,
		FirstSequence: b.sequence, Expected: ledger.Frontier(b.offset)}
	for i := range decisions {
		d := &decisions[i]
		batch.FirstSequence -= ledger.Sequence(len(d.Changes))
		batch.Work.Records++
		if d.Rejection != 0 {
			batch.Work.Rejected++
		} else {
			batch.Work.Accepted++
		}
		batch.Work.Changed += int64(len(d.Changes))
	}
	if len(decisions) > 0 {
		batch.Expected = ledger.Frontier(decisions[0].Offset)
	}
	return batch
}

// one returns the batch of the next decision of a key with one new version of its status.
func (b *builder) one(key ledger.StockKey) *ledger.Batch {
	return b.batch(b.valid(key, ready(ledger.Version(b.offset)+1)))
}

func balance(day ledger.Day, version ledger.Version, closed int64) ledger.Change {
	return ledger.Change{Kind: ledger.Balance, Day: day, Version: version, Present: true, Close: closed}
}

func alert(day ledger.Day, version ledger.Version, previous, closed int64) ledger.Change {
	return ledger.Change{Kind: ledger.Alert, Day: day, Version: version, Present: true, Close: closed, Previous: previous}
}

func withdrawn(kind ledger.OutputKind, day ledger.Day, version ledger.Version) ledger.Change {
	return ledger.Change{Kind: kind, Day: day, Version: version}
}

func ready(version ledger.Version) ledger.Change {
	return ledger.Change{Kind: ledger.TrustStatus, Version: version, Present: true, Status: &ledger.Status{}}
}

// viewRow returns a balance row as an envelope at that sequence would give it, caused at source offset 10 times it.
func viewRow(p ledger.Partition, key ledger.StockKey, day ledger.Day, sequence ledger.Sequence, version ledger.Version, closed int64) store.ViewRow {
	return store.ViewRow{ID: ledger.OutputID{Key: key, Day: day, Kind: ledger.Balance}, Present: true, Close: closed, Sequence: sequence,
		Version: version, Digest: -77 + int64(sequence), Index: 0, Count: 1,
		Cause: store.Cause{Partition: p, Offset: 10 * ledger.Offset(sequence), TxnID: "T-1", Revision: ledger.Revision(version)}}
}

// page returns the page of rows that follow a position, each new or replacing the version before it.
func page(p ledger.Partition, before store.ViewPosition, rows ...store.ViewRow) *store.ViewPage {
	pg := &store.ViewPage{Partition: p, Before: before, Next: before}
	for _, r := range rows {
		pg.Changes = append(pg.Changes, store.ViewChange{Row: r, Before: r.Version - 1})
		pg.Next.Sequence = max(pg.Next.Sequence, r.Sequence+1)
		pg.Next.Output = before.Output + ledger.Frontier(pg.Next.Sequence-before.Sequence)
		pg.Next.Cause = max(pg.Next.Cause, r.Cause.Offset)
	}
	return pg
}
