package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pgconn's pipeline cannot hold a COPY, so a pipeline is written here message by message: Bind and Execute of prepared
// statements, the data of a COPY right behind its Execute, one Sync. The server reads all of it without an answer in between.

// expected is a statement sent in a pipeline; its result is filled in as the answer arrives.
type expected struct {
	name string
	tag  string
	row  [][]byte
	rows int64
}

// outcome is what the server answered up to ReadyForQuery.
type outcome struct {
	failure      error
	tags         []string
	unreplicated bool
}

var binaryFormat = []int16{1}

// send queues a prepared statement with binary parameters.
func (s *session) send(name string, params ...[]byte) {
	f := s.pg.Frontend()
	f.SendBind(&pgproto3.Bind{PreparedStatement: name, ParameterFormatCodes: binaryFormat, Parameters: params, ResultFormatCodes: binaryFormat})
	f.SendExecute(&pgproto3.Execute{})
	s.sent = append(s.sent, expected{name: name})
}

// copyIn queues a prepared COPY with its encoded data.
func (s *session) copyIn(name string, data *copyStream) error {
	s.send(name)
	f := s.pg.Frontend()
	if err := f.Flush(); err != nil {
		return err
	}
	if err := f.SendUnbufferedEncodedCopyData(data.finish()); err != nil {
		return err
	}
	f.Send(&pgproto3.CopyDone{})
	return nil
}

// sync ends the pipeline and reads every answer. It fails with the first error of the server; the rest was skipped then.
func (s *session) sync(ctx context.Context) ([]expected, error) {
	s.pg.Frontend().SendSync(&pgproto3.Sync{})
	o, err := s.converse(ctx)
	results := s.sent
	s.sent = nil
	if err == nil {
		err = o.failure
	}
	if err != nil {
		return nil, err
	}
	if len(o.tags) != len(results) {
		s.broken = true
		return nil, fmt.Errorf("read pipeline: %d answers to %d statements", len(o.tags), len(results))
	}
	return results, nil
}

// converse flushes what is queued and reads up to ReadyForQuery. An error means that the connection is of no more use.
func (s *session) converse(ctx context.Context) (outcome, error) {
	var o outcome
	if err := s.pg.Frontend().Flush(); err != nil {
		s.broken = true
		return o, contextual(ctx, err)
	}
	for {
		m, err := s.pg.ReceiveMessage(context.Background())
		if err != nil {
			s.broken = true
			return o, contextual(ctx, err)
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			return o, nil
		case *pgproto3.ErrorResponse:
			if o.failure == nil {
				o.failure = pgconn.ErrorResponseToPgError(m)
			}
			if m.SeverityUnlocalized != "ERROR" {
				s.broken = true
				return o, nil
			}
		case *pgproto3.NoticeResponse:
			o.unreplicated = o.unreplicated || m.Code == "01000"
		case *pgproto3.DataRow:
			s.keepRow(len(o.tags), m)
		case *pgproto3.CommandComplete:
			tag := string(m.CommandTag)
			if at := len(o.tags); at < len(s.sent) {
				s.sent[at].tag, s.sent[at].rows = tag, pgconn.NewCommandTag(tag).RowsAffected()
			}
			o.tags = append(o.tags, tag)
		}
	}
}

// keepRow remembers the first row of a statement's answer.
func (s *session) keepRow(at int, m *pgproto3.DataRow) {
	if at >= len(s.sent) || s.sent[at].row != nil {
		return
	}
	row := make([][]byte, len(m.Values))
	for i, v := range m.Values {
		row[i] = append([]byte(nil), v...)
	}
	s.sent[at].row = row
}

// contextual adds why a connection was given up.
func contextual(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// copyStream is the data of a binary COPY in messages ready to be written. The zero value is empty; it is reused.
type copyStream struct {
	b     []byte
	start int
}

var copySignature = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")

func (c *copyStream) reset() {
	c.b = append(c.b[:0], 'd', 0, 0, 0, 0)
	c.start = 0
	c.b = append(c.b, copySignature...)
}

// row begins a row of that many fields, in a new message where the last one is full.
func (c *copyStream) row(fields int16) {
	if len(c.b)-c.start > copyChunkBytes {
		c.seal()
		c.start = len(c.b)
		c.b = append(c.b, 'd', 0, 0, 0, 0)
	}
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(fields))
}

func (c *copyStream) seal() {
	binary.BigEndian.PutUint32(c.b[c.start+1:], uint32(len(c.b)-c.start-1))
}

// finish ends the data and returns the messages.
func (c *copyStream) finish() []byte {
	c.b = append(c.b, 0xff, 0xff)
	c.seal()
	return c.b
}

func (c *copyStream) null() { c.b = append(c.b, 0xff, 0xff, 0xff, 0xff) }

func (c *copyStream) int64(v int64) {
	c.b = binary.BigEndian.AppendUint32(c.b, 8)
	c.b = binary.BigEndian.AppendUint64(c.b, uint64(v))
}

func (c *copyStream) int32(v int32) {
	c.b = binary.BigEndian.AppendUint32(c.b, 4)
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(v))
}

func (c *copyStream) int16(v int16) {
	c.b = binary.BigEndian.AppendUint32(c.b, 2)
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(v))
}

func (c *copyStream) bool(v bool) {
	c.b = binary.BigEndian.AppendUint32(c.b, 1)
	c.b = append(c.b, boolByte(v))
}

func (c *copyStream) bytes(v []byte) {
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

func (c *copyStream) text(v string) {
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(len(v)))
	c.b = append(c.b, v...)
}

// bytesOrNull writes nil as NULL.
func (c *copyStream) bytesOrNull(v []byte) {
	if v == nil {
		c.null()
		return
	}
	c.bytes(v)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func int64Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func int32Param(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
