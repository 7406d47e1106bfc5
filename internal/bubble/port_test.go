package bubble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"amends/internal/ledger"
	"amends/internal/pause"
	"amends/internal/roles"
	"amends/internal/store"
)

// call is a kind of call of the store that a fault can meet.
type call uint8

const (
	claiming call = iota
	observing
	loading
	committing
	acquiring
	renewing
	acknowledging
	applying
	reading // whatever else a relay or a view reads
	calls
)

// harm is what happens to a call.
type harm uint8

const (
	unharmed     harm = iota
	refused           // a definite failure
	away              // nothing was sent
	delayed           // on its way for a while
	slow              // the row is locked for a while
	lostBefore        // no reply, and no effect
	lostAfter         // no reply, and its effect
	late              // no reply, and its effect later, with the row locked until then
	killedBefore      // the process dies
	killedAfter
	harms
)

var harmNames = [...]string{unharmed: "", refused: "refused", away: "away", delayed: "delayed", slow: "slow", lostBefore: "lost unwritten", lostAfter: "lost written",
	late: "late", killedBefore: "killed before its effect", killedAfter: "killed after its effect"}

var (
	errRefused = errors.New("canceling statement due to lock timeout")
	errAway    = fmt.Errorf("connect: %w", store.ErrUnavailable)
	errLost    = fmt.Errorf("no reply: %w", store.ErrCommitUnknown)
)

// lockTimeout is how long a statement waits for a row, as in store/postgres.
const lockTimeout = 3 * time.Second

// arm is a fault that waits for a call.
type arm struct {
	harm harm
	wait time.Duration
}

// port is a process's connection to the database: it keeps apart what a call did and what its caller saw.
type port struct {
	w *world
	l *life

	mu    sync.Mutex // a leaf; guards the rest
	armed [calls][]arm
	quiet time.Time // until when the process does not reach the database
}

var _ roles.Namespace = (*port)(nil)

func (p *port) arm(c call, a arm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed[c] = append(p.armed[c], a)
}

func (p *port) leave(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = until
}

func (p *port) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.quiet = [calls][]arm{}, time.Time{}
}

// harm returns what happens to a call that begins now.
func (p *port) harm(c call) arm {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.quiet) || now.Before(p.w.databaseBack()) {
		return arm{harm: away}
	}
	if len(p.armed[c]) == 0 {
		return arm{}
	}
	a := p.armed[c][0]
	p.armed[c] = p.armed[c][1:]
	p.w.struck(harmNames[a.harm])
	return a
}

// reach is what every call has in common before it has an effect.
func (p *port) reach(ctx context.Context, c call) (arm, error) {
	if !p.l.paused.wait(ctx.Done()) {
		return arm{}, ctx.Err()
	}
	a := p.harm(c)
	if p.l.dead() {
		return arm{}, errAway
	}
	switch a.harm {
	case refused:
		return a, errRefused
	case away:
		return a, errAway
	case killedBefore:
		p.l.kill()
		return a, errAway
	case delayed:
		if err := pause.For(ctx, a.wait); err != nil {
			return a, fmt.Errorf("the statement was given up: %w", err)
		}
	}
	return a, nil
}

// answer is the way back: a process that was stopped sees it later, one that died never.
func (p *port) answer(ctx context.Context, err error) error {
	p.l.paused.wait(ctx.Done())
	if p.l.dead() {
		return errAway
	}
	return err
}

// row is what a transaction locks.
type row struct {
	role      store.Role // "" for the source partition's
	partition ledger.Partition
}

// lock takes a row as a transaction does.
func (w *world) lock(ctx context.Context, r row) error {
	select {
	case w.rows[r] <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the row: %w", ctx.Err())
	case <-time.After(lockTimeout):
		return errRefused
	}
}

func (w *world) unlock(r row) { <-w.rows[r] }

// read does a read.
func read[T any](ctx context.Context, p *port, c call, do func() (T, error)) (got T, err error) {
	if _, err := p.reach(ctx, c); err != nil {
		return got, err
	}
	got, err = do()
	return got, p.answer(ctx, err)
}

// locked does a read under a row's lock.
func locked[T any](ctx context.Context, p *port, c call, r row, do func() (T, error)) (got T, err error) {
	return read(ctx, p, c, func() (T, error) {
		if err := p.w.lock(ctx, r); err != nil {
			return got, err
		}
		defer p.w.unlock(r)
		return do()
	})
}

// write does a write and decides what its caller sees. do may run after write has returned, and is told whether it does.
func (p *port) write(ctx context.Context, c call, r row, do func() error) error {
	a, err := p.reach(ctx, c)
	if err != nil {
		return p.answer(ctx, err)
	}
	if a.harm == lostBefore {
		return p.answer(ctx, errLost)
	}
	if err := p.w.lock(ctx, r); err != nil {
		return p.answer(ctx, err)
	}
	if a.harm == late {
		p.w.running.Go(func() {
			defer p.w.unlock(r)
			time.Sleep(min(a.wait, lockTimeout-time.Second))
			_ = p.effect(do) // nobody hears of it
		})
		return p.answer(ctx, errLost)
	}
	if a.harm == slow {
		time.Sleep(min(a.wait, lockTimeout-time.Second))
	}
	err = p.effect(do)
	p.w.unlock(r)
	switch {
	case a.harm == killedAfter:
		p.l.kill()
	case a.harm == lostAfter && err == nil:
		err = errLost
	}
	return p.answer(ctx, err)
}

// effect is the moment at which a write happens. A statement that was sent before its process died happens too.
func (p *port) effect(do func() error) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	err := do()
	if errors.Is(err, store.ErrFence) {
		p.w.count("fenced")
	}
	return err
}

// Claim is worker.Store's. After a lost reply it returns the row that the attempt would have, as store/postgres does.
func (p *port) Claim(ctx context.Context, at ledger.Partition) (owned store.Owned, err error) {
	var got store.Owned
	err = p.write(ctx, claiming, row{partition: at}, func() error {
		o, err := p.w.ns.Claim(ctx, at)
		if err == nil {
			got = o
			p.w.claimed(p.l, at, o)
		}
		return err
	})
	switch {
	case errors.Is(err, store.ErrCommitUnknown):
		return store.Owned{Token: store.Token{Epoch: 1, Nonce: store.Nonce{0: 1}}}, err // one that was never installed
	case err != nil:
		return store.Owned{}, err
	}
	return got, nil
}

// Observe is worker.Store's.
func (p *port) Observe(ctx context.Context, at ledger.Partition) (store.Owned, error) {
	return locked(ctx, p, observing, row{partition: at}, func() (store.Owned, error) { return p.w.ns.Observe(ctx, at) })
}

// Load is worker.Store's.
func (p *port) Load(ctx context.Context, t store.Token, at ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error) {
	return read(ctx, p, loading, func() ([]store.KeyHistory, error) { return p.w.ns.Load(ctx, t, at, keys, whole) })
}

// Commit is worker.Store's.
func (p *port) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	kept := *b
	kept.Decisions = slices.Clone(b.Decisions)
	stable := p.w.stable(kept.Partition)
	return p.write(ctx, committing, row{partition: b.Partition}, func() error {
		installed, err := p.w.base.Observe(context.Background(), kept.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.Commit(context.Background(), t, &kept); err != nil {
			return err
		}
		p.w.committed(p.l, t, installed.Token, &kept, stable)
		return nil
	})
}

// SaveSnapshots is worker.Store's.
func (p *port) SaveSnapshots(ctx context.Context, t store.Token, at ledger.Partition, f ledger.Frontier, snapshots []store.KeySnapshot) error {
	return p.write(ctx, committing, row{partition: at}, func() error { return p.w.ns.SaveSnapshots(context.Background(), t, at, f, snapshots) })
}

// AcquireService is lease.Store's.
func (p *port) AcquireService(ctx context.Context, role store.Role, at ledger.Partition, holder string, ttl time.Duration) (store.Lease, error) {
	var got store.Lease
	err := p.write(ctx, acquiring, row{role, at}, func() (err error) {
		got, err = p.w.ns.AcquireService(context.Background(), role, at, holder, ttl)
		if err == nil {
			p.w.taken(p.l, got)
		}
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return got, nil
}

// RenewServices is lease.Store's.
func (p *port) RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error) {
	return read(ctx, p, renewing, func() ([]store.Lease, error) { return p.w.ns.RenewServices(ctx, holder, leases, ttl) })
}

// ReleaseService is lease.Store's.
func (p *port) ReleaseService(ctx context.Context, l store.Lease) error {
	_, err := read(ctx, p, renewing, func() (any, error) { return nil, p.w.ns.ReleaseService(ctx, l) })
	return err
}

// RelayPosition is delivery.RelayStore's.
func (p *port) RelayPosition(ctx context.Context, at ledger.Partition) (store.RelayPosition, error) {
	return locked(ctx, p, reading, row{store.Relay, at}, func() (store.RelayPosition, error) { return p.w.ns.RelayPosition(ctx, at) })
}

// LastReceipt is delivery.RelayStore's.
func (p *port) LastReceipt(ctx context.Context, at ledger.Partition) (*store.Receipt, error) {
	return read(ctx, p, reading, func() (*store.Receipt, error) { return p.w.ns.LastReceipt(ctx, at) })
}

// Pending is delivery.RelayStore's.
func (p *port) Pending(ctx context.Context, at ledger.Partition, from store.RelayPosition, most int) ([]ledger.Decision, error) {
	return read(ctx, p, reading, func() ([]ledger.Decision, error) { return p.w.ns.Pending(ctx, at, from, most) })
}

// Outbox is delivery.RelayStore's.
func (p *port) Outbox(ctx context.Context, at ledger.Partition, s ledger.Sequence) (*ledger.Decision, error) {
	return read(ctx, p, reading, func() (*ledger.Decision, error) { return p.w.ns.Outbox(ctx, at, s) })
}

// Acknowledge is delivery.RelayStore's.
func (p *port) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	end := p.w.end(r.Partition)
	return p.write(ctx, acknowledging, row{store.Relay, r.Partition}, func() error {
		pos, err := p.w.base.RelayPosition(context.Background(), r.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.Acknowledge(context.Background(), l, r); err != nil {
			return err
		}
		p.w.receipted(p.l, l, pos, r, end)
		return nil
	})
}

// ViewPosition is delivery.ViewStore's.
func (p *port) ViewPosition(ctx context.Context, at ledger.Partition) (store.ViewPosition, error) {
	return locked(ctx, p, reading, row{store.View, at}, func() (store.ViewPosition, error) { return p.w.ns.ViewPosition(ctx, at) })
}

// ViewRows is delivery.ViewStore's.
func (p *port) ViewRows(ctx context.Context, at ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	return read(ctx, p, reading, func() (map[ledger.OutputID]store.ViewRow, error) { return p.w.ns.ViewRows(ctx, at, ids) })
}

// ApplyViewInput is delivery.ViewStore's.
func (p *port) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	kept := *page
	kept.Changes = slices.Clone(page.Changes)
	return p.write(ctx, applying, row{store.View, page.Partition}, func() error {
		pos, err := p.w.base.ViewPosition(context.Background(), kept.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.ApplyViewInput(context.Background(), l, &kept); err != nil {
			return err
		}
		p.w.applied(p.l, l, pos, &kept)
		return nil
	})
}
