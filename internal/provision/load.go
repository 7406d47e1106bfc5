package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
)

// identityEvery bounds the age of the look at the source topic that a load trusts (S9).
const identityEvery = 2 * time.Second

// ErrChanged: the source file changed between validation and publication. What was validated and published before stays.
var ErrChanged = errors.New("the source file changed while it was loaded")

// RefusedFile is a source file with bad lines; nothing of it was published (exit 2).
type RefusedFile struct {
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
	Path     string
	Format   Format
}

// Run validates all of the file, takes the guard, checks the source's identity and publishes page by page, in file order
// within each partition. The guard is held until the publisher is closed.
func (l *Load) Run(ctx context.Context) (records int64, err error) {
	plan, err := l.validate(ctx)
	if err != nil {
		return 0, err
	}
	guard, err := l.Guard(ctx)
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
	acknowledged, err := l.publish(ctx, plan, guard, publisher)
	if err != nil {
		return acknowledged, &LoadError{Path: l.Path, Acknowledged: acknowledged, Err: err}
	}
	return acknowledged, nil
}

// validate reads the whole file and returns the checksum of each page.
func (l *Load) validate(ctx context.Context) ([]sum, error) {
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var plan []sum
	refused := &RefusedFile{Path: l.Path}
	for pages := l.pager(f); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := pages.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		plan = append(plan, p.sum)
		refused.Count += int64(len(p.problems))
		refused.Problems = append(refused.Problems, p.problems[:min(len(p.problems), maxProblems-len(refused.Problems))]...)
	}
	if refused.Count > 0 {
		return nil, refused
	}
	return plan, nil
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

func (l *Load) pager(in io.Reader) *pager { return newPager(in, l.Format.parser(l.Manifest.Config)) }

// publish is the second pass. It returns the last line up to which all lines are acknowledged.
func (l *Load) publish(ctx context.Context, plan []sum, guard Guard, to Publisher) (int64, error) {
	f, err := l.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var done int64
	looked := time.Now()
	pages := l.pager(f)
	for _, want := range plan {
		p, err := pages.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return done, err
		}
		if err != nil || p.sum != want {
			return done, fmt.Errorf("%w, at line %d or after it", ErrChanged, p.first)
		}
		if err := guard.Check(ctx); err != nil {
			return done, fmt.Errorf("check the loader's guard: %w", err)
		}
		if time.Since(looked) >= identityEvery {
			if _, err := CheckSource(ctx, l.Topics, l.Manifest); err != nil {
				return done, err
			}
			looked = time.Now()
		}
		last, err := l.publishPage(ctx, p, to)
		if err != nil {
			return max(done, last), err
		}
		done = last
	}
	if _, err := pages.next(); !errors.Is(err, io.EOF) {
		return done, fmt.Errorf("%w: it grew past line %d", ErrChanged, done)
	}
	_, err = CheckSource(ctx, l.Topics, l.Manifest)
	return done, err
}

// maxProduces bounds the partitions that one page publishes to at the same time.
const maxProduces = 16

// publishPage publishes one page, each partition in file order, and emits what was acknowledged in file order. It
// returns the last line up to which the page is acknowledged, 0 when its first line is not.
func (l *Load) publishPage(ctx context.Context, p page, to Publisher) (int64, error) {
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
			got, err := to.Produce(ctx, partition, messages)
			for n := range got {
				offsets[indexes[n]] = got[n]
			}
			return err
		})
	}
	err := g.Wait()
	acknowledged, last, whole := make([]Coordinates, 0, len(p.records)), int64(0), true
	for i, r := range p.records {
		if offsets[i] < 0 {
			whole = false
			continue
		}
		if whole {
			last = r.line
		}
		acknowledged = append(acknowledged, Coordinates{TxnID: r.txnID, Revision: r.revision, Offset: offsets[i], Line: r.line, Partition: r.partition})
	}
	return last, errors.Join(err, l.Emit(acknowledged))
}
