package fold

import (
	"math/bits"

	"amends/internal/invariant"
	"amends/internal/ledger"
)

// addSum adds n, which is within -(2^63-1)..2^63-1, to the exact sum of a day.
func (d *Days) addSum(e *day, n int64) {
	high := d.high(e)
	low, carry := bits.Add64(uint64(e.sum), uint64(n), 0)
	high = addHigh(high, n>>63, carry)
	e.sum = int64(low)
	switch {
	case high != e.sum>>63:
		d.rareOf(e).high = high
		e.flags |= flagWide
	case e.flags&flagWide != 0:
		e.flags &^= flagWide
		d.rare[e.at].high = 0
		d.forget(e)
	}
}

// high returns the upper 64 bits of a day's sum.
func (d *Days) high(e *day) int64 {
	if e.flags&flagWide != 0 {
		return d.rare[e.at].high
	}
	return e.sum >> 63
}

// addHigh adds the upper halves of two numbers of 128 bits.
func addHigh(a, b int64, carry uint64) int64 {
	sum, _ := bits.Add64(uint64(a), uint64(b), carry)
	return int64(sum)
}

// derive returns the close of an active day whose previous close is given, and whether it fits int64 (S5).
func (d *Days) derive(e *day, previous int64) (int64, bool) {
	base := previous
	if e.flags&(flagCounted|flagWide) != 0 {
		r := d.rare[e.at]
		if r.closing.n > 0 {
			return int64(r.closing.value), true
		}
		if r.opening.n > 0 {
			base = int64(r.opening.value)
		}
		if e.flags&flagWide != 0 {
			low, carry := bits.Add64(uint64(base), uint64(e.sum), 0)
			high := addHigh(base>>63, r.high, carry)
			return int64(low), high == int64(low)>>63
		}
	}
	closed := base + e.sum
	return closed, (closed > base) == (e.sum > 0)
}

// counts are the active counts of one day and moment, by quantity. All agree while others is empty.
type counts struct {
	others map[ledger.Quantity]uint32 // how often each quantity other than value is stated
	value  ledger.Quantity
	n      uint32 // how often value is stated; 0 only when nothing is
}

func (r *rare) of(k ledger.Kind) *counts {
	if k == ledger.OpeningCount {
		return &r.opening
	}
	invariant.That(k == ledger.ClosingCount, "an active assertion is a movement or a count")
	return &r.closing
}

func (c *counts) agree() bool { return len(c.others) == 0 }

func (c *counts) add(q ledger.Quantity) {
	switch {
	case c.n == 0:
		c.value, c.n = q, 1
	case c.value == q:
		c.n++
	default:
		if c.others == nil {
			c.others = map[ledger.Quantity]uint32{}
		}
		c.others[q]++
	}
}

func (c *counts) remove(q ledger.Quantity) {
	if c.value != q {
		invariant.That(c.others[q] > 0, "a count that is removed is there")
		if c.others[q]--; c.others[q] == 0 {
			delete(c.others, q)
		}
		return
	}
	invariant.That(c.n > 0, "a count that is removed is there")
	if c.n--; c.n > 0 {
		return
	}
	for value, n := range c.others { // whichever: while there are several, none is used
		c.value, c.n = value, n
		delete(c.others, value)
		break
	}
}
