package mapping

import (
	"encoding/binary"
	"math/bits"
)

// Tally is a table from hashes to numbers in 16 bytes each, four fifths full on average: millions of entries cost about
// 20 bytes each. The zero value is ready.
type Tally struct {
	shards [256]shard // each grows by itself, so that growing needs little beyond what is kept
	length int
}

// shard is an open table with linear probing.
type shard struct {
	slots []slot
	used  int
}

// slot holds 12 bytes of a hash, which 2^25 entries share by chance once in 10^14 files, and a number that is never 0.
type slot struct {
	high uint64
	low  uint32
	n    uint32
}

// Len returns how many entries there are.
func (t *Tally) Len() int { return t.length }

// At returns the number of a hash, nil where it has none. The pointer is good until the next Put.
func (t *Tally) At(h Hash) *uint32 {
	s, want := t.shard(h)
	if len(s.slots) == 0 {
		return nil
	}
	if at := s.find(want); s.slots[at].n != 0 {
		return &s.slots[at].n
	}
	return nil
}

// Put adds a hash that has no number yet; n is not 0.
func (t *Tally) Put(h Hash, n uint32) {
	s, want := t.shard(h)
	if s.used*8 >= len(s.slots)*7 {
		s.grow()
	}
	want.n = n
	s.slots[s.find(want)] = want
	s.used++
	t.length++
}

func (t *Tally) shard(h Hash) (*shard, slot) {
	return &t.shards[h[12]], slot{high: binary.BigEndian.Uint64(h[:8]), low: binary.BigEndian.Uint32(h[8:12])}
}

// find returns the place of a hash, or the empty one where it belongs.
func (s *shard) find(want slot) int {
	first, _ := bits.Mul64(want.high, uint64(len(s.slots)))
	at := int(first)
	for s.slots[at].n != 0 && (s.slots[at].high != want.high || s.slots[at].low != want.low) {
		if at++; at == len(s.slots) {
			at = 0
		}
	}
	return at
}

func (s *shard) grow() {
	before := s.slots
	s.slots = make([]slot, max(16, len(before)+len(before)/3))
	for _, kept := range before {
		if kept.n != 0 {
			s.slots[s.find(kept)] = kept
		}
	}
}
