package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// CSV writes rows as RFC 4180 has them, with line feeds at the ends of lines so that every byte of a field is kept. The
// first line names the columns. Nothing is changed in a field: one that begins with =, +, - or @ is a formula to a
// spreadsheet, so import foreign identifiers there as text.
type CSV struct {
	out     *bufio.Writer
	columns int
}

// NewCSV writes the names of the columns, one at least.
func NewCSV(out io.Writer, columns ...string) *CSV {
	c := &CSV{out: bufio.NewWriter(out), columns: len(columns)}
	c.line(columns)
	return c
}

// Row writes one row; it has as many fields as there are columns.
func (c *CSV) Row(fields ...string) error {
	if len(fields) != c.columns {
		return fmt.Errorf("write csv: %d fields in a row of %d columns", len(fields), c.columns)
	}
	return c.line(fields)
}

// Flush writes what is buffered, and returns the first error of any write.
func (c *CSV) Flush() error { return c.out.Flush() }

func (c *CSV) line(fields []string) error {
	for i, f := range fields {
		if i > 0 {
			c.out.WriteByte(',')
		}
		if !quoted(f, len(fields)) {
			c.out.WriteString(f)
			continue
		}
		c.out.WriteByte('"')
		c.out.WriteString(strings.ReplaceAll(f, `"`, `""`))
		c.out.WriteByte('"')
	}
	return c.out.WriteByte('\n')
}

// quoted: spaces at the ends are lost by some readers, and a line without anything is no row to most.
func quoted(field string, columns int) bool {
	return strings.ContainsAny(field, ",\"\r\n") || field != strings.TrimSpace(field) || field == "" && columns == 1
}
