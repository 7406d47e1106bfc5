package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/store/memory"
)

// A worker that was overtaken while its commit failed ends as fenced, whatever the commit failed with; one whose last commit
// was acknowledged, or that nobody has replaced, joins again.
func TestLostPartitionWhoseCommitFailedIsFenced(t *testing.T) {
	for name, c := range map[string]struct {
		commit    error
		overtaken bool
		want      error
	}{
		"failed and overtaken":       {store.ErrUnavailable, true, store.ErrFence},
		"failed and not overtaken":   {store.ErrUnavailable, false, nil},
		"acknowledged and overtaken": {nil, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := worked(t)
			ns, err := memory.New().Init(t.Context(), cfg, "src")
			if err != nil {
				t.Fatal(err)
			}
			f := &faulty{Store: ns, onCommit: func(int, *ledger.Batch) (bool, error) { return c.commit == nil, c.commit }}
			var part *Partition
			var ended error
			life := NewLifecycle(t.Context(), &Options{Store: f, Manifest: &manifest.Manifest{Config: cfg, SourceTopic: "src"}}, &Drive{
				Start: func(p *Partition) { part = p }, Stop: func(ps []*Partition) { ps[0].Stop() }, Fail: func(err error) { ended = err },
				Hold: func(ledger.Partition, bool) {}, Wake: func() {}, Clock: time.Now, Pause: pause.For})
			life.look = func(context.Context) error { return nil }
			life.Assigned(t.Context(), []ledger.Partition{0})
			if _, err := life.Positions(t.Context(), []ledger.Partition{0}); err != nil {
				t.Fatal(err)
			}
			if err := part.Offer(broker.Fetched{Records: []ledger.SourceRecord{record(0, example[0])}, Next: 1}); err != nil {
				t.Fatal(err)
			}
			for range 3 { // fetch, decide, commit
				if _, err := part.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if c.overtaken {
				if _, err := ns.Claim(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			life.Lost(t.Context(), []ledger.Partition{0})
			if !errors.Is(ended, c.want) || c.want == nil && ended != nil {
				t.Fatalf("ended with %v, want %v", ended, c.want)
			}
			if len(f.commits) != 1 {
				t.Fatalf("%d commits", len(f.commits))
			}
		})
	}
}

// A member whose session was lost waits for the group until the next assignment, also one without partitions. What a late
// poll tells of a session before that assignment is no wait: nothing would end it.
func TestALostSessionIsWaitedForUntilTheNextAssignment(t *testing.T) {
	for name, c := range map[string]struct {
		again  bool // assigned before the poll tells of the lost session
		reason string
	}{
		"told before the next assignment": {false, "group: " + broker.ErrSession.Error()},
		"told after the next assignment":  {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1, true)
			o := s.options(s.store)
			var reason string
			o.Ready = func(_ bool, why string) { reason = why }
			r := newRunner(s.ctx(), &o)
			defer r.cancel()
			r.join(&scripted{errs: []error{broker.ErrSession, broker.ErrClosed}})
			r.life.Assigned(s.ctx(), nil)
			if reason != "" {
				t.Fatalf("assigned, and waits for %s", reason)
			}
			r.life.Lost(s.ctx(), nil)
			if reason != "group: "+errSession.Error() {
				t.Fatalf("lost its session, and waits for %q", reason)
			}
			if c.again {
				r.life.Assigned(s.ctx(), nil)
			}
			if err := r.poll(); !errors.Is(err, broker.ErrClosed) {
				t.Fatal(err)
			}
			if reason != c.reason {
				t.Errorf("waits for %q, want %q", reason, c.reason)
			}
			r.life.Assigned(s.ctx(), nil)
			if reason != "" {
				t.Errorf("assigned, and waits for %s", reason)
			}
		})
	}
}
