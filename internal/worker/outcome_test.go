package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/memory"
)

// SC18, S12: whatever a lost reply hid, the end is the same, and a retry sends the same bytes.
func TestSC18UnknownCommit(t *testing.T) {
	for name, done := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, worked(t), 1<<20)
			b.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
				if n == 1 {
					return done, errLost
				}
				return true, nil
			}
			b.offerExample()
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			b.mustEndAsExample()
			if b.store.observes != 1 {
				t.Fatalf("%d reads under the lock, want 1", b.store.observes)
			}
			if !done {
				if len(b.store.commits) != 2 || !cmp.Equal(b.store.commits[0], b.store.commits[1]) {
					t.Fatal("the retry sent other bytes")
				}
			} else if len(b.store.commits) != 1 {
				t.Fatalf("%d commits", len(b.store.commits))
			}
			// The cache was dropped: the next record loads its key again.
			b.offer(6, record(5, example[0]))
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			if len(b.store.loads) != 2 || len(b.store.loads[1]) != 1 {
				t.Fatalf("loads %v: the states outlived an unknown outcome", b.store.loads)
			}
		})
	}
}

func TestS12UnreadableIsUnresolved(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(int, *ledger.Batch) (bool, error) { return true, errLost }
	b.store.onObserve = func(int) error { return fmt.Errorf("dial: %w", store.ErrUnavailable) }
	b.offerExample()
	err := b.settle()
	if !errors.Is(err, ErrUnresolved) || errors.Is(err, store.ErrCommitUnknown) {
		t.Fatalf("error %v, want unresolved alone", err)
	}
	if spent := b.now.Sub(time.Unix(0, 0)); spent < RetryBudget || spent > RetryBudget+SecondWait {
		t.Fatalf("gave up after %v, want the budget of %v", spent, RetryBudget)
	}
	if len(b.store.commits) != 1 {
		t.Fatalf("%d commits while the outcome was unknown", len(b.store.commits))
	}
}

func TestS12UnreadableThreeTimesIsUnresolved(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(int, *ledger.Batch) (bool, error) { return false, errLost }
	b.store.onObserve = func(int) error { return errors.New("lock timeout") }
	b.offerExample()
	if err := b.settle(); !errors.Is(err, ErrUnresolved) {
		t.Fatalf("error %v", err)
	}
	if b.store.observes != MaxAttempts {
		t.Fatalf("%d reads", b.store.observes)
	}
}

// SC19: another epoch is refused at the commit and found after an unknown one.
// Shows I17.
func TestSC19FencedAtCommitAndAfterUnknown(t *testing.T) {
	for name, answer := range map[string]error{"at the commit": nil, "after an unknown commit": errLost} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, worked(t), 1<<20)
			b.store.onCommit = func(int, *ledger.Batch) (bool, error) {
				if _, err := b.store.Store.Claim(context.Background(), 0); err != nil {
					t.Fatal(err)
				}
				return answer == nil, answer
			}
			b.offerExample()
			if err := b.settle(); !errors.Is(err, store.ErrFence) {
				t.Fatalf("error %v, want a fence", err)
			}
			if got, state := outputs(t, b.store.Store.(storeReader), 0); len(got) != 0 || state.Owned.Frontier != 0 {
				t.Fatalf("a fenced worker wrote %v", got)
			}
			if len(b.store.commits) != 1 {
				t.Fatalf("%d commits after a fence (I17)", len(b.store.commits))
			}
		})
	}
}

// S12: a promotion is claimed again and goes on from the position read.
func TestS12PromotionIsClaimedAgain(t *testing.T) {
	for name, kind := range map[string]struct {
		do  bool
		err error
	}{"noticed before": {true, nil}, "unknown, committed": {true, errLost}, "unknown, not committed": {false, errLost}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, worked(t), 1<<20)
			b.store.onCommit = func(n int, batch *ledger.Batch) (bool, error) {
				switch {
				case n > 1:
					return true, nil
				case kind.err == nil:
					b.db.Promote()
				case kind.do:
					if err := b.store.Store.Commit(context.Background(), b.part.token, batch); err != nil {
						t.Fatal(err)
					}
					b.db.Promote()
					return false, kind.err
				default:
					b.db.Promote()
				}
				return kind.do, kind.err
			}
			b.offerExample()
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			at, ok := b.part.in.sought()
			if !ok || at != b.part.Frontier() {
				t.Fatalf("seek %d %v, stands at %d", at, ok, b.part.Frontier())
			}
			b.end = at
			if at == 0 {
				b.offerExample()
			}
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			b.mustEndAsExample()
			if b.store.claims != 2 {
				t.Fatalf("%d claims", b.store.claims)
			}
		})
	}
}

// A failover that lost committed work: the worker refolds to the same bytes from the lower frontier.
// Shows I3.
func TestS12LossyPromotion(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	replica := memory.New()
	behind, err := replica.Init(context.Background(), worked(t), "src")
	if err != nil {
		t.Fatal(err)
	}
	b.offer(2, record(0, example[0]), record(1, example[1]))
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	owned, err := behind.Claim(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	first := b.store.commits[0]
	first.Decisions, first.Next, first.NextSequence = first.Decisions[:1], 1, 2
	if err := behind.Commit(context.Background(), owned.Token, &first); err != nil {
		t.Fatal(err)
	}
	replica.Promote()
	b.store.Store = behind
	b.offer(3, record(2, example[2]))
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	at, ok := b.part.in.sought()
	if !ok || at != 1 {
		t.Fatalf("seek to %d %v, want 1", at, ok)
	}
	b.end = 1
	b.offer(5, record(1, example[1]), record(2, example[2]), record(3, example[3]), record(4, example[4]))
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	got, _ := outputs(t, behind, 0)
	mustBeExample(t, got)
}

func TestS12AnythingElseIsAnIntegrityStop(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(_ int, batch *ledger.Batch) (bool, error) {
		half := *batch
		half.Decisions, half.Next, half.NextSequence = half.Decisions[:1], 1, 2
		if err := b.store.Store.Commit(context.Background(), b.part.token, &half); err != nil {
			t.Fatal(err)
		}
		return false, errLost
	}
	b.offerExample()
	if err := b.settle(); !errors.Is(err, ErrIntegrity) {
		t.Fatalf("error %v, want an integrity stop", err)
	}
}

// S12: three attempts with 100 and 200 ms between them, each deciding from fresh states.
// Shows I22.
func TestS12RetriesAreBounded(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(int, *ledger.Batch) (bool, error) { return false, errors.New("deadlock detected") }
	b.offerExample()
	if err := b.settle(); !errors.Is(err, ErrRetries) {
		t.Fatalf("error %v", err)
	}
	if len(b.store.commits) != MaxAttempts || len(b.store.loads) != MaxAttempts {
		t.Fatalf("%d commits and %d loads, want 3 each", len(b.store.commits), len(b.store.loads))
	}
	if spent := b.now.Sub(time.Unix(0, 0)); spent != FirstWait+SecondWait {
		t.Fatalf("waited %v", spent)
	}
	for i := range b.store.commits {
		if !cmp.Equal(b.store.commits[0], b.store.commits[i]) {
			t.Fatal("deciding again gave other bytes (I3)")
		}
	}
}

func TestS12TwoFailuresThenSuccess(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	b.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		if n < MaxAttempts {
			return false, errors.New("lock timeout, held by backend 42")
		}
		return true, nil
	}
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	b.mustEndAsExample()
}

// S12: a service that is away is waited for without limit, and not taken for a failure.
// Shows F10.
func TestS12AwayIsWaitedFor(t *testing.T) {
	b := newBench(t, worked(t), 1<<20)
	gone := fmt.Errorf("dial: %w", store.ErrUnavailable)
	b.store.onLoad = func(n int) error {
		if n <= 50 {
			return gone
		}
		return nil
	}
	b.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
		if n <= 50 {
			return false, gone
		}
		return true, nil
	}
	b.offerExample()
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	b.mustEndAsExample()
	if b.now.Sub(time.Unix(0, 0)) < RetryBudget {
		t.Fatal("the outage was shorter than the budget")
	}
	log := b.log.String()
	if !strings.Contains(log, "not ready") || !strings.Contains(log, "msg=ready") {
		t.Fatalf("the log does not say that the worker was not ready: %s", log)
	}
}

// S12: a worker that could not read for a moment what its commit did is ready again once it knows, whichever it was.
func TestS12ReadyAgainAfterAnUnknownCommit(t *testing.T) {
	for name, written := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, worked(t), 1<<20)
			b.store.onCommit = func(n int, _ *ledger.Batch) (bool, error) {
				if n == 1 {
					return written, errLost
				}
				return true, nil
			}
			b.store.onObserve = func(n int) error {
				if n <= 2 {
					return fmt.Errorf("dial: %w", store.ErrUnavailable)
				}
				return nil
			}
			b.offerExample()
			if err := b.settle(); err != nil {
				t.Fatal(err)
			}
			b.mustEndAsExample()
			if !strings.Contains(b.log.String(), "not ready") {
				t.Error("it did not say that it was not ready")
			}
			if why := b.part.ready.why(); why != "" {
				t.Errorf("not ready at the end because of %q", why)
			}
		})
	}
}
