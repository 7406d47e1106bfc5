package view

import (
	"fmt"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// verdict is what one record does.
type verdict uint8

const (
	applies verdict = iota
	repeats
	unknown // a row is needed
	full    // the page is
	violates
)

// Decide decides what was read, in order, and says what it needs next.
func (d *Decider) Decide() Demand {
	if d.stop != nil {
		return Stopped
	}
	if d.exact && d.assumed > 0 {
		return NeedRows
	}
	read := d.decided
	var v verdict
	var reason Reason
	var detail string
	for read < len(d.items) {
		it := &d.items[read]
		v, reason, detail = d.judge(it)
		if v > repeats {
			break
		}
		if v == applies {
			if read != d.decided {
				d.items[d.decided] = *it
			}
			d.apply(&d.items[d.decided])
		} else {
			d.pass(it.end)
		}
		read++
	}
	done := read == len(d.items)
	d.close(read)
	switch {
	case done && d.broken == nil:
		d.pass(d.end)
		return NeedRecords
	case !done && v == unknown:
		return NeedRows
	case !done && v == full:
		return PageFull
	case d.assumed > 0:
		d.exact = true
		return NeedRows
	case done:
		d.stop = d.broken
	default:
		d.stop = d.violation(&d.items[d.decided], reason, detail)
	}
	return Stopped
}

// pass moves the end of the last record kept over repetitions and gaps.
func (d *Decider) pass(end ledger.Frontier) {
	if d.decided > 0 {
		d.items[d.decided-1].end = end
	} else {
		d.lead = end
	}
}

// close removes the repetitions between the decided and the undecided records.
func (d *Decider) close(read int) {
	if read == d.decided {
		return
	}
	n := d.decided + copy(d.items[d.decided:], d.items[read:])
	clear(d.items[n:])
	d.items = d.items[:n]
}

// judge applies the rules of S9 to one record; for one that applies it finds or makes its slot.
func (d *Decider) judge(it *item) (verdict, Reason, string) {
	switch {
	case it.sequence < d.next:
		return d.judgeRepetition(it)
	case it.sequence > d.next || it.sequence == ledger.MaxCounter:
		return violates, SequenceGap, fmt.Sprintf("sequence %d where %d is next", it.sequence, d.next)
	}
	if detail := d.breaks(it); detail != "" {
		return violates, RepairBroken, detail
	}
	if n := it.repair.count; it.index == 0 && d.whole > 0 && (d.whole+n > d.limit || len(d.changes)+n > d.rowLimit) {
		return full, "", ""
	}
	i, seen := d.index[it.output]
	if !seen {
		i = d.sight(it)
	}
	s := &d.slots[i]
	if it.version != s.version+1 {
		return violates, VersionGap, fmt.Sprintf("version %d where the row has %d", it.version, s.version)
	}
	it.slot = i
	return applies, "", ""
}

// judgeRepetition judges a record below the next sequence: it must not say more than its row does.
func (d *Decider) judgeRepetition(it *item) (verdict, Reason, string) {
	var row Row
	if i, ok := d.index[it.output]; ok {
		row = Row{Version: d.slots[i].version, Digest: d.slots[i].digest}
	} else if row, ok = d.rows[it.id()]; !ok {
		return unknown, "", ""
	}
	switch v := it.version; {
	case v > row.Version:
		return violates, RepeatAhead, fmt.Sprintf("sequence %d is below the next, %d, with version %d where the row has %d", it.sequence, d.next, v, row.Version)
	case v == row.Version && it.digest != row.Digest:
		return violates, RepeatDiffers, fmt.Sprintf("sequence %d repeats version %d with another envelope than the row's", it.sequence, v)
	}
	return repeats, "", ""
}

// breaks says why an envelope at the next sequence neither begins nor continues a repair, "" if it does.
func (d *Decider) breaks(it *item) string {
	n, cause := d.decided-d.whole, it.repair.cause
	if n == 0 {
		switch {
		case it.index != 0:
			return fmt.Sprintf("index %d of %d where a repair must begin", it.index, it.repair.count)
		case cause.Offset <= d.cause:
			return fmt.Sprintf("cause offset %d is not above %d, the last applied", cause.Offset, d.cause)
		}
		return ""
	}
	first := d.items[d.whole].repair
	if cause != first.cause || it.repair.count != first.count || int(it.index) != n {
		return fmt.Sprintf("index %d of %d with cause offset %d where index %d of %d with cause offset %d is next",
			it.index, it.repair.count, cause.Offset, n, first.count, first.cause.Offset)
	}
	return ""
}

// sight makes the slot of an output that comes up for the first time: by its row, or assuming the version before.
func (d *Decider) sight(it *item) int32 {
	s := slot{item: int32(d.decided), change: -1}
	if row, ok := d.rows[it.id()]; ok {
		s.version, s.digest = row.Version, row.Digest
	} else {
		s.version = it.version - 1
		d.assumed++
	}
	s.before = s.version
	i := int32(len(d.slots)) // at most the page's limit and one repair
	d.slots = append(d.slots, s)
	d.index[it.output] = i
	return i
}

// apply takes a record into the pending repair, and the repair into the page when it is complete.
func (d *Decider) apply(it *item) {
	s := &d.slots[it.slot]
	s.version, s.digest = it.version, it.digest
	d.decided++
	d.next++
	d.cause = it.repair.cause.Offset
	if d.decided-d.whole < it.repair.count {
		return
	}
	for i := d.whole; i < d.decided; i++ {
		d.settle(int32(i))
	}
	d.whole = d.decided
}

// settle writes a version of a whole repair into the page: the last one of an output stays.
func (d *Decider) settle(i int32) {
	s := &d.slots[d.items[i].slot]
	if s.change >= 0 {
		d.changes[s.change].item = i
		return
	}
	s.change = int32(len(d.changes))
	d.changes = append(d.changes, change{before: s.before, item: i})
}

// violation rebuilds the exact bytes of a decoded record: what was decoded is its own canonical encoding.
func (d *Decider) violation(it *item, reason Reason, detail string) *Violation {
	var e wire.Envelope
	it.envelope(d.cfg.Namespace, &e)
	return &Violation{Reason: reason, Detail: detail, Offset: it.offset, Key: wire.AppendKey(nil, e.Output.Key), Value: wire.AppendEnvelope(nil, &e)}
}

// Missing returns the outputs whose rows Decide needs: of the repetitions among what is undecided, and of all that was
// assumed where it must be exact. Each is named once.
func (d *Decider) Missing() []ledger.OutputID {
	var ids []ledger.OutputID
	asked := map[ledger.OutputID]struct{}{}
	ask := func(id ledger.OutputID) {
		if _, ok := d.rows[id]; ok {
			return
		}
		if _, ok := asked[id]; !ok {
			asked[id] = struct{}{}
			ids = append(ids, id)
		}
	}
	if d.exact {
		for i := range d.slots {
			ask(d.items[d.slots[i].item].id())
		}
	}
	next := d.next
	for i := d.decided; i < len(d.items); i++ {
		it := &d.items[i]
		if it.sequence >= next {
			next = it.sequence + 1
			continue
		}
		if _, ok := d.index[it.output]; !ok {
			ask(it.id())
		}
	}
	return ids
}

// Supply gives the rows of ids as stored at the durable position; an id without a row has none. What was decided since
// that position is decided again.
func (d *Decider) Supply(ids []ledger.OutputID, rows map[ledger.OutputID]Row) {
	for _, id := range ids {
		d.rows[id] = rows[id]
	}
	d.exact = false
	d.rewind()
}
