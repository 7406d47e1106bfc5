package session

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// Array is a one-dimensional array parameter in PostgreSQL's binary form, appended to element by element.
type Array struct {
	b []byte
	n int32
}

const arrayHeader = 20

func newArray(element uint32, capacity int) *Array {
	a := &Array{b: make([]byte, arrayHeader, arrayHeader+capacity)}
	binary.BigEndian.PutUint32(a.b[0:], 1)
	binary.BigEndian.PutUint32(a.b[8:], element)
	binary.BigEndian.PutUint32(a.b[16:], 1)
	return a
}

// NewInt64s returns a bigint[].
func NewInt64s(n int) *Array { return newArray(pgtype.Int8OID, n*12) }

// NewInt32s returns an integer[].
func NewInt32s(n int) *Array { return newArray(pgtype.Int4OID, n*8) }

// NewInt16s returns a smallint[].
func NewInt16s(n int) *Array { return newArray(pgtype.Int2OID, n*6) }

// NewDates returns a date[], each counted from 2000-01-01.
func NewDates(n int) *Array { return newArray(pgtype.DateOID, n*8) }

// NewBools returns a boolean[].
func NewBools(n int) *Array { return newArray(pgtype.BoolOID, n*5) }

// NewBytes returns a bytea[].
func NewBytes(n int) *Array { return newArray(pgtype.ByteaOID, n*16) }

// NewTexts returns a text[].
func NewTexts(n int) *Array { return newArray(pgtype.TextOID, n*16) }

// Param returns the finished parameter.
func (a *Array) Param() []byte {
	if a.n == 0 {
		binary.BigEndian.PutUint32(a.b[0:], 0)
		return a.b[:12]
	}
	binary.BigEndian.PutUint32(a.b[12:], uint32(a.n))
	return a.b
}

// Null adds NULL.
func (a *Array) Null() {
	a.n++
	a.b[7] = 1
	a.b = append(a.b, 0xff, 0xff, 0xff, 0xff)
}

// Int64 adds a bigint.
func (a *Array) Int64(v int64) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 8)
	a.b = binary.BigEndian.AppendUint64(a.b, uint64(v))
}

// Int64If adds a bigint, or NULL.
func (a *Array) Int64If(ok bool, v int64) {
	if ok {
		a.Int64(v)
	} else {
		a.Null()
	}
}

// Int32 adds an integer or a date.
func (a *Array) Int32(v int32) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 4)
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(v))
}

// Int16 adds a smallint.
func (a *Array) Int16(v int16) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 2)
	a.b = binary.BigEndian.AppendUint16(a.b, uint16(v))
}

// Bool adds a boolean.
func (a *Array) Bool(v bool) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 1)
	a.b = append(a.b, boolByte(v))
}

// Bytes adds a bytea or a text.
func (a *Array) Bytes(v []byte) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(v)))
	a.b = append(a.b, v...)
}

// Text adds a bytea or a text.
func (a *Array) Text(v string) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(v)))
	a.b = append(a.b, v...)
}

// ReadInt64 reads a binary bigint; NULL reads as zero.
func ReadInt64(v []byte) int64 {
	if len(v) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

// ReadInt32 reads a binary integer or date; NULL reads as zero.
func ReadInt32(v []byte) int32 {
	if len(v) != 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(v))
}

// ReadInt16 reads a binary smallint; NULL reads as zero.
func ReadInt16(v []byte) int16 {
	if len(v) != 2 {
		return 0
	}
	return int16(binary.BigEndian.Uint16(v))
}

// ReadBool reads a binary boolean; NULL reads as zero.
func ReadBool(v []byte) bool { return len(v) == 1 && v[0] == 1 }
