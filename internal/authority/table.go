package authority

// table finds positions in a slice by the hash of what they hold: open addressing with linear probing. A slot is 0
// when empty; else its low bits are a position plus one and the bits above the table's size are bits of the hash,
// so that few probes have to look at the slice. Positions are never removed.
type table struct {
	slots []uint32
	used  int
}

const leastSlots = 8

// mask selects the position bits of a slot, and the slot of a hash.
func (t *table) mask() uint32 { return uint32(len(t.slots) - 1) }

// find returns the first position of that hash for which same holds.
func (t *table) find(hash uint64, same func(uint32) bool) (uint32, bool) {
	if t.used == 0 {
		return 0, false
	}
	mask := t.mask()
	tag := uint32(hash>>32) &^ mask
	for i := uint32(hash) & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if slot := t.slots[i]; slot&^mask == tag && same((slot&mask)-1) {
			return (slot & mask) - 1, true
		}
	}
	return 0, false
}

// add enters a position that is not in the table. hashOf is asked for the hashes of older positions when it grows.
func (t *table) add(hash uint64, position uint32, hashOf func(uint32) uint64) {
	if t.used >= len(t.slots)/4*3 {
		t.grow(hashOf)
	}
	t.put(hash, position)
	t.used++
}

func (t *table) put(hash uint64, position uint32) {
	mask := t.mask()
	i := uint32(hash) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = uint32(hash>>32)&^mask | (position + 1)
}

func (t *table) grow(hashOf func(uint32) uint64) {
	old, oldMask := t.slots, t.mask()
	t.slots = make([]uint32, max(leastSlots, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			position := (slot & oldMask) - 1
			t.put(hashOf(position), position)
		}
	}
}

// bytes returns what the table takes up.
func (t *table) bytes() int { return 4 * cap(t.slots) }
