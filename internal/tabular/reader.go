package tabular

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/phrase"
)

// MaxRow is the longest row in bytes; a longer one is mostly a quote that is never closed.
const MaxRow = 1 << 20

// Format is how a file is written.
type Format string

// The formats.
const (
	CSV Format = "csv"
	SQL Format = "sql-insert"
)

// Options say how a file is written. The zero value is no valid one: see Check.
type Options struct {
	Format    Format
	Table     string   // SQL: the table whose INSERT statements are read
	Encoding  Encoding // of the whole file
	Columns   []string // names of the columns; where the file names them (header, INSERT): what they must be, nil for anything
	SkipLines int      // CSV: lines before the header or the first row
	Delimiter rune     // CSV
	Quoted    bool     // CSV: fields may be quoted with "
	Header    bool     // CSV: the first row names the columns; without one unnamed columns are 1, 2, 3 ...
	Trim      bool     // spaces and tabs around a field are no part of it
	Backslash bool     // SQL: a backslash in a string escapes what follows, as MySQL writes it
}

// Error is a file that is not what Options say it is; nothing of it can be read.
type Error struct {
	Reason string
	Line   int64 // 0 where the whole file is meant
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// Problem is a fault of one row. Column counts bytes from 1, 0 where it is not known.
type Problem struct {
	Reason string
	Line   int64
	Column int
}

// Row is one row. Its fields are as many as the columns, unless it has a problem. The slice is the reader's until the
// next row.
type Row struct {
	Problem *Problem
	Fields  []string
	Line    int64 // that it begins at, from 1
	Foreign bool  // its bytes would also be good UTF-8, which the encoding is not
}

// Reader reads the rows of one file.
type Reader struct {
	source  rows
	options Options
	columns []string
	ahead   *Row // read to learn the columns
}

// rows reads one format. The first call gives the columns.
type rows interface {
	open() (columns []string, first *Row, err error)
	next() (Row, error)
}

// NewReader reads up to the columns' names. It fails with *Error where there are none.
func NewReader(in io.Reader, o Options) (*Reader, error) {
	r := &Reader{options: o}
	limited := &limiter{in: in}
	text, err := decode(limited, o.Encoding)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Format == SQL:
		r.source = newDump(text, limited, o)
	case o.Quoted:
		r.source = newQuoted(text, limited, o)
	default:
		r.source = newPlain(text, limited, o)
	}
	if r.columns, r.ahead, err = r.source.open(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(r.columns, func(c string) bool { return !utf8.ValidString(c) }); i >= 0 {
		return nil, &Error{Line: 1, Reason: fmt.Sprintf("the name of column %d is not %s", i+1, o.Encoding)}
	}
	return r, nil
}

// Columns returns the names of the columns.
func (r *Reader) Columns() []string { return r.columns }

// Next returns the next row, and io.EOF after the last.
func (r *Reader) Next() (Row, error) {
	row := Row{}
	if r.ahead != nil {
		row, r.ahead = *r.ahead, nil
	} else {
		var err error
		if row, err = r.source.next(); err != nil {
			return row, err
		}
	}
	if row.Problem == nil && len(row.Fields) != len(r.columns) {
		row.Problem = &Problem{Line: row.Line, Reason: fmt.Sprintf("the row has %s, the file has %s", fields(len(row.Fields)), columns(len(r.columns)))}
	}
	if row.Problem == nil {
		r.text(&row)
	}
	return row, nil
}

// text checks the encoding of a row and trims its fields.
func (r *Reader) text(row *Row) {
	for i, f := range row.Fields {
		if r.options.Trim {
			f = strings.Trim(f, " \t")
			row.Fields[i] = f
		}
		if !utf8.ValidString(f) {
			row.Problem = r.misencoded(row.Line, i, f)
			return
		}
		if r.options.Encoding != UTF8 && !row.Foreign {
			row.Foreign = mojibake(f)
		}
	}
}

// misencoded says which byte of a field is wrong, and at which line of a field that has several.
func (r *Reader) misencoded(line int64, field int, text string) *Problem {
	at := 0
	for at < len(text) {
		c, n := utf8.DecodeRuneInString(text[at:])
		if c == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	p := &Problem{Line: line + int64(strings.Count(text[:at], "\n"))}
	name := strconv.Quote(r.columns[field])
	if r.options.Encoding != UTF8 {
		p.Reason = fmt.Sprintf("column %s holds a byte that %s does not have, after %s", name, r.options.Encoding, strconv.Quote(tail(text[:at])))
		return p
	}
	p.Reason = fmt.Sprintf("column %s holds byte 0x%02X after %s: no UTF-8; if the whole file is another encoding, name it in the mapping (encoding: windows-1252), else write this line as UTF-8",
		name, text[at], strconv.Quote(tail(text[:at])))
	return p
}

// tail is the last few characters of valid text.
func tail(s string) string {
	for i := range s {
		if len(s)-i <= 12 {
			return s[i:]
		}
	}
	return s
}

// limiter refuses to read more than MaxRow bytes for one row; ahead is what buffers above it may hold.
type limiter struct {
	in   io.Reader
	used int
}

// readAhead is the size of each buffer between the file and a row; there are at most three.
const readAhead = 64 << 10

// errLong is a row of more than MaxRow bytes.
var errLong = errors.New("the row is too long")

func (l *limiter) mark() { l.used = 0 }

func (l *limiter) Read(p []byte) (int, error) {
	if l.used > MaxRow+3*readAhead {
		return 0, errLong
	}
	n, err := l.in.Read(p)
	l.used += n
	return n, err
}

// wrapped says what reading failed at.
func wrapped(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("read rows: %w", err)
}

// buffered is the one size of buffers here.
func buffered(in io.Reader) *bufio.Reader { return bufio.NewReaderSize(in, readAhead) }

func fields(n int) string { return phrase.Counted(n, "field") }

func columns(n int) string { return phrase.Counted(n, "column") }

// numbered names columns that have no names.
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i + 1)
	}
	return out
}
