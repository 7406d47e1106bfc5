package tabular

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// quoted reads CSV as RFC 4180 has it, with any delimiter.
type quoted struct {
	in      *csv.Reader
	text    *bufio.Reader
	limit   *limiter
	options Options
	skipped int64
	after   int64 // line after the last row
	ended   bool
}

func newQuoted(text *bufio.Reader, limit *limiter, o Options) *quoted {
	return &quoted{text: text, limit: limit, options: o}
}

func (q *quoted) open() ([]string, *Row, error) {
	skipped, err := skipLines(q.text, q.limit, q.options.SkipLines)
	if err != nil {
		return nil, nil, err
	}
	q.skipped = skipped
	q.in = csv.NewReader(q.text) // reads ahead in the buffer that it is given
	q.in.Comma, q.in.FieldsPerRecord, q.in.ReuseRecord = q.options.Delimiter, -1, true
	// So that a quote behind a space is one; white space that separates fields would be taken for what stands around them.
	q.in.TrimLeadingSpace = q.options.Trim && !unicode.IsSpace(q.options.Delimiter)
	q.after = q.skipped + 1
	return head(q.next, q.options)
}

// head reads the header, or the first row where there is none.
func head(next func() (Row, error), o Options) ([]string, *Row, error) {
	first, err := next()
	if errors.Is(err, io.EOF) {
		return nil, nil, &Error{Reason: "the file has no rows"}
	}
	if err != nil {
		return nil, nil, err
	}
	if first.Problem != nil {
		return nil, nil, &Error{Line: first.Problem.Line, Reason: first.Problem.Reason}
	}
	if slices.ContainsFunc(first.Fields, func(f string) bool { return strings.ContainsRune(f, '\r') }) {
		return nil, nil, &Error{Line: first.Line, Reason: "a carriage return within the row: are the line ends of the file carriage returns alone?"}
	}
	names := slices.Clone(first.Fields)
	if o.Header {
		if o.Trim {
			for i := range names {
				names[i] = strings.Trim(names[i], " \t")
			}
		}
		if o.Columns != nil && !slices.Equal(o.Columns, names) {
			return nil, nil, &Error{Line: first.Line, Reason: fmt.Sprintf("the header is %q, and the mapping expects %q", names, o.Columns)}
		}
		return names, nil, nil
	}
	if o.Columns != nil {
		return o.Columns, &first, nil
	}
	return numbered(len(names)), &first, nil
}

// skipLines reads n lines away.
func skipLines(in *bufio.Reader, limit *limiter, n int) (int64, error) {
	for i := range n {
		for {
			limit.mark()
			_, err := in.ReadSlice('\n')
			if err == nil {
				break
			}
			if errors.Is(err, io.EOF) {
				return 0, &Error{Reason: fmt.Sprintf("the file has %d lines; skip_lines is %d", i, n)}
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return 0, wrapped(err)
			}
		}
	}
	return int64(n), nil
}

func (q *quoted) next() (Row, error) {
	if q.ended {
		return Row{}, io.EOF
	}
	q.limit.mark()
	before := q.in.InputOffset()
	fields, err := q.in.Read()
	var bad *csv.ParseError
	switch {
	case err == nil:
		line, _ := q.in.FieldPos(0)
		row := Row{Line: q.skipped + int64(line), Fields: fields}
		last, _ := q.in.FieldPos(len(fields) - 1)
		q.after = q.skipped + int64(last+strings.Count(fields[len(fields)-1], "\n")) + 1
		if q.in.InputOffset()-before > MaxRow {
			row.Problem = &Problem{Line: row.Line, Reason: longRow}
		}
		return row, nil
	case errors.As(err, &bad):
		begin := q.skipped + int64(bad.StartLine)
		q.after = q.skipped + int64(bad.Line) + 1
		p := &Problem{Line: begin, Column: bad.Column}
		switch {
		case errors.Is(err, csv.ErrBareQuote):
			p.Line, p.Reason = q.skipped+int64(bad.Line), "a quote within a field that does not begin with one; quotes of such files are doubled, or say quoting: none"
		case errors.Is(err, csv.ErrQuote) && bad.Line > bad.StartLine:
			p.Column, p.Reason = 0, fmt.Sprintf("a quote is opened in this row and not closed by line %d", q.skipped+int64(bad.Line))
		default:
			p.Line, p.Reason = q.skipped+int64(bad.Line), "a quote is not closed, or something follows the closing one"
		}
		return Row{Line: begin, Problem: p}, nil
	case errors.Is(err, errLong):
		q.ended = true // there is no telling where the next row begins
		return Row{Line: q.after, Problem: &Problem{Line: q.after, Reason: longRow + "; nothing after it was read"}}, nil
	}
	return Row{}, wrapped(err)
}

const longRow = "a row of more than 1 MiB: is a quote opened and not closed, or are the line ends carriage returns alone?"

// plain reads lines whose fields are separated by the delimiter, where quotes are characters like others.
type plain struct {
	in      *bufio.Reader
	limit   *limiter
	options Options
	fields  []string
	line    int64
}

func newPlain(text *bufio.Reader, limit *limiter, o Options) *plain {
	return &plain{in: text, limit: limit, options: o}
}

func (p *plain) open() ([]string, *Row, error) {
	skipped, err := skipLines(p.in, p.limit, p.options.SkipLines)
	if err != nil {
		return nil, nil, err
	}
	p.line = skipped
	return head(p.next, p.options)
}

func (p *plain) next() (Row, error) {
	for {
		line, length, err := p.read()
		if err != nil {
			return Row{}, err
		}
		p.line++
		line = strings.TrimSuffix(line, "\r")
		if length > MaxRow {
			return Row{Line: p.line, Problem: &Problem{Line: p.line, Reason: "a row of more than 1 MiB"}}, nil
		}
		if line == "" {
			continue // as with quotes: an empty line is no row
		}
		p.fields = p.fields[:0]
		for f := range strings.SplitSeq(line, string(p.options.Delimiter)) {
			p.fields = append(p.fields, f)
		}
		return Row{Line: p.line, Fields: p.fields}, nil
	}
}

// read returns a line without its line feed, cut at MaxRow, and its whole length.
func (p *plain) read() (string, int, error) {
	var line []byte
	length := 0
	for {
		p.limit.mark() // the rest of a long line is read and not kept
		part, err := p.in.ReadSlice('\n')
		length += len(part)
		line = append(line, part[:min(len(part), max(0, MaxRow+1-len(line)))]...)
		switch {
		case err == nil:
			return strings.TrimSuffix(string(line), "\n"), length, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0:
			return string(line), length, nil
		}
		return "", 0, wrapped(err)
	}
}
