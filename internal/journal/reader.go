package journal

import "encoding/binary"

// Reader reads packed numbers strictly: a number that is cut off, too long or not in its shortest form makes every
// later read return zero, and Failed report it. The zero value reads nothing.
type Reader struct {
	rest   []byte
	failed bool
}

// NewReader returns a reader of b, which it does not copy.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// Len returns how many bytes are unread, 0 after a failure.
func (r *Reader) Len() int { return len(r.rest) }

// Failed reports whether a read failed.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the reader failed: the caller read a value that cannot be.
func (r *Reader) Fail() {
	r.failed = true
	r.rest = nil
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Uvarint reads an unsigned number.
func (r *Reader) Uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || r.rest[n-1] == 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Varint reads a signed number.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Counter reads an unsigned number of at most 2^63-1.
func (r *Reader) Counter() int64 {
	v := r.Uvarint()
	if v > 1<<63-1 {
		r.Fail()
		return 0
	}
	return int64(v)
}

// Bytes reads n bytes without copying them.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
