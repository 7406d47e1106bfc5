package fold

import (
	"slices"
	"sort"

	"amends/internal/invariant"
	"amends/internal/ledger"
)

// Days holds the business days of one stock key, those with active movements or counts and those that had a
// published output. Not safe for concurrent use.
type Days struct {
	chunks   [][]day
	rare     map[uint16]*rare
	disagree []uint16 // days whose counts disagree, sorted
	origin   ledger.Day
	room     int // capacity of all chunks, in days
}

// day is one business day. 32 bytes.
type day struct {
	sum     int64  // receipts - issues; the lower 64 bits where flagWide
	close   int64  // published, where flagPresent
	active  uint32 // active movements and counts
	balance uint32 // published version, 0 before the first; in rare where flagVersions
	alert   uint32 // the same
	at      uint16 // days from the ledger origin
	flags   uint8
}

const (
	flagPresent  = 1 << iota // a balance is published
	flagAlerted              // an alert is published
	flagWide                 // the sum does not fit int64: rare has its upper half
	flagCounted              // rare has counts
	flagVersions             // rare has the versions
)

// rare is what few days have.
type rare struct {
	opening counts
	closing counts
	high    int64
	balance ledger.Version
	alert   ledger.Version
}

const (
	chunkDays = 128
	dayBytes  = 32
	rareBytes = 160 // with its place in the map
)

// New returns the days of a key without records. Every day given later is within the horizon of origin (S3).
func New(origin ledger.Day) *Days { return &Days{origin: origin} }

// Add enters an active assertion that applies from now on.
func (d *Days) Add(p ledger.Payload) {
	e := d.enter(d.offset(p.Day))
	invariant.That(e.active < 1<<32-1, "the assertions of a day can be counted")
	e.active++
	switch p.Kind {
	case ledger.Receipt:
		d.addSum(e, int64(p.Quantity))
	case ledger.Issue:
		d.addSum(e, -int64(p.Quantity))
	default:
		r := d.rareOf(e)
		e.flags |= flagCounted
		r.of(p.Kind).add(p.Quantity)
		d.noteAgreement(e.at, r)
	}
}

// Remove takes back what Add entered.
func (d *Days) Remove(p ledger.Payload) {
	e := d.find(d.offset(p.Day))
	invariant.That(e != nil && e.active > 0, "what is removed from a day was added to it")
	e.active--
	switch p.Kind {
	case ledger.Receipt:
		d.addSum(e, -int64(p.Quantity))
	case ledger.Issue:
		d.addSum(e, int64(p.Quantity))
	default:
		r := d.rare[e.at]
		invariant.That(e.flags&flagCounted != 0 && r != nil, "a count that is removed is there")
		r.of(p.Kind).remove(p.Quantity)
		if r.opening.n == 0 && r.closing.n == 0 {
			e.flags &^= flagCounted
		}
		d.noteAgreement(e.at, r)
		d.forget(e)
	}
}

// Disagreement returns the earliest day with opening or closing counts that do not agree, and whether there is one (S7).
func (d *Days) Disagreement() (ledger.Day, bool) {
	if len(d.disagree) == 0 {
		return 0, false
	}
	return d.day(d.disagree[0]), true
}

// Bytes returns the memory the days take up, within a few bytes. The distinct values of disagreeing counts are left out.
func (d *Days) Bytes() int64 {
	const header, chunkHeader = 200, 24
	return int64(header + chunkHeader*cap(d.chunks) + dayBytes*d.room + rareBytes*len(d.rare) + 2*cap(d.disagree))
}

// Len returns the number of days held, days whose outputs are all withdrawn included.
func (d *Days) Len() int {
	n := 0
	for _, c := range d.chunks {
		n += len(c)
	}
	return n
}

// noteAgreement keeps disagree true after the counts of a day changed.
func (d *Days) noteAgreement(at uint16, r *rare) {
	i, listed := slices.BinarySearch(d.disagree, at)
	agree := r.opening.agree() && r.closing.agree()
	switch {
	case agree && listed:
		d.disagree = slices.Delete(d.disagree, i, i+1)
	case !agree && !listed:
		d.disagree = slices.Insert(d.disagree, i, at)
	}
}

// rareOf returns the side entry of a day, making one where there is none.
func (d *Days) rareOf(e *day) *rare {
	r := d.rare[e.at]
	if r == nil {
		if d.rare == nil {
			d.rare = map[uint16]*rare{}
		}
		r = &rare{}
		d.rare[e.at] = r
	}
	return r
}

// forget drops a side entry that nothing needs any more.
func (d *Days) forget(e *day) {
	if e.flags&(flagWide|flagCounted|flagVersions) == 0 {
		delete(d.rare, e.at)
	}
}

func (d *Days) offset(day ledger.Day) uint16 {
	n := day - d.origin
	invariant.That(n >= 0 && n < ledger.HorizonDays, "a day is within the horizon")
	return uint16(n)
}

func (d *Days) day(at uint16) ledger.Day { return d.origin + ledger.Day(at) }

// place is a position: the i-th day of a chunk.
type place struct{ chunk, i int }

// seek returns the place of the first day at or after at, which may be past the end. Most records concern the last days,
// so the last chunk is looked at first.
func (d *Days) seek(at uint16) place {
	n := len(d.chunks)
	if n == 0 {
		return place{}
	}
	c := n - 1
	if d.chunks[c][0].at > at {
		c = max(sort.Search(c, func(i int) bool { return d.chunks[i][0].at > at })-1, 0)
	}
	days := d.chunks[c]
	i, end := 0, len(days)
	for i < end {
		if m := int(uint(i+end) >> 1); days[m].at < at {
			i = m + 1
		} else {
			end = m
		}
	}
	if i == len(days) && c+1 < n {
		return place{c + 1, 0}
	}
	return place{c, i}
}

// get returns the day at p, nil outside.
func (d *Days) get(p place) *day {
	if p.chunk < len(d.chunks) && uint(p.i) < uint(len(d.chunks[p.chunk])) {
		return &d.chunks[p.chunk][p.i]
	}
	return nil
}

func (d *Days) find(at uint16) *day {
	if e := d.get(d.seek(at)); e != nil && e.at == at {
		return e
	}
	return nil
}

// enter returns the day at, inserting it where it is new. The pointer is valid until the next insertion.
func (d *Days) enter(at uint16) *day {
	p := d.seek(at)
	if e := d.get(p); e != nil && e.at == at {
		return e
	}
	return d.insert(p, at)
}

// insert puts a new day at p, the place that seek returned for it.
func (d *Days) insert(p place, at uint16) *day {
	if p.i == 0 && p.chunk > 0 && p.chunk < len(d.chunks) && len(d.chunks[p.chunk-1]) < chunkDays {
		p = place{p.chunk - 1, len(d.chunks[p.chunk-1])} // between two chunks: the end of the first has room
	}
	switch {
	case len(d.chunks) == 0:
		d.chunks = append(d.chunks, nil)
	case len(d.chunks[p.chunk]) < chunkDays:
	case p.chunk == len(d.chunks)-1 && p.i == chunkDays: // days in order fill their chunks
		d.chunks = append(d.chunks, nil)
		p = place{p.chunk + 1, 0}
	default:
		p = d.split(p)
	}
	c := d.chunks[p.chunk]
	if len(c) == cap(c) {
		bigger := make([]day, len(c), min(chunkDays, len(c)+max(len(c)/4, 2)))
		copy(bigger, c)
		d.room += cap(bigger) - cap(c)
		c = bigger
	}
	c = c[:len(c)+1]
	copy(c[p.i+1:], c[p.i:])
	c[p.i] = day{at: at}
	d.chunks[p.chunk] = c
	return &c[p.i]
}

// split halves the full chunk of p and returns where p is then.
func (d *Days) split(p place) place {
	const half = chunkDays / 2
	c := d.chunks[p.chunk]
	upper := make([]day, half, half+half/4)
	copy(upper, c[half:])
	d.room += cap(upper)
	d.chunks[p.chunk] = c[:half]
	d.chunks = slices.Insert(d.chunks, p.chunk+1, upper)
	if p.i > half {
		return place{p.chunk + 1, p.i - half}
	}
	return p
}

// Origin returns the ledger origin.
func (d *Days) Origin() ledger.Day { return d.origin }
