package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/store/postgres/session"
)

// Console is one connection for reading. Not safe for concurrent use.
type Console struct {
	conn  *pgx.Conn
	begin string
}

// Column is a column of an answer.
type Column struct {
	Name string
	Type uint32 // the object identifier of its type
}

// Sink takes an answer. Fields are in PostgreSQL's text form, nil for NULL, and valid until the next call.
type Sink struct {
	Columns func([]Column) error
	Row     func(fields [][]byte) error
}

// Refused is a statement that the console does not send, or that the server finds wrong: another one is to be typed.
type Refused struct {
	why    string
	server error // *pgconn.PgError, nil where nothing was sent
}

// Error returns one line.
func (r *Refused) Error() string { return r.why }

// Unwrap returns the server's error.
func (r *Refused) Unwrap() error { return r.server }

// refusal makes *Refused of a server's error about the statement: one that writes, wrong syntax, a name that does not
// exist or may not be read, or a value out of range. Others stay what they are.
func refusal(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.Code == pgerrcode.ReadOnlySQLTransaction:
		return &Refused{pg.Message + ": this console only reads", err}
	case pgerrcode.IsSyntaxErrororAccessRuleViolation(pg.Code), pgerrcode.IsDataException(pg.Code):
		text := pg.Message
		if pg.Position > 0 {
			text += fmt.Sprintf(" at character %d", pg.Position)
		}
		if pg.Hint != "" {
			text += " (" + pg.Hint + ")"
		}
		return &Refused{fmt.Sprintf("%s (%s)", text, pg.Code), err}
	}
	return err
}

// Open connects to the server of a URL. A statement may take timeout, 1 ms at least.
func Open(ctx context.Context, url string, timeout time.Duration) (*Console, error) {
	pool, err := session.Open(ctx, session.Config{URL: url, Application: application, MaxConns: 1, AllowFsyncOff: true})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	conn, err := pool.Dial(ctx, application)
	if err != nil {
		return nil, session.Before("open console", err)
	}
	c := &Console{conn: conn}
	var superuser bool
	if err := conn.QueryRow(ctx, "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user").Scan(&superuser); err != nil {
		c.Close()
		return nil, session.Before("open console", err)
	}
	c.begin = begin(timeout, superuser)
	return c, nil
}

const application = "amends-sql"

// begin is sent before each statement, end after it.
func begin(timeout time.Duration, superuser bool) string {
	text := fmt.Sprintf("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = amends, pg_catalog; SET LOCAL statement_timeout = %d",
		max(timeout.Milliseconds(), 1))
	if superuser {
		text += "; SET LOCAL ROLE pg_read_all_data"
	}
	return text
}

const end = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()"

// Close ends the connection.
func (c *Console) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), session.CleanupTimeout)
	defer cancel()
	_ = c.conn.Close(ctx) // it ends either way; nothing was written
}

// Query runs one statement and hands its rows to the sink as they come; it returns how many there were.
func (c *Console) Query(ctx context.Context, statement string, to Sink) (rows int64, err error) {
	if err := Check(statement); err != nil {
		return 0, err
	}
	conn := c.conn.PgConn()
	if err := run(ctx, conn, c.begin); err != nil {
		return 0, session.Before("begin", err)
	}
	rows, err = stream(ctx, conn, statement, to)
	if conn.IsClosed() {
		return rows, session.Before("query", err)
	}
	if ending := run(ctx, conn, end); err == nil {
		err = ending
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == pgerrcode.UndefinedTable && c.empty(ctx) {
		return rows, session.Before("query", err)
	}
	var refused *Refused
	if err = refusal(err); errors.As(err, &refused) {
		return rows, refused
	}
	return rows, session.Before("query", err)
}

// empty reports that the database has no schema amends, so that no name of it can be found.
func (c *Console) empty(ctx context.Context) bool {
	var empty bool
	err := c.conn.QueryRow(ctx, "SELECT to_regnamespace('amends') IS NULL").Scan(&empty)
	return err == nil && empty
}

// stream sends the statement by the extended protocol.
func stream(ctx context.Context, conn *pgconn.PgConn, statement string, to Sink) (rows int64, err error) {
	answer := conn.ExecParams(ctx, statement, nil, nil, nil, nil)
	var columns []Column
	for answer.NextRow() {
		if columns == nil {
			columns = columnsOf(answer.FieldDescriptions())
			if err = to.Columns(columns); err != nil {
				break
			}
		}
		rows++
		if err = to.Row(answer.Values()); err != nil {
			break
		}
	}
	if err != nil { // the reader is gone: the rest is not worth reading
		_ = conn.Close(ctx)
		return rows, err
	}
	fields := answer.FieldDescriptions()
	if _, err := answer.Close(); err != nil {
		return rows, err
	}
	if columns == nil {
		return 0, to.Columns(columnsOf(fields))
	}
	return rows, nil
}

func columnsOf(fields []pgconn.FieldDescription) []Column {
	all := make([]Column, len(fields))
	for i, f := range fields {
		all[i] = Column{Name: f.Name, Type: f.DataTypeOID}
	}
	return all
}

func run(ctx context.Context, conn *pgconn.PgConn, statements string) error {
	_, err := conn.Exec(ctx, statements).ReadAll()
	return err
}

// reading are the words that a statement may begin with.
const reading = " SELECT WITH TABLE VALUES SHOW EXPLAIN "

// Check returns *Refused unless a statement begins as one that reads.
func Check(statement string) error {
	if strings.ContainsRune(statement, 0) {
		return &Refused{why: "a statement holds a NUL character; write it as an escape of bytea, such as '\\x00'"}
	}
	word := strings.ToUpper(firstWord(statement))
	if word == "" || !strings.Contains(reading, " "+word+" ") {
		return &Refused{why: fmt.Sprintf("%q: this console only reads: SELECT, WITH, TABLE, VALUES, SHOW and EXPLAIN", word)}
	}
	return nil
}

// firstWord returns the letters that a statement begins with, after comments, spaces and parentheses.
func firstWord(statement string) string {
	s := scanner{text: statement}
	for {
		s.space()
		if s.at < len(s.text) && s.text[s.at] == '(' {
			s.at++
			continue
		}
		break
	}
	begin := s.at
	for s.at < len(s.text) && (s.text[s.at]|0x20 >= 'a' && s.text[s.at]|0x20 <= 'z') {
		s.at++
	}
	return s.text[begin:s.at]
}
