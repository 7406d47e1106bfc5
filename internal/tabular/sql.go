package tabular

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// dump reads the INSERT statements of one table and passes over everything else, comments and other statements with
// strings of any content included. NULL is read as an empty field.
type dump struct {
	in      *bufio.Reader
	limit   *limiter
	options Options
	columns []string // of the statement at hand
	all     []string // of the file
	named   bool     // all is what the first statement names
	fields  []string
	text    []byte
	line    int64
	size    int  // of the row at hand in bytes
	inside  bool // of a list of rows
	passing bool // over what is not kept
	ended   bool
}

func newDump(text *bufio.Reader, limit *limiter, o Options) *dump {
	return &dump{in: text, limit: limit, options: o, line: 1}
}

// What a token is.
const (
	word   = 'w' // a keyword, a number, an unquoted name
	name   = 'n' // a name between ` ` or [ ]
	quote  = 's' // a string
	double = 'd' // between " ": a name in ANSI, a string in MySQL
	end    = 'e'
)

// token is a word, or one character of punctuation, which is its own kind.
type token struct {
	text string
	kind byte
}

func (t token) is(keyword string) bool { return t.kind == word && strings.EqualFold(t.text, keyword) }

// syntaxError is a fault in a statement that is read.
type syntaxError struct{ reason string }

func (e *syntaxError) Error() string { return e.reason }

func (d *dump) open() ([]string, *Row, error) {
	first, err := d.next()
	if errors.Is(err, io.EOF) {
		return nil, nil, &Error{Reason: fmt.Sprintf("the file has no INSERT INTO %s ... VALUES", d.options.Table)}
	}
	if err != nil {
		return nil, nil, err
	}
	if first.Problem != nil && d.columns == nil {
		return nil, nil, &Error{Line: first.Line, Reason: first.Problem.Reason}
	}
	switch d.all = d.columns; {
	case d.all != nil && d.options.Columns != nil && !slices.Equal(d.all, d.options.Columns):
		return nil, nil, &Error{Line: first.Line, Reason: fmt.Sprintf("the statement names columns %q, and the mapping expects %q", d.all, d.options.Columns)}
	case d.all != nil:
		d.named = d.options.Columns == nil
	case d.options.Columns != nil:
		d.all = d.options.Columns
	default:
		d.all = numbered(len(first.Fields))
	}
	return d.all, &first, nil
}

// next returns the next row of the table.
func (d *dump) next() (Row, error) {
	for !d.ended {
		if !d.inside {
			found, err := d.statement()
			if err != nil || !found {
				return d.failed(err)
			}
		}
		d.limit.mark()
		d.size = 0
		t, err := d.token()
		if err != nil {
			return d.failed(err)
		}
		switch {
		case t.kind == '(':
			return d.row()
		case t.kind == ',':
		case t.kind == ';' || t.kind == end:
			d.inside = false
		case t.kind == word: // ON DUPLICATE KEY and the like
			d.inside = false
			if err := d.skip(); err != nil {
				return d.failed(err)
			}
		default:
			return d.failed(&syntaxError{fmt.Sprintf("%q where a row was expected", t.text)})
		}
	}
	return Row{}, io.EOF
}

// failed ends the file: after a fault in the syntax there is no telling what is string and what is statement.
func (d *dump) failed(err error) (Row, error) {
	var bad *syntaxError
	switch {
	case err == nil:
		return Row{}, io.EOF
	case errors.As(err, &bad):
		d.ended = true
		return Row{Line: d.line, Problem: &Problem{Line: d.line, Reason: bad.reason + "; nothing after it was read"}}, nil
	case errors.Is(err, errLong):
		d.ended = true
		return Row{Line: d.line, Problem: &Problem{Line: d.line, Reason: longRow + "; nothing after it was read"}}, nil
	}
	return Row{}, wrapped(err)
}

// row reads values up to the closing parenthesis.
func (d *dump) row() (Row, error) {
	line := d.line
	d.fields = d.fields[:0]
	var odd *Problem
	for {
		value, closed, err := d.value()
		if err != nil {
			return d.failed(err)
		}
		if value.odd != "" && odd == nil {
			odd = &Problem{Line: d.line, Reason: fmt.Sprintf("value %d of the row is %s; only strings, numbers and NULL are read", len(d.fields)+1, value.odd)}
		}
		d.fields = append(d.fields, value.text)
		if closed {
			break
		}
	}
	switch {
	case odd != nil || d.all == nil:
	case d.columns == nil && d.named:
		odd = &Problem{Line: line, Reason: fmt.Sprintf("the statement names no columns, the first one %q; columns: in the mapping says that these are the table's, in its order", d.all)}
	case d.columns != nil && !slices.Equal(d.columns, d.all):
		odd = &Problem{Line: line, Reason: fmt.Sprintf("the statement names columns %q, the first one %q", d.columns, d.all)}
	}
	return Row{Line: line, Fields: d.fields, Problem: odd}, nil
}

// value is one value: its text, or what it is otherwise.
type value struct{ text, odd string }

// value reads tokens up to the comma or the parenthesis behind a value.
func (d *dump) value() (v value, closed bool, err error) {
	sign, tokens, depth := "", 0, 0
	for {
		t, err := d.token()
		if err != nil {
			return v, false, err
		}
		if t.kind == end || d.size > MaxRow {
			return v, false, &syntaxError{longRow}
		}
		switch {
		case depth == 0 && (t.kind == ',' || t.kind == ')'):
			if tokens == 0 || sign != "" && tokens == 1 {
				v.odd = "empty"
			}
			return v, t.kind == ')', nil
		case t.kind == '(':
			depth++
		case t.kind == ')':
			depth--
		}
		tokens++
		switch {
		case tokens == 1 && (t.kind == '-' || t.kind == '+'):
			sign = t.text
		case tokens == 1 && (t.kind == quote || t.kind == double):
			v.text = t.text
		case tokens == 1 && t.is("NULL"):
		case (tokens == 1 || tokens == 2 && sign != "") && t.kind == word && number(t.text):
			v.text = strings.TrimPrefix(sign, "+") + t.text
		default:
			if v.odd == "" {
				v.odd = fmt.Sprintf("an expression (%.40q)", t.text)
			}
		}
	}
}

func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}

// statement goes to the rows of the next INSERT into the table; it reports false at the end of the file.
func (d *dump) statement() (bool, error) {
	for {
		d.limit.mark()
		t, err := d.token()
		if err != nil || t.kind == end {
			return false, err
		}
		if t.kind == ';' {
			continue
		}
		if t.is("INSERT") || t.is("REPLACE") {
			found, last, err := d.into()
			if err != nil || found {
				return found, err
			}
			t = last
		}
		if t.kind != ';' {
			if err := d.skip(); err != nil {
				return false, err
			}
		}
	}
}

// into reads from behind INSERT to the rows. It reports false, with the last token, for any other statement.
func (d *dump) into() (bool, token, error) {
	t, err := d.token()
	for err == nil && (t.is("IGNORE") || t.is("INTO") || t.is("LOW_PRIORITY") || t.is("DELAYED") || t.is("HIGH_PRIORITY")) {
		t, err = d.token()
	}
	table := t.text
	for err == nil {
		if t, err = d.token(); err != nil || t.kind != '.' {
			break
		}
		if t, err = d.token(); err == nil {
			table = t.text
		}
	}
	if err != nil || table != d.options.Table {
		return false, t, err
	}
	d.columns = nil
	if t.kind == '(' {
		for t.kind != ')' {
			if t, err = d.token(); err != nil {
				return false, t, err
			}
			switch t.kind {
			case word, name, double:
				d.columns = append(d.columns, t.text)
			case ',', ')':
			default:
				return false, t, &syntaxError{fmt.Sprintf("%q in the list of columns", t.text)}
			}
		}
		if t, err = d.token(); err != nil {
			return false, t, err
		}
	}
	if !t.is("VALUES") && !t.is("VALUE") {
		return false, t, &syntaxError{fmt.Sprintf("%q where VALUES was expected", t.text)}
	}
	d.inside = true
	return true, t, nil
}

// skip reads past the end of a statement.
func (d *dump) skip() error {
	d.passing = true
	defer func() { d.passing = false }()
	for {
		d.limit.mark()
		t, err := d.token()
		if err != nil || t.kind == ';' || t.kind == end {
			return err
		}
	}
}
