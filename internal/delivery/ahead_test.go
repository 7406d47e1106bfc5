package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
	"amends/internal/store"
)

// slowCommits makes ApplyViewInput last until a number of reads was made beside it.
type slowCommits struct {
	delivery.ViewStore
	reads <-chan struct{}
	fail  func(n int) error // before or instead of the n-th commit
	n     int
}

func (s *slowCommits) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	s.n++
	select {
	case <-s.reads:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.fail != nil {
		if err := s.fail(s.n); err != nil {
			return err
		}
	}
	return s.ViewStore.ApplyViewInput(ctx, l, page)
}

// oneByOne gives one record a poll, and tells of every poll.
type oneByOne struct {
	delivery.Reader
	reads  chan<- struct{}
	queue  []broker.Fetched
	polled bool
	end    error // of the poll after the last record, once
}

func (o *oneByOne) Poll(ctx context.Context) ([]broker.Fetched, error) {
	select {
	case o.reads <- struct{}{}:
	default:
	}
	for len(o.queue) == 0 {
		if o.end != nil && o.polled {
			err := o.end
			o.end = nil
			return nil, err
		}
		fetched, err := o.Reader.Poll(ctx)
		if err != nil {
			return nil, err
		}
		o.polled = true
		for _, f := range fetched {
			for i, r := range f.Records {
				next := ledger.Frontier(r.Offset) + 1
				o.queue = append(o.queue, broker.Fetched{Partition: f.Partition, Records: f.Records[i : i+1], Next: next, Stable: ledger.Offset(next)})
			}
		}
	}
	f := o.queue[0]
	o.queue = o.queue[1:]
	return []broker.Fetched{f}, nil
}

// aheadWorld has the worked example published and returns options of a view that reads on beside its commits.
func aheadWorld(t *testing.T, fail func(int) error, end error) (*world, delivery.ViewOptions) {
	t.Helper()
	w := newWorld(t, twoPartitions)
	w.publish(t, 0, widgetKey, workedEnvelopes()...)
	reads := make(chan struct{}, 100)
	o := w.viewOptions()
	o.Ahead = true
	o.Store = &slowCommits{ViewStore: w.ns, reads: reads, fail: fail}
	open := o.Topic.NewReader
	o.Topic.NewReader = func() (delivery.Reader, error) {
		r, err := open()
		return &oneByOne{Reader: r, reads: reads, end: end}, err
	}
	return w, o
}

// TestViewReadsOnBesideACommit: what is read beside a commit is decided after it, whatever became of the commit (S9, S12).
func TestViewReadsOnBesideACommit(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(int) error{
		"every commit succeeds":         nil,
		"an attempt is tried again":     func(n int) error { return map[int]error{1: errors.New("deadlock")}[n] },
		"the first is not known at all": func(n int) error { return map[int]error{1: fmt.Errorf("reply lost: %w", store.ErrCommitUnknown)}[n] },
		"versions are refused once":     func(n int) error { return map[int]error{2: fmt.Errorf("a version: %w", store.ErrProtocol)}[n] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o := aheadWorld(t, fail, nil)
			o.Pause = func(context.Context, time.Duration) error { return nil }
			if err := w.materialize(t, o, w.lease(t, store.View, 0, "a")); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
				t.Fatal(d)
			}
			if pos := w.viewAt(t, 0); pos.Output != 11 || pos.Sequence != 11 || pos.Cause != 4 {
				t.Fatalf("%+v", pos)
			}
		})
	}
}

// TestViewReportsAReadThatFailedBesideACommit: what was committed stays, and the failure of the read is not lost.
func TestViewReportsAReadThatFailedBesideACommit(t *testing.T) {
	t.Parallel()
	want := &broker.RangeError{Topic: "output", Position: 11, Start: 12}
	w, o := aheadWorld(t, nil, want)
	var got *broker.RangeError
	s := delivery.NewViewStepper(o, w.lease(t, store.View, 0, "a"))
	defer s.Close()
	if err := settle(t, s, func(delivery.Progress) bool { return false }); !errors.As(err, &got) || got != want {
		t.Fatal(err)
	}
	if d := cmp.Diff(workedRows, w.state(t, 0).show()); d != "" {
		t.Fatal(d)
	}
}
