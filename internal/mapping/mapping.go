package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/tabular"
)

// Keys returns the names that may stand in a part of a mapping file, "" being the file itself.
func Keys(part string) []string { return keys[part] }

var keys = map[string][]string{
	"": {"version", "format", "table", "encoding", "delimiter", "quoting", "header", "columns", "skip_lines", "trim", "backslash_escapes",
		"item", "location", "txn_id", "ordinal", "revision", "day", "quantity", "kind", "cancelled", "leave_out", "revised", "repeats"},
	"ordinal":   {"within"},
	"day":       {"value", "format"},
	"quantity":  {"value", "decimal", "thousands", "sign", "zero"},
	"kind":      {"column", "values", "otherwise", "positive", "negative", "when", "is"},
	"condition": {"column", "is", "is_not", "starts_with", "empty", "differs_from", "quantity", "all"},
	"revised":   {"when", "day", "quantity", "kind", "cancelled"},
}

// Mapping is a mapping file that was read. It never changes.
type Mapping struct {
	file    node
	options tabular.Options
	allow   bool // a revision may be said twice with different content
}

// Parse reads a mapping file. It fails with *Error.
func Parse(raw []byte) (*Mapping, error) {
	m := &Mapping{}
	var err error
	if m.file, err = read(raw); err != nil {
		return nil, err
	}
	if err := m.file.known(""); err != nil {
		return nil, err
	}
	version, ok := m.file.get("version")
	if !ok || version.kind != scalar || version.text != "1" {
		return nil, &Error{Line: version.line, Reason: "version: 1 is expected; it says how the rest of the mapping file is meant"}
	}
	if err := m.readOptions(); err != nil {
		return nil, err
	}
	if repeats, ok := m.file.get("repeats"); ok {
		word, err := repeats.word("repeats", "refuse", "allow")
		if err != nil {
			return nil, err
		}
		m.allow = word == "allow"
	}
	c := compiler{column: func(string) (int, error) { return 0, nil }, scale: 9}
	_, err = c.mapper(m.file)
	return m, err
}

// Options returns how the file is written that the mapping is for.
func (m *Mapping) Options() tabular.Options { return m.options }

// AllowsRepeats reports whether two rows may say one revision of one transaction differently, which blocks the key (S7).
// Where revisions are those of the order first seen no two rows can.
func (m *Mapping) AllowsRepeats() bool {
	revision, _ := m.file.get("revision")
	return m.allow || revision.text == firstSeen
}

// Bind returns what maps the rows of one pass over a file with these columns, quantities being in units of 10^-scale.
// It fails with *Error where the mapping names a column that the file does not have, or has twice.
func (m *Mapping) Bind(columns []string, scale int) (*Mapper, error) {
	c := compiler{scale: scale, column: func(name string) (int, error) {
		i := slices.Index(columns, name)
		if i < 0 {
			return 0, fmt.Errorf("the file has no column %q; its columns: %s", name, quotedList(columns))
		}
		if slices.Contains(columns[i+1:], name) {
			return 0, fmt.Errorf("the file has two columns %q", name)
		}
		return i, nil
	}}
	return c.mapper(m.file)
}

func quotedList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return strings.Join(out, ", ")
}

// readOptions reads the part that says how the file is written.
func (m *Mapping) readOptions() error {
	o := tabular.Options{Format: tabular.CSV, Encoding: tabular.UTF8, Delimiter: ',', Quoted: true, Header: true, Backslash: true}
	r := optionReader{file: m.file}
	o.Format = tabular.Format(r.word("format", string(o.Format), string(tabular.CSV), string(tabular.SQL)))
	o.Encoding = tabular.Encoding(r.word("encoding", string(o.Encoding), string(tabular.UTF8), string(tabular.Windows1252), string(tabular.Latin1)))
	o.Quoted = r.word("quoting", "double", "double", "none") == "double"
	o.Header = r.truth("header", o.Header)
	o.Trim = r.truth("trim", false)
	o.Backslash = r.truth("backslash_escapes", o.Backslash)
	o.Table = r.text("table", "")
	delimiter := r.text("delimiter", ",")
	if delimiter == "tab" {
		delimiter = "\t"
	}
	o.SkipLines = r.number("skip_lines", 1000)
	if n, ok := m.file.get("columns"); ok {
		var err error
		if o.Columns, err = n.strings("columns"); err != nil {
			return err
		}
	}
	if r.err != nil {
		return r.err
	}
	c, size := utf8.DecodeRuneInString(delimiter)
	if size != len(delimiter) || size == 0 || strings.ContainsRune("\"\r\n\ufeff", c) || c == utf8.RuneError {
		return &Error{Reason: fmt.Sprintf("delimiter: one character, or tab, is expected, not %q", delimiter)}
	}
	o.Delimiter = c
	for _, name := range []string{"table", "backslash_escapes"} {
		if n, ok := m.file.get(name); ok && o.Format != tabular.SQL {
			return n.errorf("%s: belongs to format: sql-insert", name)
		}
	}
	for _, name := range []string{"delimiter", "quoting", "header", "skip_lines"} {
		if n, ok := m.file.get(name); ok && o.Format == tabular.SQL {
			return n.errorf("%s: belongs to format: csv", name)
		}
	}
	if o.Format == tabular.SQL && o.Table == "" {
		return &Error{Reason: "format: sql-insert needs table: the name of the table whose rows are read"}
	}
	m.options = o
	return nil
}

// optionReader reads names that have a value otherwise; the first error stays.
type optionReader struct {
	err  error
	file node
}

func (r *optionReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *optionReader) text(name, otherwise string) string {
	n, ok := r.file.get(name)
	if !ok {
		return otherwise
	}
	s, err := n.string(name)
	r.fail(err)
	return s
}

func (r *optionReader) word(name, otherwise string, allowed ...string) string {
	n, ok := r.file.get(name)
	if !ok {
		return otherwise
	}
	s, err := n.word(name, allowed...)
	r.fail(err)
	return s
}

func (r *optionReader) truth(name string, otherwise bool) bool {
	return r.word(name, strconv.FormatBool(otherwise), "true", "false") == "true"
}

func (r *optionReader) number(name string, most int) int {
	n, ok := r.file.get(name)
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(n.text)
	if err != nil || v < 0 || v > most {
		r.fail(n.errorf("%s: a whole number of 0 to %d is expected", name, most))
	}
	return v
}
