package provision

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"amends/internal/ledger"
)

// Rows is one pass over a file of another format, whose rows are read as values of S3. Two passes over the same bytes
// give the same rows.
type Rows struct {
	Next  func() (Row, error) // io.EOF after the last
	Close func() error
	Size  int64 // of the file in bytes
}

// Row is one row of a file: the values that it means, or what is wrong with it. Its memory is the reader's until the
// next row.
type Row struct {
	Values   [][]byte
	Problems []Problem // those without a line are at the row's
	Line     int64     // that the row begins at, from 1; later rows have no earlier ones
	Read     int64     // bytes of the file up to the row's end
}

// foreign cuts the rows of a file into pages. A row is never split, and the checksum is that of what the rows mean.
func (l *Load) foreign() (*pages, error) {
	rows, err := l.Rows()
	if err != nil {
		return nil, err
	}
	parser := valueParser{cfg: l.Manifest.Config}
	line, place := int64(0), []byte(nil)
	next := func() (page, error) {
		out, h := page{first: line + 1}, sha256.New() // said where the file ends early
		for bytes := 0; out.lines < pageRecords && bytes < pageBytes; out.lines++ {
			row, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return out, fmt.Errorf("read source file: %w", err)
			}
			if line = row.Line; out.lines == 0 {
				out.first = line
			}
			out.read = row.Read
			for _, problem := range row.Problems {
				problem.Line = max(problem.Line, row.Line)
				out.problems = append(out.problems, problem)
			}
			for _, v := range row.Values {
				bytes += len(v)
				place = binary.AppendVarint(binary.AppendVarint(place[:0], row.Line), int64(len(v)))
				_, _ = h.Write(place) // a hash never fails
				_, _ = h.Write(v)
				r, problem := parseValue(parser, v)
				if problem != nil {
					problem.Line, problem.Column = row.Line, 0 // the column is the value's, which nobody wrote
					out.problems = append(out.problems, *problem)
					continue
				}
				r.line = row.Line
				out.records = append(out.records, r)
			}
		}
		if out.lines == 0 {
			return out, io.EOF
		}
		copy(out.sum[:], h.Sum(nil))
		return out, nil
	}
	return &pages{next: next, close: func() { _ = rows.Close() }, size: rows.Size}, nil
}

func parseValue(p valueParser, v []byte) (record, *Problem) {
	if len(v) > p.limit() {
		return record{}, &Problem{Code: ledger.TooLarge.String(), Reason: fmt.Sprintf("the record has %d bytes, the limit is %d", len(v), p.limit())}
	}
	return p.parse(v)
}
