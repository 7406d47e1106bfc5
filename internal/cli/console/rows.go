package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/cli/target"
	"amends/internal/phrase"
	"amends/internal/report"
	"amends/internal/store/postgres/console"
)

// writer writes one answer. Rows are written as they come.
type writer struct {
	columns func([]console.Column) error
	row     func([][]byte) error
	end     func() error // of a whole answer
	flush   func() error // of one that broke off
}

func writerOf(form target.Form, out io.Writer) writer {
	switch form {
	case target.FormJSON:
		j := &jsonRows{out: bufio.NewWriter(out)}
		return writer{j.columns, j.row, j.end, j.out.Flush}
	case target.FormCSV:
		c := &csvRows{to: out}
		return writer{c.columns, c.row, c.end, c.end}
	}
	t := &textRows{out: bufio.NewWriter(out)}
	return writer{t.columns, t.row, t.end, t.end}
}

// Object identifiers of PostgreSQL's built-in types that JSON and tables treat apart.
const (
	boolType    = 16
	int8Type    = 20
	int2Type    = 21
	int4Type    = 23
	oidType     = 26
	jsonType    = 114
	float4Type  = 700
	float8Type  = 701
	numericType = 1700
	jsonbType   = 3802
)

func isNumber(t uint32) bool {
	switch t {
	case int8Type, int2Type, int4Type, oidType, float4Type, float8Type, numericType:
		return true
	}
	return false
}

// jsonRows writes {"schema":1,"columns":[…],"rows":[{…},…]} on one line. A row's members are its columns in order; a
// second column of one name gets _2 behind it.
type jsonRows struct {
	out   *bufio.Writer
	heads [][]byte // each column's name as a JSON string
	types []uint32
	rows  int
}

func (j *jsonRows) columns(columns []console.Column) error {
	type column struct {
		Name string `json:"name"`
		Type uint32 `json:"type_oid"`
	}
	list := make([]column, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = c.Name + "_" + strconv.Itoa(n)
		}
		seen[name] = true
		list[i] = column{name, c.Type}
		j.heads = append(j.heads, encoded(name))
		j.types = append(j.types, c.Type)
	}
	_, err := fmt.Fprintf(j.out, `{"schema":1,"columns":%s,"rows":[`, encoded(list))
	return err
}

func (j *jsonRows) row(fields [][]byte) error {
	if j.rows++; j.rows > 1 {
		j.out.WriteByte(',')
	}
	j.out.WriteByte('{')
	for i, f := range fields {
		if i > 0 {
			j.out.WriteByte(',')
		}
		j.out.Write(j.heads[i])
		j.out.WriteByte(':')
		j.out.Write(value(f, j.types[i]))
	}
	return j.out.WriteByte('}')
}

func (j *jsonRows) end() error {
	j.out.WriteString("]}\n")
	return j.out.Flush()
}

// value writes a field as JSON: numbers, booleans and JSON as they are, everything else as a string.
func value(field []byte, kind uint32) []byte {
	switch {
	case field == nil:
		return []byte("null")
	case kind == boolType:
		return strconv.AppendBool(nil, field[0] == 't')
	case (isNumber(kind) || kind == jsonType || kind == jsonbType) && json.Valid(field): // NaN and infinities are not
		return field
	}
	return encoded(string(field))
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("null") // strings and numbers always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// csvRows writes rows as report.CSV does; NULL is an empty field.
type csvRows struct {
	to  io.Writer
	out *report.CSV
}

func (c *csvRows) columns(columns []console.Column) error {
	names := make([]string, len(columns))
	for i, x := range columns {
		names[i] = x.Name
	}
	c.out = report.NewCSV(c.to, names...)
	return nil
}

func (c *csvRows) row(fields [][]byte) error {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = string(f)
	}
	return c.out.Row(texts...)
}

func (c *csvRows) end() error {
	if c.out == nil {
		return nil
	}
	return c.out.Flush()
}

// measured is how many rows are looked at before the first is written, to know how wide columns are. A longer field that
// comes later pushes its line aside.
const measured = 500

// textRows writes a table; NULL is empty. What is not printable becomes its escape.
type textRows struct {
	out    *bufio.Writer
	heads  []string
	types  []uint32
	widths []int
	held   [][]string
	open   bool
}

func (t *textRows) columns(columns []console.Column) error {
	for _, c := range columns {
		t.heads = append(t.heads, phrase.Printable(c.Name))
		t.types = append(t.types, c.Type)
		t.widths = append(t.widths, utf8.RuneCountInString(phrase.Printable(c.Name)))
	}
	return nil
}

func (t *textRows) row(fields [][]byte) error {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = phrase.Printable(string(f))
	}
	if t.open {
		return t.line(texts, " ")
	}
	t.held = append(t.held, texts)
	for i, s := range texts {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(s))
	}
	if len(t.held) == measured {
		return t.begin()
	}
	return nil
}

// begin writes the head and what was held.
func (t *textRows) begin() error {
	t.open = true
	if err := t.line(t.heads, " "); err != nil {
		return err
	}
	rule := make([]string, len(t.heads))
	for i, w := range t.widths {
		rule[i] = strings.Repeat("-", w)
	}
	if err := t.line(rule, "-"); err != nil {
		return err
	}
	for _, r := range t.held {
		if err := t.line(r, " "); err != nil {
			return err
		}
	}
	t.held = nil
	return nil
}

func (t *textRows) line(texts []string, space string) error {
	var b strings.Builder
	for i, s := range texts {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(space, max(t.widths[i]-utf8.RuneCountInString(s), 0))
		if isNumber(t.types[i]) {
			b.WriteString(pad + s)
			continue
		}
		b.WriteString(s + pad)
	}
	_, err := fmt.Fprintln(t.out, strings.TrimRight(b.String(), " "))
	return err
}

func (t *textRows) end() error {
	if t.heads != nil && !t.open {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.out.Flush()
}
