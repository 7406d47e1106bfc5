package intake

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"syscall"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/mapping"
	"amends/internal/provision"
	"amends/internal/tabular"
	"amends/internal/wire"
)

// maxMapping is the longest mapping file in bytes.
const maxMapping = 1 << 20

// Refused is a file, a mapping or a progress file that an import cannot use: a wrong invocation (exit 2).
type Refused struct{ Reason string }

func (e *Refused) Error() string { return e.Reason }

// File is a file to import and the mapping that it is read by. It is for one goroutine.
type File struct {
	Path     string
	Manifest *manifest.Manifest
	mapping  *mapping.Mapping
	survey   *Survey
	mapped   string // SHA-256 of the mapping file
}

// Open reads the mapping file; the file itself is opened by each pass. It fails with *Refused.
func Open(path, mappingPath string, m *manifest.Manifest) (*File, error) {
	f, err := openRegular(mappingPath)
	if err != nil {
		return nil, &Refused{fmt.Sprintf("open mapping file: %v", err)}
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMapping+1))
	if err != nil {
		return nil, &Refused{fmt.Sprintf("read mapping file: %v", err)}
	}
	if len(raw) > maxMapping {
		return nil, &Refused{fmt.Sprintf("%s has more than %d bytes: this is no mapping file", mappingPath, maxMapping)}
	}
	parsed, err := mapping.Parse(raw)
	if err != nil {
		return nil, &Refused{fmt.Sprintf("%s: %v", mappingPath, err)}
	}
	sum := sha256.Sum256(raw)
	return &File{Path: path, Manifest: m, mapping: parsed, mapped: hex.EncodeToString(sum[:])}, nil
}

// Survey returns what the first pass found so far, nil before it began.
func (f *File) Survey() *Survey { return f.survey }

// openRegular opens a file that can be read twice.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; it is read twice: first validated, then published", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// pass is one reading of the file.
type pass struct {
	file   *os.File
	rows   *tabular.Reader
	mapper *mapping.Mapper
	survey *Survey // nil in later passes
	sum    hash.Hash
	owner  *File
	values [][]byte
	read   int64
}

// Read counts what is read of the file, and adds it to the file's digest.
func (p *pass) Read(b []byte) (int, error) {
	n, err := p.file.Read(b)
	p.read += int64(n)
	if p.sum != nil {
		_, _ = p.sum.Write(b[:n]) // a hash never fails
	}
	return n, err
}

// Rows begins a pass over the file. The first pass makes the survey. It fails with *Refused where the file is not what
// the mapping says.
func (f *File) Rows() (*provision.Rows, error) {
	file, err := openRegular(f.Path)
	if err != nil {
		return nil, &Refused{fmt.Sprintf("open file: %v", err)}
	}
	p := &pass{file: file, owner: f}
	info, err := file.Stat()
	if err == nil {
		if f.survey == nil {
			f.survey, p.sum = newSurvey(!f.mapping.AllowsRepeats()), sha256.New()
			p.survey = f.survey
		}
		err = p.begin()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &provision.Rows{Next: p.next, Close: file.Close, Size: info.Size()}, nil
}

func (p *pass) begin() (err error) {
	var notRows *tabular.Error
	if p.rows, err = tabular.NewReader(p, p.owner.mapping.Options()); errors.As(err, &notRows) {
		return &Refused{fmt.Sprintf("%s: %v", p.owner.Path, err)}
	}
	if err != nil {
		return err
	}
	var unfit *mapping.Error
	if p.mapper, err = p.owner.mapping.Bind(p.rows.Columns(), int(p.owner.Manifest.Config.QuantityScale)); errors.As(err, &unfit) {
		return &Refused{fmt.Sprintf("the mapping does not fit %s: %v", p.owner.Path, err)}
	}
	return err
}

// next maps the next row.
func (p *pass) next() (provision.Row, error) {
	row, err := p.rows.Next()
	if errors.Is(err, io.EOF) {
		if p.sum != nil {
			p.survey.Digest = hex.EncodeToString(p.sum.Sum(nil))
			p.survey.forget()
		}
		return provision.Row{}, io.EOF
	}
	if err != nil {
		return provision.Row{}, err
	}
	out := provision.Row{Line: row.Line, Read: p.read}
	if row.Problem != nil {
		out.Problems = []provision.Problem{{Line: row.Problem.Line, Column: row.Problem.Column, Reason: row.Problem.Reason}}
		p.survey.row(row)
		return out, nil
	}
	result, err := p.mapper.Map(row.Fields)
	if err != nil {
		return out, fmt.Errorf("line %d: %w", row.Line, err)
	}
	if result.Problem != "" {
		out.Problems = []provision.Problem{{Reason: result.Problem}}
	}
	p.survey.row(row)
	p.survey.result(result)
	for len(p.values) < len(result.Assertions) {
		p.values = append(p.values, nil)
	}
	for i, a := range result.Assertions {
		p.values[i] = wire.AppendAssertion(p.values[i][:0], a)
		if problem := p.look(row.Line, a, p.values[i]); problem != "" {
			out.Problems = append(out.Problems, provision.Problem{Reason: problem})
		}
	}
	out.Values = p.values[:len(result.Assertions)]
	return out, nil
}

// look adds a record to the survey, and says what is wrong with it beside what S3 says.
func (p *pass) look(line int64, a ledger.Assertion, value []byte) string {
	if p.survey == nil {
		return ""
	}
	partition, routed := p.owner.Manifest.Config.Route(a.Key)
	p.survey.record(a, routed)
	if len(p.survey.First) < Shown {
		p.survey.First = append(p.survey.First, Sample{Line: line, Partition: int32(partition), Routed: routed, Value: bytes.Clone(value)})
	}
	return p.survey.repeated(a)
}
