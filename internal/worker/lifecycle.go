package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	atOnce  int             // calls of the store that a callback has in progress at the same time
	claimed map[ledger.Partition]store.Owned
	failed  map[ledger.Partition]error
	running map[ledger.Partition]*Partition
	mu      gate // held over the callbacks' calls of the store
	closed  bool
}

var _ broker.Member = (*Lifecycle)(nil)

var errClosed = errors.New("the worker is stopping")

// errLate: the budget of an assignment ended before a claim was made. The partition claims by its own steps.
var errLate = errors.New("not claimed within the budget of the assignment")

// Assigned claims partitions, a few at the same time, before it returns. What could not be claimed is told by Positions, but
// for what the budget of the callback had no time for: that claims later, by itself.
func (l *Lifecycle) Assigned(_ context.Context, partitions []ledger.Partition) {
	l.mu.lock()
	defer l.mu.unlock()
	l.ready.set("group", nil)
	l.ready.set("records", nil)
	if l.closed {
		return
	}
	l.release(partitions)
	if len(partitions) == 0 {
		l.ready.set("database", nil) // no positions are asked for
	}
	began := l.clock()
	owned, failures := make([]store.Owned, len(partitions)), make([]error, len(partitions))
	_ = l.each(len(partitions), func(i int) error {
		owned[i], failures[i] = l.claim(partitions[i], began)
		return nil
	})
	for i, p := range partitions {
		if failures[i] != nil {
			l.failed[p] = failures[i]
			continue
		}
		l.claimed[p] = owned[i]
		l.log.Info("partition claimed", "namespace", l.cfg.Namespace, "partition", p, "epoch", owned[i].Token.Epoch, "frontier", owned[i].Frontier, "sequence", owned[i].Sequence)
	}
}

// each calls do for 0 to n-1, atOnce of them at the same time, and has joined all when it returns; no further one begins
// after one that failed, whose error it returns.
func (l *Lifecycle) each(n int, do func(i int) error) error {
	if l.atOnce <= 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	var next, failed atomic.Int64
	for range min(l.atOnce, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == 0; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed.Store(1)
					once.Do(func() { first = err })
				}
			}
		})
	}
	wg.Wait()
	return first
}

// claim installs an epoch: three attempts within the budget that began with the assignment. After an unknown outcome it
// claims afresh, under an assignment that is valid because the callback has not returned: an extra epoch is harmless (S12).
func (l *Lifecycle) claim(p ledger.Partition, began time.Time) (store.Owned, error) {
	var err error
	for try := range MaxAttempts {
		if try > 0 {
			if e := l.pause(l.ctx, FirstWait*time.Duration(try)); e != nil {
				return store.Owned{}, errClosed
			}
		}
		left := RetryBudget - l.clock().Sub(began)
		if left <= 0 {
			if err == nil {
				return store.Owned{}, fmt.Errorf("claim partition %d: %w", p, errLate)
			}
			return store.Owned{}, fmt.Errorf("claim partition %d: %w: %w", p, errLate, store.Resolved(err))
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

// Positions reads each claimed row back, checks that the claim still stands, and starts the partition from its frontier; one
// whose claim is late it starts from the frontier as it is now, to claim first. It never installs an epoch. An error makes the group assign again, which claims again: so a database that is away is
// waited for without limit.
func (l *Lifecycle) Positions(_ context.Context, partitions []ledger.Partition) (map[ledger.Partition]ledger.Frontier, error) {
	l.mu.lock()
	defer l.mu.unlock()
	if l.closed {
		return nil, errClosed
	}
	rows, err := l.rows(partitions)
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
	l.ready.set("database", nil)
	at := make(map[ledger.Partition]ledger.Frontier, len(partitions))
	for i, p := range partitions {
		at[p] = rows[i].Frontier
		part := newPartition(l.shared, p, rows[i], func(held bool) { l.hold(p, held) })
		if l.failed[p] != nil {
			part.phase, part.token = claiming, store.Token{}
		}
		delete(l.claimed, p)
		delete(l.failed, p)
		l.running[p] = part
		l.start(part)
	}
	return at, nil
}

// rows reads the rows of partitions, in their order, and compares each with its claim.
func (l *Lifecycle) rows(partitions []ledger.Partition) ([]store.Owned, error) {
	for _, p := range partitions {
		if err := l.failed[p]; err != nil && !errors.Is(err, errLate) {
			return nil, err
		}
		part := l.running[p]
		if part == nil {
			continue
		}
		l.release([]ledger.Partition{p}) // asked again, as after a session that ended before it fetched
		if l.claimed[p] = (store.Owned{Token: part.token}); part.token == (store.Token{}) {
			delete(l.claimed, p)
			l.failed[p] = errLate
		}
	}
	budget, cancel := context.WithTimeout(l.ctx, RetryBudget)
	defer cancel()
	rows := make([]store.Owned, len(partitions))
	err := l.each(len(partitions), func(i int) (err error) {
		rows[i], err = l.observe(budget, partitions[i])
		return err
	})
	return rows, err
}

// observe reads the row of a partition and compares it with the claim, unless that is late.
func (l *Lifecycle) observe(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	claimed, ok := l.claimed[p]
	late := l.failed[p] != nil
	if !ok && !late {
		return store.Owned{}, fmt.Errorf("position partition %d: it was not claimed", p)
	}
	op, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	owned, err := l.store.Observe(op, p)
	switch {
	case err != nil:
		return store.Owned{}, fmt.Errorf("position partition %d: %w", p, err)
	case late:
		return owned, nil
	case owned.Token.Server != claimed.Token.Server:
		return store.Owned{}, fmt.Errorf("position partition %d: %w", p, store.ErrServerChanged)
	case owned.Token != claimed.Token:
		return store.Owned{}, fmt.Errorf("position partition %d: epoch %d is installed, not %d: %w", p, owned.Token.Epoch, claimed.Token.Epoch, store.ErrFence)
	}
	return owned, nil
}

// Revoked stops partitions: after it returns no commit is issued for them.
func (l *Lifecycle) Revoked(_ context.Context, partitions []ledger.Partition) {
	l.mu.lock()
	defer l.mu.unlock()
	l.release(partitions)
	l.log.Info("partitions revoked", "namespace", l.cfg.Namespace, "partitions", partitions)
}

// errSession: until the next assignment the group is waited for.
var errSession = errors.New("the session was lost; joining again")

// Lost stops partitions that the group has given away: a commit in flight is resolved, and one that failed is looked after.
// A fence found so ends the role. It comes with none where the session of a member without partitions was lost.
func (l *Lifecycle) Lost(_ context.Context, partitions []ledger.Partition) {
	l.mu.lock()
	defer l.mu.unlock()
	l.ready.set("group", errSession)
	if len(partitions) == 0 {
		return
	}
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
	for _, part := range ended {
		part.in.close()
	}
	l.ready.gone(partitions...)
	return ended
}

// Close stops every partition and refuses whatever the group still assigns.
func (l *Lifecycle) Close() {
	l.mu.lock()
	defer l.mu.unlock()
	l.closed = true
	all := make([]ledger.Partition, 0, len(l.running))
	for p := range l.running {
		all = append(all, p)
	}
	l.release(all)
}

// full reports whether all partitions together have as much that is fetched and not decided as they may. Each is held beyond its
// part, but where they are many the fetches that they may have by then are gigabytes.
func (l *Lifecycle) full() bool {
	l.mu.lock()
	defer l.mu.unlock()
	all := 0
	for _, part := range l.running {
		all += part.in.weight()
	}
	return all > inboxesAll
}

// Dispatch hands on what a poll returned and seeks where a partition claimed again; it is called between a poll and its
// release, when no callback runs.
func (l *Lifecycle) Dispatch(fetched []broker.Fetched, seek func(ledger.Partition, ledger.Frontier)) error {
	l.mu.lock()
	defer l.mu.unlock()
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
