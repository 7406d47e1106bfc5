package postgres_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"amends/internal/faultwire"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres"
)

// S12: what says whether an unknown commit happened is read under the row lock, so that a transaction that the server has not
// ended yet is waited for.
func TestS12PositionsAreReadUnderTheRowLock(t *testing.T) {
	for name, c := range map[string]struct {
		move string
		read func(context.Context, *postgres.Namespace) (ledger.Sequence, error)
	}{
		"partition": {"UPDATE amends.partitions SET next_sequence = 7 WHERE partition = 0", func(ctx context.Context, n *postgres.Namespace) (ledger.Sequence, error) {
			o, err := n.Observe(ctx, 0)
			return o.Sequence, err
		}},
		"relay": {"UPDATE amends.relay_progress SET next_sequence = 7, output_offset = 7 WHERE partition = 0", func(ctx context.Context, n *postgres.Namespace) (ledger.Sequence, error) {
			p, err := n.RelayPosition(ctx, 0)
			return p.Sequence, err
		}},
		"view": {"UPDATE amends.view_progress SET next_sequence = 7, output_offset = 7 WHERE partition = 0", func(ctx context.Context, n *postgres.Namespace) (ledger.Sequence, error) {
			p, err := n.ViewPosition(ctx, 0)
			return p.Sequence, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, url := openNamespace(t)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			writer := connect(t, url)
			execSQL(t, writer, "BEGIN")
			execSQL(t, writer, c.move)
			type answer struct {
				at  ledger.Sequence
				err error
			}
			answered := make(chan answer, 1)
			go func() {
				at, err := c.read(ctx, n)
				answered <- answer{at, err}
			}()
			select {
			case a := <-answered:
				t.Fatalf("read %d (%v): it did not wait for the transaction in progress", a.at, a.err)
			case <-time.After(300 * time.Millisecond):
			}
			execSQL(t, writer, "COMMIT")
			if a := <-answered; a.err != nil || a.at != 7 {
				t.Fatalf("read %d (%v), want what was committed meanwhile", a.at, a.err)
			}
		})
	}
}

// I15: what a refused commit would have quarantined is not there.
// Shows I15.
func TestI15FencedCommitLeavesNoQuarantine(t *testing.T) {
	t.Parallel()
	n, url := openNamespace(t)
	ctx := context.Background()
	old, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	now, err := n.Claim(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	batch := &ledger.Batch{Next: 1, Work: ledger.Work{Records: 1, Rejected: 1}, Decisions: []ledger.Decision{{Rejection: ledger.Malformed,
		Evidence: &ledger.Evidence{Key: []byte("k"), Value: []byte("{"), KeyLength: 1, ValueLength: 1}}}}
	rows := func() (n int) {
		if err := connect(t, url).QueryRow(ctx, "SELECT count(*) FROM amends.quarantine").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := n.Commit(ctx, old.Token, batch); !errors.Is(err, store.ErrFence) {
		t.Fatalf("got %v", err)
	}
	if left := rows(); left != 0 {
		t.Fatalf("%d quarantine rows of a refused commit", left)
	}
	if err := n.Commit(ctx, now.Token, batch); err != nil {
		t.Fatal(err)
	}
	if left := rows(); left != 1 {
		t.Fatalf("%d quarantine rows of a commit", left)
	}
}

// S12: a COMMIT that was sent is waited for, whatever becomes of its caller, and not longer than its own deadline.
// Shows F17.
func TestS12CommitHasADeadlineOfItsOwn(t *testing.T) {
	t.Run("caller gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, false)
		o, err := w.ns.Claim(w.ctx, 0)
		w.ok(err)
		ctx, cancel := context.WithCancel(w.ctx)
		w.shot = w.proxy.Arm(faultwire.Hold, 0, faultwire.Named("COMMIT"))
		go func() {
			<-w.shot.Fired()
			cancel()
			time.Sleep(200 * time.Millisecond)
			w.shot.Release()
		}()
		if err := w.ns.Commit(ctx, o.Token, testBatch(0)); err != nil {
			t.Fatalf("a COMMIT that was sent was given up with its caller: %v", err)
		}
		w.equal("frontier", w.observe().Frontier, ledger.Frontier(1))
	})
	t.Run("caller gone and no answer", func(t *testing.T) { // SC39: who is told to stop ends in time
		t.Parallel()
		w := newWorld(t, false)
		o, err := w.ns.Claim(w.ctx, 0)
		w.ok(err)
		ctx, cancel := context.WithCancel(w.ctx)
		w.shot = w.proxy.Arm(faultwire.Hold, 0, faultwire.Named("COMMIT"))
		done := make(chan error, 1)
		go func() { done <- w.ns.Commit(ctx, o.Token, testBatch(0)) }()
		<-w.shot.Fired()
		cancel()
		const limit = postgres.BlockedAfter * 7 // far less than a COMMIT's own deadline
		select {
		case err := <-done:
			if !errors.Is(err, store.ErrCommitUnknown) {
				t.Errorf("got %v", err)
			}
		case <-time.After(limit):
			t.Errorf("still waiting for a COMMIT %v after its caller was told to stop", limit)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, false)
		o, err := w.ns.Claim(w.ctx, 0)
		w.ok(err)
		w.shot = w.proxy.Arm(faultwire.Hold, 0, faultwire.Named("COMMIT"))
		done := make(chan error, 1)
		go func() { done <- w.ns.Commit(w.ctx, o.Token, testBatch(0)) }()
		const limit = postgres.BlockedAfter * 40 // session.CommitTimeout and what a busy machine takes
		select {
		case err := <-done:
			if !errors.Is(err, store.ErrCommitUnknown) {
				t.Errorf("got %v", err)
			}
			// The deadline is the context's and the connection's: whichever ends the wait first gives it its name.
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("still waiting for a COMMIT without an answer when the server ended the session: %v", err)
			}
		case <-time.After(limit):
			t.Errorf("still waiting for a COMMIT without an answer after %v", limit)
		}
	})
}
