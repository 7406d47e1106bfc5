package worker

import (
	"context"
	"errors"
	"fmt"
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
	case <-time.After(patience):
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
	err := s.run(s.options(s.store)).wait()
	if !errors.Is(err, ErrRetries) || errors.Is(err, store.ErrCommitUnknown) {
		t.Fatalf("error %v", err)
	}
	if n := s.store.count(func() int { return s.store.claims }); n != MaxAttempts {
		t.Fatalf("%d attempts", n)
	}
}

// bombed is a source whose first poll says that a batch cannot be read.
type bombed struct{ empty }

func (b *bombed) Poll(ctx context.Context) ([]broker.Fetched, error) {
	fetched, err := b.empty.Poll(ctx)
	if err == nil {
		err = fmt.Errorf("%w: topic src partition 0 offsets 3..4", broker.ErrUnreadable)
	}
	return fetched, err
}

// S3: a batch that is too large to read holds its partition back for as long as it is assigned, and the worker says so
// although the topic's looks succeed; it does not end, so that other partitions go on.
func TestS3UnreadableBatchIsToldAndEndsNothing(t *testing.T) {
	s := newStage(t, 1, false)
	ctx, cancel := context.WithCancel(s.ctx())
	o := s.options(s.store)
	told := make(chan string, 100)
	o.Ready = func(_ bool, why string) { told <- why }
	r := newRunner(ctx, &o)
	b := &bombed{empty{polled: make(chan struct{})}}
	r.join(b)
	r.life.Assigned(ctx, nil)
	ended := make(chan error, 1)
	go func() { ended <- r.poll() }()
	for why := ""; !strings.Contains(why, "records: batch too large"); {
		select {
		case why = <-told:
		case <-time.After(patience):
			t.Fatal("nothing was said")
		}
	}
	r.wg.Go(r.watch)
	time.Sleep(lookEvery + lookEvery/2)
	if why := r.ready.why(); !strings.Contains(why, "records:") {
		t.Errorf("not ready because of %q after a look", why)
	}
	r.life.Assigned(ctx, nil)
	if why := r.ready.why(); why != "" {
		t.Errorf("not ready because of %q after another assignment", why)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the role ended with %v", err)
	}
	r.cancel()
	r.wg.Wait()
}
