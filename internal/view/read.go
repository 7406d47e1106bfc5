package view

import (
	"bytes"
	"fmt"
	"slices"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// item is a decoded record. Its bytes are not kept: they are a function of the envelope.
type item struct {
	repair    *repair
	status    *ledger.Status
	sequence  ledger.Sequence
	version   ledger.Version
	close     int64
	previous  int64
	threshold int64
	digest    int64
	output    uint64 // numbers the output within the Decider
	offset    ledger.Offset
	end       ledger.Frontier // past the record and the repetitions and gaps behind it
	index     int32
	slot      int32
	present   bool
}

// repair is what the outputs of one repair have in common. Outputs that follow each other share it.
type repair struct {
	key   ledger.StockKey
	cause wire.Cause
	count int
}

// id returns which output it is.
func (it *item) id() ledger.OutputID {
	return ledger.OutputID{Key: it.repair.key, Day: ledger.Day(it.output >> 2 & (1<<22 - 1)), Kind: ledger.OutputKind(it.output & 3)}
}

// envelope writes what was decoded into e.
func (it *item) envelope(namespace string, e *wire.Envelope) {
	*e = wire.Envelope{Namespace: namespace, Output: it.id(), Cause: it.repair.cause, Status: it.status, Sequence: it.sequence, Version: it.version,
		Close: it.close, Previous: it.previous, Threshold: it.threshold, Index: int(it.index), Count: it.repair.count, Present: it.present}
}

// Read takes records of the partition in offset order, at or past End, and next, the offset that the reader is at
// behind them (S13). Nothing is read past a record that violates the protocol by itself. The records are not kept.
func (d *Decider) Read(records []ledger.SourceRecord, next ledger.Frontier) {
	for i := range records {
		if d.broken != nil {
			return
		}
		r := &records[i]
		if ledger.Frontier(r.Offset) < d.end {
			continue // seen already
		}
		it := d.blank()
		it.offset, it.end = r.Offset, ledger.Frontier(r.Offset)+1
		if reason, detail := d.decode(r, it); reason != "" {
			d.items = d.items[:len(d.items)-1]
			d.broken = &Violation{Reason: reason, Detail: detail, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Offset: r.Offset}
			return
		}
		d.end = it.end
	}
	if d.broken == nil && next > d.end {
		d.end = next
	}
}

// blank adds an item to fill in.
func (d *Decider) blank() *item {
	if len(d.items) == cap(d.items) {
		d.items = slices.Grow(d.items, max(len(d.items), 256))
	}
	d.items = d.items[:len(d.items)+1]
	it := &d.items[len(d.items)-1]
	*it = item{}
	return it
}

// decode reads a record into it and judges what needs no row: an empty reason means that it is sound.
func (d *Decider) decode(r *ledger.SourceRecord, it *item) (Reason, string) {
	env, err := d.decoder.Decode(r.Value)
	if err != nil {
		return NotCanonical, err.Error()
	}
	if env.Namespace != d.cfg.Namespace {
		return OtherNamespace, fmt.Sprintf("namespace %q, this view is of %q", env.Namespace, d.cfg.Namespace)
	}
	if !d.sameKey(&env.Output.Key, r.Key) {
		return KeyMismatch, fmt.Sprintf("record key %.1024q, envelope key %s", r.Key, d.keyBytes)
	}
	if d.keyHome != d.partition || !d.keyKnown {
		return WrongPartition, fmt.Sprintf("stock key %s on partition %d", d.keyBytes, d.partition)
	}
	if env.Cause.Partition != d.partition {
		return CausePartition, fmt.Sprintf("cause on partition %d, record on %d", env.Cause.Partition, d.partition)
	}
	if last := d.last; last == nil || last.cause != env.Cause || last.count != env.Count || last.key != d.key {
		d.last = &repair{key: d.key, cause: env.Cause, count: env.Count}
	}
	it.repair, it.status, it.sequence, it.version = d.last, env.Status, env.Sequence, env.Version
	it.close, it.previous, it.threshold, it.present = env.Close, env.Previous, env.Threshold, env.Present
	it.index, it.digest, it.output = int32(env.Index), wire.EnvelopeDigest(r.Value), outputNumber(d.keyNumber, &env.Output)
	return "", ""
}

// sameKey reports whether raw is the canonical encoding of k, which is the last key from then on.
func (d *Decider) sameKey(k *ledger.StockKey, raw []byte) bool {
	if *k != d.key || len(d.keyBytes) == 0 {
		d.key = *k
		d.keyBytes = wire.AppendKey(d.keyBytes[:0], *k)
		d.keyHome, d.keyKnown = d.cfg.Route(*k)
		d.keyNumber = d.numberOf(*k)
	}
	return bytes.Equal(raw, d.keyBytes)
}

// numberOf numbers keys, so that outputs are looked up by an integer and not by two strings.
func (d *Decider) numberOf(k ledger.StockKey) uint64 {
	n, ok := d.numbers[k]
	if !ok {
		d.number++
		n = d.number
		d.numbers[k] = n
	}
	return n
}

// outputNumber packs a key's number (under 2^40), a day (under 2^22) and a kind (under 4).
func outputNumber(key uint64, o *ledger.OutputID) uint64 {
	return key<<24 | uint64(o.Day)<<2 | uint64(o.Kind)
}
