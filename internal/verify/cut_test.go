package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/store"
	"amends/internal/verify"
)

// S10: a position row that a bound namespace lacks is a difference that is named, in every mode.
func TestSC26MissingPositionRowIsDrift(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*store.PartitionState){
		"the row of the relay's position is missing":                  func(s *store.PartitionState) { s.Relay = nil },
		"the row of the view's position is missing":                   func(s *store.PartitionState) { s.View = nil },
		"the rows of the relay's and the view's position are missing": func(s *store.PartitionState) { s.Relay, s.View = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modes(t, func(t *testing.T, set func(*verify.Job)) {
				w := worked(t)
				j := job(w)
				set(j)
				j.Store = tampered{Snapshots: w.NS, state: func(s *store.PartitionState) {
					if s.Partition == 0 {
						lose(s)
					}
				}}
				began := time.Now()
				r := run(t, j)
				want(t, r, verify.Drift)
				if r.Differences != 1 || r.First.What != verify.Row || r.First.Partition != 0 || r.First.Detail != name {
					t.Errorf("%d differences, first %+v", r.Differences, r.First)
				}
				if time.Since(began) > budget/2 {
					t.Error("it waited for what cannot come")
				}
			})
		})
	}
}

// unreadable is a source with a batch that no reader can read.
type unreadable struct{ verify.Reader }

func (unreadable) ReadTo(context.Context, ledger.Partition, ledger.Frontier, ledger.Frontier, func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	return 0, fmt.Errorf("%w: offsets 3..4", broker.ErrUnreadable)
}

func TestSC24UnreadableHistoryIsUnavailable(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, set func(*verify.Job)) {
		w := worked(t)
		j := job(w)
		set(j)
		source := j.Source
		j.Source = func() (verify.Reader, error) {
			r, err := source()
			return unreadable{r}, err
		}
		r := run(t, j)
		want(t, r, verify.Unavailable)
		if r.Reasons[0].Code != verify.HistoryUnreadable {
			t.Errorf("%+v", r.Reasons)
		}
	})
}

// counted counts how often a partition's source is read from its start, and whether a snapshot was open then.
type counted struct {
	verify.Reader
	open   *atomic.Bool
	starts *atomic.Int32
	inside *atomic.Int32
}

func (c counted) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	if p == 0 && from == 0 && end > 0 {
		c.starts.Add(1)
		if c.open.Load() {
			c.inside.Add(1)
		}
	}
	return c.Reader.ReadTo(ctx, p, from, end, fn)
}

// lagging shows, from the second snapshot on and for as many as told, a view that lacks one output more.
type lagging struct {
	verify.Snapshots
	open  *atomic.Bool
	seen  *atomic.Int32
	lacks int32
}

type laggingSnapshot struct {
	store.Snapshot
	behind bool
}

func (l lagging) Snapshot(ctx context.Context, fn func(store.Snapshot) error) error {
	n := l.seen.Add(1)
	return l.Snapshots.Snapshot(ctx, func(s store.Snapshot) error {
		l.open.Store(true)
		defer l.open.Store(false)
		return fn(laggingSnapshot{s, n > 1 && n <= 1+l.lacks})
	})
}

func (s laggingSnapshot) Partitions(ctx context.Context) ([]store.PartitionState, error) {
	states, err := s.Snapshot.Partitions(ctx)
	if err == nil && s.behind {
		states[0].Owned.Frontier++
		states[0].Owned.Sequence++
	}
	return states, err
}

// S10: a view that was at the frontier, past records without outputs, and then lacks an output takes the cut back. The
// source is not read again for it, and never from its start while a snapshot is open.
func TestSC26CutThatMovesBackReadsNothingTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lacks, starts int32
		end           ledger.Frontier
	}{
		"for a moment": {lacks: 3, starts: 1, end: 6},
		"for good":     {lacks: 1 << 20, starts: 2, end: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worked(t)
			w.Values(t, pipelinetest.Correction...) // a duplicate: no output
			w.Settle(t)
			j := job(w)
			j.Live = true
			var open atomic.Bool
			var seen, starts, inside atomic.Int32
			j.Store = lagging{w.NS, &open, &seen, c.lacks}
			source := j.Source
			j.Source = func() (verify.Reader, error) {
				r, err := source()
				return counted{r, &open, &starts, &inside}, err
			}
			r := run(t, j)
			want(t, r, verify.Pass)
			if r.Boundary[0].SourceEnd != c.end {
				t.Errorf("compared at %d, want %d", r.Boundary[0].SourceEnd, c.end)
			}
			if starts.Load() != c.starts || inside.Load() != 0 {
				t.Errorf("read from the start %d times, %d of them with a snapshot open; want %d", starts.Load(), inside.Load(), c.starts)
			}
		})
	}
}

// A quiesced run only waits for a cut that moved back below its mark, and says so when its budget ends.
func TestSC26CutBelowTheMarkIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := worked(t)
	w.Values(t, pipelinetest.Correction...)
	w.Settle(t)
	j := job(w)
	j.Timeout = 3 * time.Second
	var open atomic.Bool
	var seen, starts, inside atomic.Int32
	j.Store = lagging{w.NS, &open, &seen, 1 << 20}
	source := j.Source
	j.Source = func() (verify.Reader, error) {
		r, err := source()
		return counted{r, &open, &starts, &inside}, err
	}
	r, err := j.Run(t.Context())
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	want(t, r, verify.Incomplete)
	if starts.Load() != 1 {
		t.Errorf("read from the start %d times", starts.Load())
	}
}
