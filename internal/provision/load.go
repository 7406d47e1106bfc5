package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
)

// identityEvery bounds the age of the look at the source topic that a load trusts (S9).
const identityEvery = 2 * time.Second

// ErrChanged: the source file changed between validation and publication. What was validated and published before stays.
var ErrChanged = errors.New("the source file changed while it was loaded")

// RefusedFile is a source file with bad lines; nothing of it was published (exit 2).
type RefusedFile struct {
	Codes    map[string]int64 // problems by code, "" where the format itself is broken
	Path     string
	Problems []Problem // the first few
	Count    int64     // of bad lines
}

func (e *RefusedFile) Error() string {
	return fmt.Sprintf("refused %s, nothing was published; bad lines: %d, the first at %s", e.Path, e.Count, e.Problems[0])
}

// LoadError is a load that ended before the end of its file. Acknowledged is the last line up to which every line is
// acknowledged, 0 for none. Running the load again is safe: what is there already becomes DUPLICATE evidence.
type LoadError struct {
	Err          error
	Path         string
	Acknowledged int64
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("load %s: %v; last acknowledged line %d; running the same load again is safe", e.Path, e.Err, e.Acknowledged)
}

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// Coordinates are what a load reports of one acknowledged record. TxnID is "" and Revision 0 for a raw record that is no
// valid assertion.
type Coordinates struct {
	TxnID     string
	Revision  ledger.Revision
	Offset    ledger.Offset
	Line      int64
	Partition ledger.Partition
}

// Publisher publishes to the source topic; after an error it is closed and never used again.
type Publisher interface {
	Produce(ctx context.Context, p ledger.Partition, messages []broker.Message) ([]ledger.Offset, error)
	Close()
}

// Guard is the loader's guard: one load or quiesced verification of a source incarnation at a time (S1).
type Guard interface {
	Check(ctx context.Context) error
	Release(ctx context.Context) error
}

// Load publishes a source file. Guard and Publish are called only after the whole file was validated.
type Load struct {
	Manifest *manifest.Manifest
	Topics   Describer
	Guard    func(ctx context.Context) (Guard, error)
	Publish  func() (Publisher, error)
	Emit     func([]Coordinates) error // called with the records of each page, in file order
	Options
	Path   string
	Format Format
}

// Options are what a load can do without.
type Options struct {
	// Rows opens a file of another format, twice; Path then only names it and Format is not looked at.
	Rows func() (*Rows, error)
	// Validated is called when the whole file was found good, with the number of its records. What it returns is a line:
	// records up to it are not published. Its error ends the load before anything is published.
	Validated func(records int64) (after int64, err error)
	// Acknowledged is called after each page with the last line up to which every line is acknowledged.
	Acknowledged func(line int64) error
	// Progress is called after each page: stage "check" counts bytes, stage "publish" records.
	Progress func(stage string, done, total int64)
	// Problems is how many bad lines a refusal shows, 10 if it is 0.
	Problems int
}

// plan is what the first pass found: each page, and what there is to publish.
type plan struct {
	pages   []mark
	records int64
	after   int64 // lines up to it are published already
}

// mark is how the second pass knows a page again.
type mark struct {
	sum   sum
	first int64 // number of its first line, which the page before may end with
}

// Check validates all of the file and returns the number of its records. Nothing is published.
func (l *Load) Check(ctx context.Context) (records int64, err error) {
	p, err := l.validate(ctx)
	if err != nil {
		return 0, err
	}
	return p.records, nil
}

// Run validates all of the file, takes the guard, checks the source's identity and publishes page by page, in file order
// within each partition. The guard is held until the publisher is closed. It returns how many records are acknowledged,
// those of pages before a failure included.
func (l *Load) Run(ctx context.Context) (records int64, err error) {
	plan, err := l.validate(ctx)
	if err != nil {
		return 0, err
	}
	if l.Validated != nil {
		if plan.after, err = l.Validated(plan.records); err != nil {
			return 0, err
		}
	}
	guard, err := l.Guard(ctx)
	if errors.Is(err, store.ErrServiceBusy) {
		return 0, fmt.Errorf("%s is busy: another load, an import or a quiesced verification of it runs; run this again when that has ended: %w", l.Manifest.SourceTopic, err)
	}
	if err != nil {
		return 0, fmt.Errorf("take the loader's guard of %s: %w", l.Manifest.Config.SourceIncarnation, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, guard.Release(ctx))
	}()
	if _, err := CheckSource(ctx, l.Topics, l.Manifest); err != nil {
		return 0, err
	}
	publisher, err := l.Publish()
	if err != nil {
		return 0, fmt.Errorf("open producer: %w", err)
	}
	defer publisher.Close()
	s := second{Load: l, guard: guard, to: publisher, plan: plan, line: plan.after}
	if err := s.publish(ctx); err != nil {
		return s.records, &LoadError{Path: l.Path, Acknowledged: s.line, Err: err}
	}
	return s.records, nil
}

// validate reads the whole file and returns the checksum of each page.
func (l *Load) validate(ctx context.Context) (*plan, error) {
	pages, err := l.pages()
	if err != nil {
		return nil, err
	}
	defer pages.close()
	var out plan
	refused := &RefusedFile{Path: l.Path, Codes: map[string]int64{}}
	show := l.Problems
	if show == 0 {
		show = maxProblems
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("check %s: %w; nothing was published", l.Path, err)
		}
		p, err := pages.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		out.pages, out.records = append(out.pages, mark{p.sum, p.first}), out.records+int64(len(p.records))
		for _, problem := range p.problems {
			refused.Codes[problem.Code]++
		}
		refused.Count += int64(len(p.problems))
		refused.Problems = append(refused.Problems, p.problems[:min(len(p.problems), show-len(refused.Problems))]...)
		l.progress("check", p.read, pages.size)
	}
	if refused.Count > 0 {
		return nil, refused
	}
	return &out, nil
}

func (l *Load) progress(stage string, done, total int64) {
	if l.Progress != nil {
		l.Progress(stage, done, total)
	}
}

// pages is one pass over a file.
type pages struct {
	next  func() (page, error) // io.EOF after the last
	close func()
	size  int64 // of the file in bytes
}

func (l *Load) pages() (*pages, error) {
	if l.Rows != nil {
		return l.foreign()
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, &FileError{Err: err}
	}
	return &pages{next: newPager(f, l.Format.parser(l.Manifest.Config)).next, close: func() { _ = f.Close() }, size: info.Size()}, nil
}

func (l *Load) open() (*os.File, error) {
	f, err := os.OpenFile(l.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
	if err != nil {
		return nil, &FileError{Err: err}
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; it is read twice: first validated, then published", l.Path)
	}
	if err != nil {
		_ = f.Close()
		return nil, &FileError{Err: err}
	}
	return f, nil
}

// FileError is a source file that cannot be opened or is not a regular one (exit 2).
type FileError struct{ Err error }

func (e *FileError) Error() string { return fmt.Sprintf("open source file: %v", e.Err) }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// second is the second pass. Line is the last line up to which all lines are acknowledged, records how many are.
type second struct {
	*Load
	guard   Guard
	to      Publisher
	plan    *plan
	looked  time.Time // at the source topic
	line    int64
	records int64
}

func (s *second) publish(ctx context.Context) error {
	pages, err := s.pages()
	if err != nil {
		return err
	}
	defer pages.close()
	s.looked = time.Now()
	passed := int64(0)
	for i, want := range s.plan.pages {
		p, err := pages.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || p.sum != want.sum {
			return fmt.Errorf("%w, at line %d or after it", ErrChanged, p.first)
		}
		passed += int64(len(p.records))
		p.records = slices.DeleteFunc(p.records, func(r record) bool { return r.line <= s.plan.after })
		if err := s.check(ctx); err != nil {
			return err
		}
		last, err := s.publishPage(ctx, p)
		s.line = max(s.line, s.ended(p, last, i+1))
		if s.Acknowledged != nil {
			err = errors.Join(err, s.Acknowledged(s.line))
		}
		if err != nil {
			return err
		}
		s.progress("publish", passed, s.plan.records)
	}
	if _, err := pages.next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it grew past line %d", ErrChanged, s.line)
	}
	_, err = CheckSource(ctx, s.Topics, s.Manifest)
	return err
}

// ended returns the last line up to last that has ended with the page: the next page may go on with its last line.
func (s *second) ended(p page, last int64, next int) int64 {
	if next == len(s.plan.pages) || last < s.plan.pages[next].first {
		return last
	}
	for i := len(p.records) - 1; i >= 0; i-- {
		if line := p.records[i].line; line < s.plan.pages[next].first {
			return line
		}
	}
	return 0
}

// check looks at the guard and, now and then, at the source topic.
func (s *second) check(ctx context.Context) error {
	if err := s.guard.Check(ctx); err != nil {
		return fmt.Errorf("check the loader's guard: %w", err)
	}
	if time.Since(s.looked) < identityEvery {
		return nil
	}
	if _, err := CheckSource(ctx, s.Topics, s.Manifest); err != nil {
		return err
	}
	s.looked = time.Now()
	return nil
}

// maxProduces bounds the partitions that one page publishes to at the same time.
const maxProduces = 16

// publishPage publishes one page, each partition in file order, and emits what was acknowledged in file order. It
// returns the last line up to which the page is acknowledged, 0 when its first line is not.
func (s *second) publishPage(ctx context.Context, p page) (int64, error) {
	byPartition := map[ledger.Partition][]int{}
	for i := range p.records {
		byPartition[p.records[i].partition] = append(byPartition[p.records[i].partition], i)
	}
	offsets := make([]ledger.Offset, len(p.records))
	for i := range offsets {
		offsets[i] = -1
	}
	var g errgroup.Group
	g.SetLimit(maxProduces)
	for partition, indexes := range byPartition {
		g.Go(func() error {
			messages := make([]broker.Message, len(indexes))
			for n, i := range indexes {
				messages[n] = p.records[i].message
			}
			got, err := s.to.Produce(ctx, partition, messages)
			for n := range got {
				offsets[indexes[n]] = got[n]
			}
			return err
		})
	}
	err := g.Wait()
	acknowledged, last, whole := make([]Coordinates, 0, len(p.records)), int64(0), true
	before := int64(0) // the last line before the one at hand
	for i, r := range p.records {
		if i > 0 && p.records[i-1].line != r.line {
			before = p.records[i-1].line
		}
		if offsets[i] < 0 {
			if whole && last == r.line { // another record of this line is there
				last = before
			}
			whole = false
			continue
		}
		if whole {
			last = r.line
		}
		acknowledged = append(acknowledged, Coordinates{TxnID: r.txnID, Revision: r.revision, Offset: offsets[i], Line: r.line, Partition: r.partition})
	}
	s.records += int64(len(acknowledged))
	return last, errors.Join(err, s.Emit(acknowledged))
}
