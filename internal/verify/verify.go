package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
)

// ErrUnbound: the manifest has no output topic to verify (exit 2).
var ErrUnbound = errors.New("the manifest is not bound to an output topic: bind it with output create, which prints the bound manifest")

// Limits of a verification.
const (
	DefaultTimeout = 60 * time.Second // a verification's budget unless told
	grace          = 20 * time.Second // past the budget, to say what is missing
	lookEvery      = 50 * time.Millisecond
	lookAtMost     = 250 * time.Millisecond
	patience       = 2 * time.Second // for a view to come back to what the oracle holds, before the source is read again
	maxTail        = 100_000         // source offsets read while the snapshot is open
)

// Topics looks at topics.
type Topics interface {
	Topic(ctx context.Context, name string) (broker.Topic, error)
	// Stable returns the last stable offsets by partition: what read-committed readers may see ends there.
	Stable(ctx context.Context, topic string) ([]ledger.Offset, error)
}

// Reader reads a partition's visible records from one position up to another (broker.Reader).
type Reader interface {
	ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error)
	Close()
}

// Snapshots reads one consistent state of the namespace at a time.
type Snapshots interface {
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
}

// Guard is the loader's guard, held (S1).
type Guard interface {
	Release(ctx context.Context) error
}

// Job is one verification. Manifest is bound and the namespace exists with its digest.
type Job struct {
	Manifest *manifest.Manifest
	Topics   Topics
	Store    Snapshots
	Source   func() (Reader, error)                   // of the source topic's incarnation
	Output   func() (Reader, error)                   // of the output topic's; only a deep run calls it
	Guard    func(ctx context.Context) (Guard, error) // store.ErrServiceBusy while another holds it; only a quiesced run calls it
	Timeout  time.Duration                            // the budget, more than 0
	Live     bool
	Deep     bool
	// Progress, if not nil, is told how many records are read, of source and output topic, and how many will be, 0 while
	// that is not known.
	Progress func(done, total int64)
}

// run is the state of one verification.
type run struct {
	*Job
	report      *Report
	prefix      *prefix
	marks       []ledger.Frontier      // quiesced: the high watermarks to reach
	compared    []store.PartitionState // of the snapshot that was compared; nil before
	skipped     []Code                 // by partition, why it was not compared
	moved       *MovedError            // nil where every partition goes on from its verified cut
	read, total int64                  // records, for Progress
	audit       bool                   // a cycle of an audit: a stopped partition does not keep the others from being compared
	changes     bool                   // and only what changed is compared
	waited      bool                   // for a cut that moved back, in vain
}

// Run verifies and returns the report, or an error for an operational failure, which has no status.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	if j.Manifest.Output == nil {
		return nil, ErrUnbound
	}
	began := time.Now()
	r := &run{Job: j, report: newReport(j.Manifest, j.Live, j.Deep)}
	reader, err := j.Source()
	if err != nil {
		return nil, fmt.Errorf("open source: %w", err)
	}
	defer reader.Close()
	r.prefix = newPrefix(j.Manifest.Config, r.watch(reader))
	budget, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	err = r.verify(ctx, budget)
	r.report.Elapsed = time.Since(began)
	return r.report, r.judge(err)
}

func newReport(m *manifest.Manifest, live, deep bool) *Report {
	mode := "quiesced"
	if live {
		mode = "live"
	}
	return &Report{Namespace: m.Config.Namespace, Mode: mode, Deep: deep}
}

// Refused is the report of a verification whose namespace exists with another configuration: UNAVAILABLE (S10).
func Refused(m *manifest.Manifest, live, deep bool, err error) *Report {
	r := newReport(m, live, deep)
	r.Status = Unavailable
	r.because(Configuration, -1, -1, -1, err.Error())
	return r
}

// judge turns the errors that are findings into UNAVAILABLE and leaves the operational ones.
func (r *run) judge(err error) error {
	var identity *broker.IdentityError
	var truncated *broker.RangeError
	var missing *topicError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &identity):
		r.unavailable(r.side(identity.Topic), err)
	case errors.As(err, &truncated):
		r.unavailable(HistoryTruncated, err)
	case errors.Is(err, broker.ErrUnreadable):
		r.unavailable(HistoryUnreadable, err)
	case errors.As(err, &missing):
		r.unavailable(r.side(missing.topic), err)
	default:
		return err
	}
	return nil
}

func (r *run) side(topic string) Code {
	if topic == r.Manifest.SourceTopic {
		return SourceIdentity
	}
	return OutputIdentity
}

// unavailable says why nothing can be established. What was found until then is not told: it may come of the same cause.
func (r *run) unavailable(code Code, err error) {
	r.restart()
	r.report.Status = Unavailable
	r.report.because(code, -1, -1, -1, err.Error())
}

// topicError is a topic that does not exist.
type topicError struct {
	topic string
	err   error
}

func (e *topicError) Error() string { return e.err.Error() }
func (e *topicError) Unwrap() error { return e.err }

// verify does all of it; budget ends the waiting, ctx everything.
func (r *run) verify(ctx, budget context.Context) error {
	if _, err := r.identity(budget); err != nil {
		return err
	}
	late, cancel := context.WithTimeout(ctx, r.Timeout+grace)
	defer cancel()
	complete := true
	if !r.Live {
		guard, err := r.takeGuard(budget)
		if err != nil {
			return err
		}
		if complete = guard != nil; complete {
			defer release(ctx, guard)
		}
	}
	source, err := r.identity(late)
	if err != nil {
		return err
	}
	if !r.Live {
		r.marks = make([]ledger.Frontier, len(source.End))
		for p, end := range source.End {
			r.marks[p] = ledger.Frontier(end)
		}
	}
	if complete {
		if complete, err = r.compareInBudget(budget); err != nil {
			return err
		}
	}
	if !complete {
		if err := r.incomplete(late); err != nil {
			return err
		}
	}
	if _, err := r.identity(late); err != nil {
		return err
	}
	r.count()
	return nil
}

// compareInBudget reads, waits and compares; false when the budget ended first or a partition is stopped.
func (r *run) compareInBudget(budget context.Context) (bool, error) {
	err := r.reach(budget)
	if err == nil {
		err = r.compare(budget)
	}
	switch {
	case errors.Is(err, errStopped), err != nil && errors.Is(budget.Err(), context.DeadlineExceeded):
		r.restart()
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// identity checks id, retention, partition count and log starts of both topics, and that the source has not gone back, and returns
// the source's (S9, S10).
func (r *run) identity(ctx context.Context) (broker.Topic, error) {
	m := r.Manifest
	source, err := r.check(ctx, m.SourceTopic, m.Config.SourceIncarnation, m.Config.Partitions)
	if err != nil {
		return source, err
	}
	if err := r.held(source); err != nil {
		return source, err
	}
	_, err = r.check(ctx, m.Output.Topic, m.Output.Incarnation, m.Output.Partitions)
	return source, err
}

// held reports whether the source still reaches to what was read of it. A topic that lost its tail gets other records at those
// offsets, and an audit, which reads none twice, would go on from what nobody can read any more.
func (r *run) held(source broker.Topic) error {
	for p, part := range r.prefix.parts {
		if part.at > ledger.Frontier(source.End[p]) {
			return fmt.Errorf("check source: %w", &broker.RangeError{Topic: source.Name, Partition: ledger.Partition(p), Position: part.at, Start: source.Start[p], End: source.End[p],
				Cause: "what had been read is gone"})
		}
	}
	return nil
}

func (r *run) check(ctx context.Context, name, incarnation string, partitions int32) (t broker.Topic, err error) {
	err = patiently(ctx, func() (err error) {
		t, err = r.Topics.Topic(ctx, name)
		return err
	})
	switch {
	case errors.Is(err, broker.ErrNoTopic):
		return t, &topicError{topic: name, err: fmt.Errorf("check topic: %w", err)}
	case err != nil:
		return t, fmt.Errorf("check topic: %w", err)
	}
	return t, broker.CheckIdentity(t, incarnation, partitions)
}

// patiently asks the broker, again while it is away, until ctx ends (S12).
func patiently(ctx context.Context, ask func() error) error {
	return pause.While(ctx, lookEvery, time.Second, func(err error) bool { return errors.Is(err, broker.ErrUnavailable) }, ask)
}

// takeGuard waits for the loader's guard within the budget; nil when a load outlasts it.
func (r *run) takeGuard(budget context.Context) (Guard, error) {
	busy := false
	for wait := lookEvery; ; wait = min(2*wait, lookAtMost) {
		g, err := r.Guard(budget)
		switch {
		case err == nil:
			return g, nil
		case errors.Is(err, store.ErrServiceBusy):
			busy = true
		case errors.Is(err, store.ErrUnavailable): // waited for, and what an attempt says that the budget's end cut off
		default:
			return nil, fmt.Errorf("take the loader's guard: %w", err)
		}
		if pause.For(budget, wait) == nil {
			continue
		}
		switch {
		case !errors.Is(budget.Err(), context.DeadlineExceeded):
			return nil, context.Cause(budget)
		case !busy:
			return nil, fmt.Errorf("take the loader's guard: %w", err)
		}
		r.report.because(LoadRunning, -1, -1, -1, "a load or another verification of this source outlasted the budget")
		return nil, nil
	}
}

func release(ctx context.Context, g Guard) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = g.Release(ctx) // the session's end releases it too
}

// count fills in what the oracle read.
func (r *run) count() {
	for i := range r.prefix.parts {
		c := r.prefix.parts[i].oracle.Counts()
		r.report.SourceRecords += c.Records
		r.report.Rejected += c.Rejected
	}
}
