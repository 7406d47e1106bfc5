package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// empty is a source in which nothing ever arrives: its first poll returns, later ones wait for their context.
type empty struct {
	polled chan struct{}
	after  func() // between the first poll's dispatch and the next poll
	sought chan ledger.Frontier
}

func (e *empty) Poll(ctx context.Context) ([]broker.Fetched, error) {
	select {
	case <-e.polled:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		close(e.polled)
		return nil, nil
	}
}

func (e *empty) AllowRebalance() {
	if e.after != nil {
		e.after()
		e.after = nil
	}
}

func (e *empty) Seek(_ ledger.Partition, at ledger.Frontier) { e.sought <- at }

func (e *empty) Hold(ledger.Partition, bool) {}

func (e *empty) Close(context.Context) {}

// S12: a partition that claimed again after a promotion is sought to its row's position although no record arrives, also
// where it says so just after a poll was dispatched.
func TestS12SeekNeedsNoRecord(t *testing.T) {
	s := newStage(t, 1, false)
	ctx, cancel := context.WithCancel(s.ctx())
	o := s.options(s.store)
	r := newRunner(ctx, &o)
	e := &empty{polled: make(chan struct{}), sought: make(chan ledger.Frontier, 1)}
	e.after = func() {
		r.life.running[0].in.restart(7)
		r.wakePoll()
	}
	r.join(e)
	r.life.Assigned(ctx, []ledger.Partition{0})
	if _, err := r.life.Positions(ctx, []ledger.Partition{0}); err != nil {
		t.Fatal(err)
	}
	r.wg.Go(func() { _ = r.poll() })
	select {
	case at := <-e.sought:
		if at != 7 {
			t.Errorf("sought %d, want 7", at)
		}
	case <-time.After(10 * time.Second):
		t.Error("no seek")
	}
	cancel()
	r.life.Close()
	r.cancel()
	r.wg.Wait()
}

// S12: claims whose replies are all lost end the worker with exhausted retries, not with an unknown outcome.
func TestS12UnknownClaimsAreExhausted(t *testing.T) {
	s := newStage(t, 1, true)
	s.store.onClaim = func(int) error { return errLost }
	err := s.run(s.options(s.store)).wait(10 * time.Second)
	if !errors.Is(err, ErrRetries) || errors.Is(err, store.ErrCommitUnknown) {
		t.Fatalf("error %v", err)
	}
	if n := s.store.count(func() int { return s.store.claims }); n != MaxAttempts {
		t.Fatalf("%d attempts", n)
	}
}

// S12: a partition whose claim was never tried, because others took the budget, says so.
func TestS12ClaimOutOfBudget(t *testing.T) {
	s := newStage(t, 1, true)
	o := s.options(s.store)
	r := newRunner(s.ctx(), &o)
	defer r.cancel()
	_, err := r.life.claim(0, time.Now().Add(-RetryBudget))
	if !errors.Is(err, ErrRetries) || !strings.Contains(err.Error(), "budget") || s.store.claims != 0 {
		t.Fatalf("error %v after %d claims", err, s.store.claims)
	}
}
