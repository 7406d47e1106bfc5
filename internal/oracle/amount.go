package oracle

import "math/bits"

// amount is a signed whole number of 128 bits in two's complement. It is exact for everything that a source can say: a
// partition holds fewer than 2^63 records of less than 2^63 units each, so that the movements of a day and the close
// before it stay below 2^126 + 2^63 in size. So it needs no wider arithmetic behind it; a test folds with math/big beside it.
type amount struct {
	high int64
	low  uint64
}

func amountOf(n int64) amount { return amount{high: n >> 63, low: uint64(n)} }

func (a amount) plus(b amount) amount {
	low, carry := bits.Add64(a.low, b.low, 0)
	high, _ := bits.Add64(uint64(a.high), uint64(b.high), carry)
	return amount{high: int64(high), low: low}
}

func (a amount) minus(b amount) amount {
	low, borrow := bits.Sub64(a.low, b.low, 0)
	high, _ := bits.Sub64(uint64(a.high), uint64(b.high), borrow)
	return amount{high: int64(high), low: low}
}

// int64 returns a, and whether it fits.
func (a amount) int64() (int64, bool) {
	n := int64(a.low)
	return n, a.high == n>>63
}
