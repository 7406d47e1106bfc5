package session

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pgconn's pipeline cannot hold a COPY, so a pipeline is written here message by message: Bind and Execute of prepared
// statements, the data of a COPY right behind its Execute, one Sync. The server reads all of it without an answer in between.

// Result is a statement sent in a pipeline and what the server answered: how many rows it affected or returned.
type Result struct {
	Name string
	Rows int64
}

// outcome is what the server answered up to ReadyForQuery.
type outcome struct {
	failure      error
	tags         []string
	unreplicated bool
}

// SendBegin prepares what is needed and queues the beginning of a durable transaction.
func (s *Session) SendBegin(ctx context.Context) error {
	for _, name := range []string{"begin", "durable"} {
		if _, err := s.conn.Prepare(ctx, name, text(name+".sql", own)); err != nil {
			return fmt.Errorf("prepare %s: %w", name, err)
		}
	}
	s.Send("begin")
	s.Send("durable")
	return nil
}

var binaryFormat = []int16{1}

// Send queues a prepared statement with binary parameters.
func (s *Session) Send(name string, params ...[]byte) {
	f := s.pg.Frontend()
	f.SendBind(&pgproto3.Bind{PreparedStatement: name, ParameterFormatCodes: binaryFormat, Parameters: params, ResultFormatCodes: binaryFormat})
	f.SendExecute(&pgproto3.Execute{})
	s.sent = append(s.sent, Result{Name: name})
}

// CopyIn queues a prepared COPY with its encoded data. After an error the connection is of no more use.
func (s *Session) CopyIn(ctx context.Context, name string, data *CopyStream) error {
	s.Send(name)
	f := s.pg.Frontend()
	err := f.Flush()
	if err == nil {
		err = f.SendUnbufferedEncodedCopyData(data.finish())
	}
	if err != nil {
		s.broken = true
		return contextual(ctx, err)
	}
	f.Send(&pgproto3.CopyDone{})
	return nil
}

// Sync ends the pipeline and reads every answer. It fails with the first error of the server; the rest was skipped then.
func (s *Session) Sync(ctx context.Context) ([]Result, error) {
	s.pg.Frontend().SendSync(&pgproto3.Sync{})
	var o outcome
	err := s.naming(ctx, func() (err error) {
		if o, err = s.converse(ctx); err == nil {
			err = o.failure
		}
		return err
	})
	results := s.sent
	s.sent = nil
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
func (s *Session) converse(ctx context.Context) (outcome, error) {
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
		case *pgproto3.CommandComplete:
			tag := string(m.CommandTag)
			if at := len(o.tags); at < len(s.sent) {
				s.sent[at].Rows = pgconn.NewCommandTag(tag).RowsAffected()
			}
			o.tags = append(o.tags, tag)
		}
	}
}

// contextual adds why a connection was given up.
func contextual(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
