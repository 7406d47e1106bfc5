package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
	"amends/internal/store/memory"
)

// lost loses the reply of every claim. The row then holds that claim, or one that another made in its stead at the same epoch.
type lost struct {
	Store
	another bool
}

func (l lost) Claim(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	o, err := l.Store.Claim(ctx, p)
	if err != nil {
		return o, err
	}
	if l.another {
		o.Token.Nonce[0] ^= 1
	}
	return o, errLost
}

// S12: after a claim whose reply was lost the row's nonce, not its epoch, says whose it is.
func TestS12LostClaimIsToldByItsNonce(t *testing.T) {
	for _, another := range []bool{false, true} {
		ns, err := memory.New().Init(t.Context(), worked(t), "src")
		if err != nil {
			t.Fatal(err)
		}
		s := &shared{store: lost{ns, another}}
		o, err := s.claimRow(t.Context(), 0)
		switch {
		case another && err == nil:
			t.Errorf("a claim that another made was taken for this one's: %+v", o)
		case another && !errors.Is(err, store.ErrCommitUnknown):
			t.Errorf("error %v", err)
		case !another && (err != nil || o.Token.Epoch != 1):
			t.Errorf("its own claim: %+v %v", o, err)
		}
	}
}

// I9: a partition that is given up and comes back loads its keys again: somebody else may have committed meanwhile.
// Shows I9.
func TestI9RevokedPartitionForgetsItsStates(t *testing.T) {
	cfg := worked(t)
	ns, err := memory.New().Init(t.Context(), cfg, "src")
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Store: ns}
	var part *Partition
	life := NewLifecycle(t.Context(), &Options{Store: f, Manifest: &manifest.Manifest{Config: cfg, SourceTopic: "src"}}, &Drive{
		Start: func(p *Partition) { part = p }, Stop: func(ps []*Partition) { ps[0].Stop() }, Fail: func(err error) { t.Error(err) },
		Hold: func(ledger.Partition, bool) {}, Wake: func() {}, Clock: time.Now, Pause: pause.For})
	life.look = func(context.Context) error { return nil }
	for i := range 2 {
		life.Assigned(t.Context(), []ledger.Partition{0})
		if _, err := life.Positions(t.Context(), []ledger.Partition{0}); err != nil {
			t.Fatal(err)
		}
		at := ledger.Frontier(i)
		if err := part.Offer(broker.Fetched{Records: []ledger.SourceRecord{record(ledger.Offset(i), example[i])}, From: at, Next: at + 1}); err != nil {
			t.Fatal(err)
		}
		for part.Frontier() == at {
			if _, err := part.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		life.Revoked(t.Context(), []ledger.Partition{0})
	}
	if len(f.loads) != 2 {
		t.Fatalf("%d loads of the key: the states outlived a revoke", len(f.loads))
	}
}

// scripted is a source whose polls return one error after the other and whose releases are counted.
type scripted struct {
	errs     []error
	polls    int
	released int
	missed   []string // polls that began before the one before was released
}

func (s *scripted) Poll(context.Context) ([]broker.Fetched, error) {
	if s.released != s.polls {
		s.missed = append(s.missed, fmt.Sprintf("the poll that returned %v was not released", s.errs[s.polls-1]))
		s.released = s.polls
	}
	s.polls++
	return nil, s.errs[s.polls-1]
}

func (s *scripted) AllowRebalance()                        { s.released++ }
func (s *scripted) Seek(ledger.Partition, ledger.Frontier) {}
func (s *scripted) Hold(ledger.Partition, bool)            {}
func (s *scripted) Close(context.Context)                  {}

// SC22: whatever a poll returns, the rebalance that waits for it may go on after it: a group that is not released is stuck.
func TestSC22EveryPollIsReleased(t *testing.T) {
	s := newStage(t, 1, true)
	o := s.options(s.store)
	r := newRunner(s.ctx(), &o)
	defer r.cancel()
	src := &scripted{errs: []error{nil, broker.ErrSession, broker.ErrUnavailable, broker.ErrUnreadable, context.Canceled, errors.New("odd"), nil, broker.ErrClosed}}
	r.join(src)
	if err := r.poll(); !errors.Is(err, broker.ErrClosed) {
		t.Fatal(err)
	}
	for _, m := range src.missed {
		t.Error(m)
	}
	if src.polls != len(src.errs) || src.released != src.polls {
		t.Errorf("%d of %d polls, %d releases: the last was not released", src.polls, len(src.errs), src.released)
	}
}

// SC22, S12: a revoke does not return while a commit is in flight, and no commit follows it.
// Shows F11.
func TestSC22RevokeReturnsAfterTheCommitInFlight(t *testing.T) {
	s := newStage(t, 1, true)
	entered, leave := make(chan struct{}), make(chan struct{})
	s.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		if n == 1 {
			close(entered)
			<-leave
		}
		return true, nil
	}
	o := s.options(s.store)
	r := newRunner(s.ctx(), &o)
	defer func() { r.cancel(); r.wg.Wait() }()
	r.join(&empty{polled: make(chan struct{}), sought: make(chan ledger.Frontier, 1)})
	ctx := s.ctx()
	r.life.Assigned(ctx, []ledger.Partition{0})
	if _, err := r.life.Positions(ctx, []ledger.Partition{0}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		at := ledger.Frontier(i)
		value := receipt(fmt.Sprintf("T-%d", i), "a", "2026-01-01", 1)
		fetched := []broker.Fetched{{Records: []ledger.SourceRecord{record(ledger.Offset(i), value)}, From: at, Next: at + 1}}
		if err := r.life.Dispatch(fetched, func(ledger.Partition, ledger.Frontier) {}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-entered
		}
	}
	part := r.life.running[0]
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r.life.Revoked(ctx, []ledger.Partition{0})
	}()
	await(t, "the partition is told to stop", part.stopping) // else the commit in flight may end before
	select {
	case <-returned:
		t.Error("the revoke returned while a commit was in flight")
	case <-time.After(300 * time.Millisecond):
	}
	close(leave)
	<-returned
	time.Sleep(50 * time.Millisecond)
	if n := s.store.count(func() int { return len(s.store.commits) }); n != 1 {
		t.Errorf("%d commits, want only the one in flight", n)
	}
}
