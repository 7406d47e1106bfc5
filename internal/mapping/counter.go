package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// MaxSeen bounds what a counter remembers, at about 20 bytes each (Tally).
const MaxSeen = 1 << 25

// ErrTooMany: the file has more transactions or groups than can be told apart in memory.
var ErrTooMany = errors.New("the file has more than 33,554,432 transactions or groups to count; split it, or give it a revision column")

// Hash is the start of the SHA-256 of some texts and of their lengths.
type Hash [16]byte

// HashOf returns the hash of texts; buffer is used and returned for the next call.
func HashOf(buffer []byte, texts ...string) (Hash, []byte) {
	buffer = buffer[:0]
	for _, t := range texts {
		buffer = binary.AppendUvarint(buffer, uint64(len(t)))
		buffer = append(buffer, t...)
	}
	sum := sha256.Sum256(buffer)
	return Hash(sum[:16]), buffer
}

// counter counts how often each of many things was seen.
type counter struct {
	seen   Tally
	buffer []byte
	most   int
}

func newCounter() *counter { return &counter{most: MaxSeen} }

// next returns 1 the first time, then 2, and counts n.
func (c *counter) next(n uint32, texts ...string) (uint32, error) {
	var h Hash
	h, c.buffer = HashOf(c.buffer, texts...)
	if count := c.seen.At(h); count != nil {
		before := *count
		*count += n
		return before + 1, nil
	}
	if c.seen.Len() == c.most {
		return 0, ErrTooMany
	}
	c.seen.Put(h, n)
	return 1, nil
}
