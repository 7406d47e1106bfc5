package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"
)

// array is a one-dimensional array parameter in PostgreSQL's binary form, appended to element by element.
type array struct {
	b []byte
	n int32
}

const arrayHeader = 20

func newArray(element uint32, capacity int) *array {
	a := &array{b: make([]byte, arrayHeader, arrayHeader+capacity)}
	binary.BigEndian.PutUint32(a.b[0:], 1)
	binary.BigEndian.PutUint32(a.b[8:], element)
	binary.BigEndian.PutUint32(a.b[16:], 1)
	return a
}

func newInt64s(n int) *array { return newArray(pgtype.Int8OID, n*12) }
func newInt32s(n int) *array { return newArray(pgtype.Int4OID, n*8) }
func newInt16s(n int) *array { return newArray(pgtype.Int2OID, n*6) }
func newDates(n int) *array  { return newArray(pgtype.DateOID, n*8) }
func newBools(n int) *array  { return newArray(pgtype.BoolOID, n*5) }
func newBytes(n int) *array  { return newArray(pgtype.ByteaOID, n*16) }
func newTexts(n int) *array  { return newArray(pgtype.TextOID, n*16) }

// param returns the finished parameter.
func (a *array) param() []byte {
	if a.n == 0 {
		binary.BigEndian.PutUint32(a.b[0:], 0)
		return a.b[:12]
	}
	binary.BigEndian.PutUint32(a.b[12:], uint32(a.n))
	return a.b
}

func (a *array) null() {
	a.n++
	a.b[7] = 1
	a.b = append(a.b, 0xff, 0xff, 0xff, 0xff)
}

func (a *array) int64(v int64) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 8)
	a.b = binary.BigEndian.AppendUint64(a.b, uint64(v))
}

func (a *array) int64If(ok bool, v int64) {
	if ok {
		a.int64(v)
	} else {
		a.null()
	}
}

func (a *array) int32(v int32) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 4)
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(v))
}

func (a *array) int16(v int16) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 2)
	a.b = binary.BigEndian.AppendUint16(a.b, uint16(v))
}

func (a *array) bool(v bool) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, 1)
	a.b = append(a.b, boolByte(v))
}

func (a *array) bytes(v []byte) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(v)))
	a.b = append(a.b, v...)
}

func (a *array) text(v string) {
	a.n++
	a.b = binary.BigEndian.AppendUint32(a.b, uint32(len(v)))
	a.b = append(a.b, v...)
}

// Values of a binary result; NULL reads as zero.

func readInt64(v []byte) int64 {
	if len(v) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

func readInt32(v []byte) int32 {
	if len(v) != 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(v))
}

func readInt16(v []byte) int16 {
	if len(v) != 2 {
		return 0
	}
	return int16(binary.BigEndian.Uint16(v))
}

func readBool(v []byte) bool { return len(v) == 1 && v[0] == 1 }
