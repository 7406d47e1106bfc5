package view

import (
	"slices"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// Position is how far a partition of the view is: the output frontier, the next sequence, and the cause offset of the
// last output applied, -1 before the first (S9).
type Position struct {
	Output   ledger.Frontier
	Sequence ledger.Sequence
	Cause    ledger.Offset
}

// Row is what the rules need of a view row: its version, 0 if there is none, and its envelope's digest.
type Row struct {
	Version ledger.Version
	Digest  int64
}

// Change is the last version that a page holds of one output. Before is the version that must be stored, 0 for none.
type Change struct {
	Envelope *wire.Envelope
	Digest   int64
	Before   ledger.Version
}

// Page is what one transaction commits: the final rows of whole repairs and the position after them, and the violation
// that stops the partition there, if any. Changes and what they point to are valid until the next call of Committed.
type Page struct {
	Changes []Change
	Stop    *Violation
	Before  Position
	Next    Position
}

// Empty reports whether the page changes nothing durable.
func (p *Page) Empty() bool { return len(p.Changes) == 0 && p.Stop == nil && p.Next == p.Before }

// Demand is what a Decider needs before it can go on.
type Demand uint8

// The demands of Decide.
const (
	NeedRecords Demand = iota // everything read is decided: Read more, or commit the page
	NeedRows                  // Supply the rows of Missing
	PageFull                  // commit the page
	Stopped                   // commit the page: it holds the violation, and nothing is decided any more
)

// maxNumbers bounds the keys that are remembered between pages.
const maxNumbers = 1 << 16

// Decider decides one partition of the view. It is not safe for concurrent use.
type Decider struct {
	cfg   *manifest.Config
	base  Position        // durable
	lead  ledger.Frontier // past what was repeated or empty before items[0]
	end   ledger.Frontier // past everything read
	items []item          // [0:whole) the page, [whole:decided) the pending repair, [decided:) undecided

	rows    map[ledger.OutputID]Row // loaded, as of base
	index   map[uint64]int32        // output number to slot
	slots   []slot
	changes []change
	broken  *Violation // what ended reading, behind all items
	stop    *Violation

	numbers map[ledger.StockKey]uint64
	number  uint64 // the last one given

	pageChanges   []Change // as Page last gave them
	pageEnvelopes []wire.Envelope

	decoder wire.EnvelopeDecoder
	// The last record decoded: its repair, its key, that key's number, encoding and home.
	last      *repair
	key       ledger.StockKey
	keyBytes  []byte
	keyNumber uint64
	keyHome   ledger.Partition
	keyKnown  bool

	whole, decided int
	limit          int
	rowLimit       int
	assumed        int // slots whose stored version is not loaded
	next           ledger.Sequence
	cause          ledger.Offset // of the last output decided
	partition      ledger.Partition
	exact          bool
}

// slot is an output that the page or the pending repair touches.
type slot struct {
	version ledger.Version // the latest decided
	digest  int64
	before  ledger.Version // stored, or assumed so
	item    int32          // the first that touches it
	change  int32          // index into changes, -1 while only the pending repair touches it
}

// change is the last whole version that the page holds of an output.
type change struct {
	before ledger.Version
	item   int32
}

// New returns a Decider at a durable position. limit is how many outputs a page may hold, 1 or more, and how many rows
// unless LimitRows says less; one repair may exceed both.
func New(cfg *manifest.Config, p ledger.Partition, pos Position, limit int) *Decider {
	d := &Decider{cfg: cfg, partition: p, base: pos, lead: pos.Output, end: pos.Output, limit: max(limit, 1), rowLimit: max(limit, 1),
		rows: map[ledger.OutputID]Row{}, index: map[uint64]int32{}, numbers: map[ledger.StockKey]uint64{}}
	d.rewind()
	return d
}

// LimitRows makes pages end at n rows too, 1 or more: several versions of an output are one row.
func (d *Decider) LimitRows(n int) { d.rowLimit = max(n, 1) }

// End returns the offset past everything read.
func (d *Decider) End() ledger.Frontier { return d.end }

// Held returns how many decoded records are held: the page's, the pending repair's, and those not decided.
func (d *Decider) Held() int { return len(d.items) }

// Pending returns how many outputs of an incomplete repair wait for the rest.
func (d *Decider) Pending() int { return d.decided - d.whole }

// Assumed reports whether the page or the pending repair rests on rows that were not loaded.
func (d *Decider) Assumed() bool { return d.assumed > 0 }

// Position returns the durable position.
func (d *Decider) Position() Position { return d.base }

// Exact makes the Decider ask for the rows of all that it assumed: after the store refused the page, and where a
// pending repair waits for long.
func (d *Decider) Exact() { d.exact = true }

// Page returns what is decided and not committed.
func (d *Decider) Page() Page {
	d.pageChanges, d.pageEnvelopes = d.pageChanges[:0], slices.Grow(d.pageEnvelopes[:0], len(d.changes))[:len(d.changes)]
	for i, c := range d.changes {
		it, e := &d.items[c.item], &d.pageEnvelopes[i]
		it.envelope(d.cfg.Namespace, e)
		d.pageChanges = append(d.pageChanges, Change{Envelope: e, Digest: it.digest, Before: c.before})
	}
	return Page{Before: d.base, Next: d.position(), Changes: d.pageChanges, Stop: d.stop}
}

// position returns where the view stands after the page's whole repairs: at the pending repair's first record, else
// past all that was decided.
func (d *Decider) position() Position {
	pos := Position{Output: d.lead, Sequence: d.base.Sequence + ledger.Sequence(d.whole), Cause: d.base.Cause}
	if d.whole > 0 {
		pos.Output, pos.Cause = d.items[d.whole-1].end, d.items[d.whole-1].repair.cause.Offset
	}
	if d.decided > d.whole {
		pos.Output = ledger.Frontier(d.items[d.whole].offset)
	}
	return pos
}

// Committed says that the page is durable: its position is the base of the next. Between Page and Committed more may
// be Read, nothing decided.
func (d *Decider) Committed() {
	pos := d.position()
	n := copy(d.items, d.items[d.whole:])
	clear(d.items[n:])
	d.items = d.items[:n]
	d.base, d.lead = pos, pos.Output
	d.exact = false
	clear(d.rows)
	d.renumber()
	d.rewind()
}

// renumber keeps the numbers of keys from growing with the stream: it starts again with those of the records held.
func (d *Decider) renumber() {
	if len(d.numbers) <= maxNumbers {
		return
	}
	clear(d.numbers)
	d.keyBytes = d.keyBytes[:0]
	for i := range d.items {
		o := d.items[i].id()
		d.items[i].output = outputNumber(d.numberOf(o.Key), &o)
	}
}

// rewind forgets all decisions since the base; the next Decide takes them again.
func (d *Decider) rewind() {
	clear(d.index)
	clear(d.pageChanges)
	clear(d.pageEnvelopes) // they hold identifiers
	d.slots, d.changes = d.slots[:0], d.changes[:0]
	d.whole, d.decided, d.assumed = 0, 0, 0
	d.next, d.cause = d.base.Sequence, d.base.Cause
}
