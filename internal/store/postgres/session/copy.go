package session

import "encoding/binary"

// CopyStream is the data of a binary COPY in messages ready to be written. The zero value is empty; it is reused.
type CopyStream struct {
	b     []byte
	start int
}

var copySignature = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// Reset empties the stream and begins it.
func (c *CopyStream) Reset() {
	c.b = append(c.b[:0], 'd', 0, 0, 0, 0)
	c.start = 0
	c.b = append(c.b, copySignature...)
}

// Row begins a row of that many fields, in a new message where the last one is full.
func (c *CopyStream) Row(fields int16) {
	if len(c.b)-c.start > copyChunkBytes {
		c.seal()
		c.start = len(c.b)
		c.b = append(c.b, 'd', 0, 0, 0, 0)
	}
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(fields))
}

func (c *CopyStream) seal() {
	binary.BigEndian.PutUint32(c.b[c.start+1:], uint32(len(c.b)-c.start-1))
}

// finish ends the data and returns the messages.
func (c *CopyStream) finish() []byte {
	c.b = append(c.b, 0xff, 0xff)
	c.seal()
	return c.b
}

// Null adds NULL.
func (c *CopyStream) Null() { c.b = append(c.b, 0xff, 0xff, 0xff, 0xff) }

// Int64 adds a bigint.
func (c *CopyStream) Int64(v int64) {
	c.b = binary.BigEndian.AppendUint32(c.b, 8)
	c.b = binary.BigEndian.AppendUint64(c.b, uint64(v))
}

// Int32 adds an integer or, counted from 2000-01-01, a date.
func (c *CopyStream) Int32(v int32) {
	c.b = binary.BigEndian.AppendUint32(c.b, 4)
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(v))
}

// Int16 adds a smallint.
func (c *CopyStream) Int16(v int16) {
	c.b = binary.BigEndian.AppendUint32(c.b, 2)
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(v))
}

// Bool adds a boolean.
func (c *CopyStream) Bool(v bool) {
	c.b = binary.BigEndian.AppendUint32(c.b, 1)
	c.b = append(c.b, boolByte(v))
}

// Bytes adds a bytea or a text.
func (c *CopyStream) Bytes(v []byte) {
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

// Text adds a bytea or a text.
func (c *CopyStream) Text(v string) {
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

// BytesOrNull adds a bytea; nil is NULL.
func (c *CopyStream) BytesOrNull(v []byte) {
	if v == nil {
		c.Null()
		return
	}
	c.Bytes(v)
}

// Int64If adds a bigint, or NULL.
func (c *CopyStream) Int64If(ok bool, v int64) {
	if ok {
		c.Int64(v)
	} else {
		c.Null()
	}
}

// Int32If adds an integer or a date, or NULL.
func (c *CopyStream) Int32If(ok bool, v int32) {
	if ok {
		c.Int32(v)
	} else {
		c.Null()
	}
}

// Int16If adds a smallint, or NULL.
func (c *CopyStream) Int16If(ok bool, v int16) {
	if ok {
		c.Int16(v)
	} else {
		c.Null()
	}
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Int64Param is a bigint parameter.
func Int64Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// Int32Param is an integer parameter.
func Int32Param(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// BoolParam is a boolean parameter.
func BoolParam(v bool) []byte { return []byte{boolByte(v)} }
