package provision

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"amends/internal/broker"
	"amends/internal/ledger"
)

// Limits of a load.
const (
	pageRecords = 1_000
	pageBytes   = 1 << 20  // of lines
	maxRawLine  = 16 << 20 // bytes of one line of the raw format
	maxProblems = 10       // bad lines that a refusal shows
)

// record is one line, ready to be published.
type record struct {
	message   broker.Message
	txnID     string // "" where a raw record is no valid assertion
	revision  ledger.Revision
	line      int64
	partition ledger.Partition
}

// Problem is a bad line of a source file. Line counts from 1, Column in bytes from 1, 0 where the whole line is meant.
type Problem struct {
	Code   string // a code of S3, "" where the format itself is broken
	Reason string
	Line   int64
	Column int
}

// String names the place, the code and the reason.
func (p Problem) String() string {
	place := fmt.Sprintf("line %d", p.Line)
	if p.Column > 0 {
		place += fmt.Sprintf(" column %d", p.Column)
	}
	if p.Code == "" {
		return place + ": " + p.Reason
	}
	return place + ": " + p.Code + ": " + p.Reason
}

// parser turns one line, without its end, into a record. The record may keep no part of the line.
type parser interface {
	parse(line []byte) (record, *Problem)
	limit() int // bytes of the longest line that can be right
}

// sum is the start of the SHA-256 of a page's lines.
type sum [16]byte

// page is a run of lines: what they hold, what is wrong with them, and their checksum.
type page struct {
	records  []record
	problems []Problem
	sum      sum
	first    int64 // number of the first line
	lines    int64
	read     int64 // bytes of the file up to the page's end
}

// pager cuts a source file into pages. The cut depends on the bytes alone, so that two passes cut alike.
type pager struct {
	in     *bufio.Reader
	parser parser
	buf    []byte
	line   int64 // lines read
	read   int64 // bytes read
}

func newPager(in io.Reader, p parser) *pager {
	return &pager{in: bufio.NewReaderSize(in, 256<<10), parser: p}
}

// next returns the next page, and io.EOF after the last.
func (g *pager) next() (page, error) {
	out := page{first: g.line + 1}
	h := sha256.New()
	for bytes := 0; out.lines < pageRecords && bytes < pageBytes; {
		line, length, err := g.readLine(h)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, fmt.Errorf("read source file: %w", err)
		}
		g.line++
		out.lines++
		g.read += int64(length) + 1
		bytes += length
		r, problem := g.parseLine(line, length)
		if problem != nil {
			problem.Line = g.line
			out.problems = append(out.problems, *problem)
			continue
		}
		r.line = g.line
		out.records = append(out.records, r)
	}
	if out.lines == 0 {
		return out, io.EOF
	}
	copy(out.sum[:], h.Sum(nil))
	out.read = g.read
	return out, nil
}

func (g *pager) parseLine(line []byte, length int) (record, *Problem) {
	if length > g.parser.limit() {
		return record{}, &Problem{Code: ledger.TooLarge.String(), Column: g.parser.limit() + 1,
			Reason: fmt.Sprintf("the line has %d bytes, the limit is %d", length, g.parser.limit())}
	}
	if length == 0 {
		return record{}, &Problem{Code: ledger.Malformed.String(), Column: 1, Reason: "an empty line"}
	}
	return g.parser.parse(line)
}

// readLine returns the next line without its line feed, cut to just over the limit, with its whole length. Every byte
// goes into h.
func (g *pager) readLine(h io.Writer) ([]byte, int, error) {
	g.buf = g.buf[:0]
	length := 0
	for {
		part, err := g.in.ReadSlice('\n')
		_, _ = h.Write(part) // a hash never fails
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		length += len(part)
		if room := g.parser.limit() + 1 - len(g.buf); room > 0 {
			g.buf = append(g.buf, part[:min(room, len(part))]...)
		}
		switch {
		case ended:
			return g.buf, length, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0:
			return g.buf, length, nil
		}
		return nil, 0, err
	}
}
