package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/store"
)

// Lifecycle is the group member of a worker: it decides which partitions may commit and from where. It starts no
// goroutine itself: start and stop, given by its owner, run and join the steps of a partition.
type Lifecycle struct {
	*shared
	start   func(*Partition)      // begins to call Step
	stop    func(ps []*Partition) // stops them all and returns when no step runs any more
	fail    func(error)           // ends the role
	pause   func(ctx context.Context, d time.Duration) error
	hold    func(ledger.Partition, bool)
	ctx     context.Context // of the role: a callback's own context outlives a revoke and proves nothing
	claimed map[ledger.Partition]store.Owned
	failed  map[ledger.Partition]error
	running map[ledger.Partition]*Partition
	mu      sync.Mutex
	closed  bool
}

var _ broker.Member = (*Lifecycle)(nil)

var errClosed = errors.New("the worker is stopping")

// Assigned claims partitions, one after the other, before it returns. What could not be claimed is told by Positions.
func (l *Lifecycle) Assigned(_ context.Context, partitions []ledger.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready.set("group", nil)
	l.ready.set("records", nil)
	if l.closed {
		return
	}
	l.release(partitions)
	began := l.clock()
	for _, p := range partitions {
		owned, err := l.claim(p, began)
		if err != nil {
			l.failed[p] = err
			continue
		}
		l.claimed[p] = owned
		l.log.Info("partition claimed", "namespace", l.cfg.Namespace, "partition", p, "epoch", owned.Token.Epoch, "frontier", owned.Frontier, "sequence", owned.Sequence)
	}
}

// claim installs an epoch: three attempts within the budget that began with the assignment. After an unknown outcome it
// claims afresh, under an assignment that is valid because the callback has not returned: an extra epoch is harmless (S12).
func (l *Lifecycle) claim(p ledger.Partition, began time.Time) (store.Owned, error) {
	err := errors.New("the budget of the assignment ended before an attempt")
	for try := range MaxAttempts {
		if try > 0 {
			if e := l.pause(l.ctx, FirstWait*time.Duration(try)); e != nil {
				return store.Owned{}, errClosed
			}
		}
		left := RetryBudget - l.clock().Sub(began)
		if left <= 0 {
			break
		}
		var owned store.Owned
		op, cancel := context.WithTimeout(l.ctx, min(OperationTimeout, left))
		owned, err = l.claimRow(op, p)
		cancel()
		switch classify(err) {
		case acknowledged:
			return owned, nil
		case fenced, terminal:
			return store.Owned{}, fmt.Errorf("claim partition %d: %w", p, err)
		}
		l.log.Warn("claim failed", "namespace", l.cfg.Namespace, "partition", p, "attempt", try+1, "error", err)
	}
	if errors.Is(err, store.ErrCommitUnknown) {
		err = store.Resolved(err) // an extra epoch is harmless: nothing is left to resolve
	}
	return store.Owned{}, fmt.Errorf("claim partition %d: %w: %w", p, ErrRetries, err)
}

// Positions reads each claimed row back, checks that the claim still stands, and starts the partition from its frontier.
// It never installs an epoch. An error makes the group assign again, which claims again: so a database that is away is
// waited for without limit.
func (l *Lifecycle) Positions(_ context.Context, partitions []ledger.Partition) (map[ledger.Partition]ledger.Frontier, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	at := make(map[ledger.Partition]ledger.Frontier, len(partitions))
	for _, p := range partitions {
		owned, err := l.observe(p)
		if err != nil {
			if l.ctx.Err() != nil {
				return nil, errClosed
			}
			if kind := classify(err); kind != away && kind != moved {
				l.fail(err)
			}
			l.ready.set("database", err)
			return nil, err
		}
		at[p] = owned.Frontier
		l.claimed[p] = owned
	}
	l.ready.set("database", nil)
	for _, p := range partitions {
		part := newPartition(l.shared, p, l.claimed[p], func(held bool) { l.hold(p, held) })
		delete(l.claimed, p)
		l.running[p] = part
		l.start(part)
	}
	return at, nil
}

// observe reads the row of a claimed partition and compares it with the claim.
func (l *Lifecycle) observe(p ledger.Partition) (store.Owned, error) {
	if err := l.failed[p]; err != nil {
		return store.Owned{}, err
	}
	if part := l.running[p]; part != nil { // asked again, as after a session that ended before it fetched
		l.release([]ledger.Partition{p})
		l.claimed[p] = store.Owned{Token: part.token}
	}
	claimed, ok := l.claimed[p]
	if !ok {
		return store.Owned{}, fmt.Errorf("position partition %d: it was not claimed", p)
	}
	op, cancel := context.WithTimeout(l.ctx, OperationTimeout)
	defer cancel()
	owned, err := l.store.Observe(op, p)
	switch {
	case err != nil:
		return store.Owned{}, fmt.Errorf("position partition %d: %w", p, err)
	case owned.Token.Server != claimed.Token.Server:
		return store.Owned{}, fmt.Errorf("position partition %d: %w", p, store.ErrServerChanged)
	case owned.Token != claimed.Token:
		return store.Owned{}, fmt.Errorf("position partition %d: epoch %d is installed, not %d: %w", p, owned.Token.Epoch, claimed.Token.Epoch, store.ErrFence)
	}
	return owned, nil
}

// Revoked stops partitions: after it returns no commit is issued for them.
func (l *Lifecycle) Revoked(_ context.Context, partitions []ledger.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(partitions)
	l.log.Info("partitions revoked", "namespace", l.cfg.Namespace, "partitions", partitions)
}

// Lost stops partitions that the group has given away: a commit in flight is resolved, and one that failed is looked after.
// A fence found so ends the role.
func (l *Lifecycle) Lost(_ context.Context, partitions []ledger.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := l.release(partitions)
	l.log.Warn("partitions lost", "namespace", l.cfg.Namespace, "partitions", partitions)
	for _, part := range ended {
		if err := l.overtaken(part); err != nil {
			l.fail(err)
		}
	}
}

// overtaken returns store.ErrFence if the last commit of an ended partition failed and another owner is installed: that
// commit would have been refused, whatever it failed with. A row that cannot be read now says nothing.
func (l *Lifecycle) overtaken(part *Partition) error {
	if !part.refused {
		return nil
	}
	op, cancel := context.WithTimeout(l.ctx, StopGrace)
	defer cancel()
	owned, err := l.store.Observe(op, part.id)
	if err != nil || owned.Token.Server != part.token.Server || owned.Token == part.token {
		return nil
	}
	return fmt.Errorf("lose partition %d: epoch %d is installed, not %d: %w", part.id, owned.Token.Epoch, part.token.Epoch, store.ErrFence)
}

// release forgets partitions and joins their steps; the caller holds mu.
func (l *Lifecycle) release(partitions []ledger.Partition) (ended []*Partition) {
	for _, p := range partitions {
		delete(l.claimed, p)
		delete(l.failed, p)
		if part := l.running[p]; part != nil {
			delete(l.running, p)
			ended = append(ended, part)
		}
	}
	if len(ended) > 0 {
		l.stop(ended)
	}
	return ended
}

// Close stops every partition and refuses whatever the group still assigns.
func (l *Lifecycle) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	all := make([]ledger.Partition, 0, len(l.running))
	for p := range l.running {
		all = append(all, p)
	}
	l.release(all)
}

// Dispatch hands on what a poll returned and seeks where a partition claimed again; it is called between a poll and its
// release, when no callback runs.
func (l *Lifecycle) Dispatch(fetched []broker.Fetched, seek func(ledger.Partition, ledger.Frontier)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range fetched {
		if part := l.running[f.Partition]; part != nil {
			if err := part.Offer(f); err != nil {
				return err
			}
		}
	}
	for p, part := range l.running {
		if at, ok := part.in.sought(); ok {
			seek(p, at)
		}
	}
	return nil
}
