package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"amends/internal/sim"
	"amends/internal/sim/choice"
	"amends/internal/sim/fault"
)

// Options of a run. Schedules and Threads are 1 or more.
type Options struct {
	Seed      uint64 // of the first schedule; the next have the following
	Schedules int
	Threads   int
	Floor     int64   // of each kind of fault
	Distinct  int     // schedules with different traces
	Events    float64 // a schedule, on average
}

// Report is what a run executed.
type Report struct {
	Failures  []Failure
	Faults    fault.Counts
	Elapsed   time.Duration
	Schedules int
	Distinct  int
	Events    int64
}

// Failure is one schedule in which something did not hold.
type Failure struct {
	Answers []byte // that show it, as few as were found
	Text    string
	Seed    uint64
}

// FloorError says of what a run executed too little.
type FloorError struct{ Below []string }

// Error lists what was below its floor.
func (e *FloorError) Error() string { return "below the floor: " + strings.Join(e.Below, ", ") }

// FailedError says that something did not hold.
type FailedError struct{ First *Failure }

// Error names the first failure.
func (e *FailedError) Error() string { return fmt.Sprintf("seed %d: %s", e.First.Seed, e.First.Text) }

const (
	batch        = 64    // schedules that a thread takes at a time
	mostFailures = 5     // after which a run ends
	shrinkBudget = 3_000 // schedules
	gcPercent    = 400   // schedules are small and their garbage is all there is
)

// run is one run.
type run struct {
	corpus *sim.Corpus
	report *Report
	hashes map[uint64]struct{}
	err    error
	next   uint64
	end    uint64
	mu     sync.Mutex // guards all but corpus
}

// Run plays schedules until all are played, some failed, or ctx ends. Beside ctx's error it fails as doc.go says, with
// the report all the same.
func Run(ctx context.Context, corpus *sim.Corpus, o Options) (*Report, error) {
	began := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	r := &run{corpus: corpus, report: &Report{}, hashes: make(map[uint64]struct{}, o.Schedules), next: o.Seed, end: o.Seed + uint64(o.Schedules)}
	var wg sync.WaitGroup
	for range o.Threads {
		wg.Go(func() { r.work(ctx) })
	}
	wg.Wait()
	slices.SortFunc(r.report.Failures, func(a, b Failure) int { return int(int64(a.Seed - b.Seed)) })
	r.report.Distinct, r.report.Elapsed = len(r.hashes), time.Since(began)
	switch {
	case r.err != nil:
		return r.report, r.err
	case len(r.report.Failures) > 0:
		return r.report, &FailedError{First: &r.report.Failures[0]}
	case ctx.Err() != nil:
		return r.report, ctx.Err()
	}
	return r.report, o.floors(r.report)
}

// take returns the next seeds to play, none when the run is over.
func (r *run) take() (from, to uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || len(r.report.Failures) >= mostFailures {
		return 0, 0
	}
	from, to = r.next, min(r.next+batch, r.end)
	r.next = to
	return from, to
}

func (r *run) work(ctx context.Context) {
	pick := choice.Random(0)
	var hashes []uint64
	for ctx.Err() == nil {
		from, to := r.take()
		if from == to {
			return
		}
		var part Report
		var failed error
		hashes = hashes[:0]
		for seed := from; seed < to && failed == nil; seed++ {
			pick.Reset(seed)
			x, err := r.corpus.Play(pick, false)
			if err != nil {
				failed = err
				break
			}
			part.Schedules++
			part.Events += int64(x.Events)
			part.Faults.Add(&x.Faults)
			hashes = append(hashes, x.Hash)
			if x.Violation != nil {
				part.Failures = append(part.Failures, Failure{Seed: seed, Text: x.Violation.Error(), Answers: Shrink(r.corpus, x)})
			}
		}
		r.add(&part, hashes, failed)
	}
}

func (r *run) add(part *Report, hashes []uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
	r.report.Schedules += part.Schedules
	r.report.Events += part.Events
	r.report.Faults.Add(&part.Faults)
	r.report.Failures = append(r.report.Failures, part.Failures...)
	for _, h := range hashes {
		r.hashes[h] = struct{}{}
	}
}

// Shrink returns answers under which the same invariant does not hold, as few as can be found.
func Shrink(corpus *sim.Corpus, failed *sim.Result) []byte {
	return choice.Shrink(failed.Answers, shrinkBudget, func(answers []byte) bool {
		x, err := corpus.Play(choice.Replay(answers), false)
		return err == nil && x.Violation != nil && x.Violation.Invariant == failed.Violation.Invariant
	})
}

// floors compares what was executed with what had to be.
func (o *Options) floors(r *Report) error {
	var below []string
	if r.Distinct < o.Distinct {
		below = append(below, fmt.Sprintf("%d distinct schedules of %d", r.Distinct, o.Distinct))
	}
	if mean := r.mean(); mean < o.Events {
		below = append(below, fmt.Sprintf("%.1f events a schedule of %.1f", mean, o.Events))
	}
	for k := range fault.Kinds {
		if r.Faults[k] < o.Floor {
			below = append(below, fmt.Sprintf("%s %d of %d", k, r.Faults[k], o.Floor))
		}
	}
	if len(below) > 0 {
		return &FloorError{Below: below}
	}
	return nil
}

func (r *Report) mean() float64 { return float64(r.Events) / float64(max(r.Schedules, 1)) }

// Write writes the counts for people. It fails with w's error.
func (r *Report) Write(w io.Writer) error {
	seconds := max(r.Elapsed.Seconds(), 1e-9)
	text := fmt.Sprintf("schedules %d, distinct %d, %.1f events each, %.1f s, %.0f a second\n", r.Schedules, r.Distinct, r.mean(), seconds, float64(r.Schedules)/seconds)
	for k := range fault.Kinds {
		text += fmt.Sprintf("  %-16s %d\n", k, r.Faults[k])
	}
	for i := range r.Failures {
		text += fmt.Sprintf("FAILED seed %d: %s\n", r.Failures[i].Seed, r.Failures[i].Text)
	}
	_, err := io.WriteString(w, text)
	return err
}
