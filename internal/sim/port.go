package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"amends/internal/delivery"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/sim/fault"
	"amends/internal/store"
	"amends/internal/worker"
)

// namespace is what the simulated store is made of: memory.Namespace, or that with a guard taken out.
type namespace interface {
	worker.Store
	delivery.RelayStore
	delivery.ViewStore
	lease.Store
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
}

var (
	errRefused = errors.New("deadlock detected")
	errLost    = fmt.Errorf("connection lost: %w", store.ErrCommitUnknown)
	errAway    = fmt.Errorf("connect: refused: %w", store.ErrUnavailable)
)

// crash unwinds the calls of a process that dies.
type crash struct{ of *actor }

// row names what an operation locks, so that one that is still on its way is finished first.
type row struct {
	role      store.Role // "" for the source partition's
	partition ledger.Partition
}

// pending is a write that the server will still do.
type pending struct {
	row row
	do  func() error
}

// port is an actor's connection to the store: it keeps apart what a call did and what its caller saw.
type port struct{ *actor }

// Answers of a read and of a write; the first is that nothing is wrong.
const (
	fine = iota
	refused
	unavailable
	crashBefore
	between
	readWays
)
const (
	lostWritten = readWays + iota
	lostUnwritten
	late
	crashAfter
	betweenAfter
	writeWays
)

// arrive is what all calls have in common before they have an effect: nil, or what the caller sees instead.
func (p port) arrive(what string, r row, ways int) (way int, err error) {
	w := p.w
	w.say(what, int64(p.id), int64(r.partition))
	if p.retired {
		w.violate("I17", "%s by an actor that has ended", what)
	}
	if p.killed {
		panic(crash{p.actor})
	}
	if w.now < w.databaseBack {
		return fine, errAway
	}
	way = w.trouble(ways)
	switch way {
	case refused:
		w.count(fault.Refused)
		return way, errRefused
	case unavailable:
		w.count(fault.Unavailable)
		return way, errAway
	case crashBefore:
		w.count(fault.CrashBefore)
		panic(crash{p.actor})
	case between:
		w.interleave(p.actor, r)
	}
	w.finish(r)
	return way, nil
}

// read does a read.
func read[T any](p port, what string, r row, do func() (T, error)) (got T, err error) {
	if _, err := p.arrive(what, r, readWays); err != nil {
		return got, err
	}
	return do()
}

// write does a write and decides what its caller sees. late returns what do would do if its arguments were kept.
func (p port) write(what string, r row, do func() error, keep func() func() error) error {
	way, err := p.arrive(what, r, writeWays)
	if err != nil {
		return err
	}
	w := p.w
	switch way {
	case lostUnwritten:
		w.count(fault.LostUnwritten)
		return errLost
	case late:
		w.count(fault.Late)
		w.pending = append(w.pending, pending{r, keep()})
		return errLost
	}
	if err = do(); errors.Is(err, store.ErrFence) {
		w.count(fault.Fenced)
	}
	switch way {
	case crashAfter:
		w.count(fault.CrashAfter)
		panic(crash{p.actor})
	case betweenAfter:
		w.interleave(p.actor, r)
	case lostWritten:
		if err == nil {
			w.count(fault.LostWritten)
			return errLost
		}
	}
	return err
}

// finish lets what is on its way to a row, or to any, arrive.
func (w *World) finish(r row) {
	for i := 0; i < len(w.pending); i++ {
		if x := w.pending[i]; x.row == r {
			w.pending = slices.Delete(w.pending, i, i+1)
			i--
			w.say("arrives late", int64(r.partition), 0)
			_ = x.do() // nobody hears of it
		}
	}
}

// Claim is worker.Store's. After a lost reply it returns this attempt's row, as store/postgres does.
func (p port) Claim(ctx context.Context, at ledger.Partition) (owned store.Owned, err error) {
	do := func() error {
		o, err := p.w.ns.Claim(ctx, at)
		if err == nil {
			p.w.books[at].Claim(o)
			p.w.claimer[at] = p.actor
			owned = o
			p.w.say("claimed", int64(o.Token.Epoch), int64(o.Frontier))
		}
		return err
	}
	err = p.write("claim", row{partition: at}, do, func() func() error { return do })
	if errors.Is(err, store.ErrCommitUnknown) && owned.Token.Epoch == 0 {
		owned.Token = store.Token{Epoch: 1, Nonce: store.Nonce{0: 1}} // one that was never installed
	}
	return owned, err
}

// Observe is worker.Store's.
func (p port) Observe(ctx context.Context, at ledger.Partition) (store.Owned, error) {
	return read(p, "observe", row{partition: at}, func() (store.Owned, error) { return p.w.ns.Observe(ctx, at) })
}

// Load is worker.Store's.
func (p port) Load(ctx context.Context, t store.Token, at ledger.Partition, keys []ledger.StockKey, whole bool) ([]store.KeyHistory, error) {
	return read(p, "load", row{partition: at}, func() ([]store.KeyHistory, error) { return p.w.ns.Load(ctx, t, at, keys, whole) })
}

// Commit is worker.Store's.
func (p port) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	if p.w.revoked(p.actor, b.Partition) {
		p.w.violate("I17", "partition %d: a commit is issued after the revoke", b.Partition)
	}
	do := func(b *ledger.Batch) error {
		installed, err := p.w.ns.Observe(ctx, b.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.Commit(ctx, t, b); err != nil {
			return err
		}
		p.w.books[b.Partition].Commit(t, installed.Token, b)
		p.w.say("committed", int64(b.Expected), int64(b.Next))
		return nil
	}
	return p.write("commit", row{partition: b.Partition}, func() error { return do(b) }, func() func() error {
		kept := *b
		return func() error { return do(&kept) }
	})
}

// SaveSnapshots is worker.Store's.
func (p port) SaveSnapshots(ctx context.Context, t store.Token, at ledger.Partition, f ledger.Frontier, snapshots []store.KeySnapshot) error {
	do := func() error { return p.w.ns.SaveSnapshots(ctx, t, at, f, snapshots) }
	return p.write("snapshot", row{partition: at}, do, func() func() error { return do })
}

// AcquireService is lease.Store's.
func (p port) AcquireService(ctx context.Context, role store.Role, at ledger.Partition, holder string, ttl time.Duration) (l store.Lease, err error) {
	do := func() error {
		got, err := p.w.ns.AcquireService(ctx, role, at, holder, ttl)
		if err == nil {
			l = got
			p.w.say("lease", got.Term, int64(at))
		}
		return err
	}
	if err = p.write("acquire", row{role, at}, do, func() func() error { return do }); err != nil {
		l = store.Lease{}
	}
	return l, err
}

// RenewServices is lease.Store's.
func (p port) RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error) {
	return read(p, "renew", row{leases[0].Role, leases[0].Partition}, func() ([]store.Lease, error) { return p.w.ns.RenewServices(ctx, holder, leases, ttl) })
}

// ReleaseService is lease.Store's.
func (p port) ReleaseService(ctx context.Context, l store.Lease) error {
	_, err := read(p, "release", row{l.Role, l.Partition}, func() (any, error) { return nil, p.w.ns.ReleaseService(ctx, l) })
	return err
}

// RelayPosition is delivery.RelayStore's.
func (p port) RelayPosition(ctx context.Context, at ledger.Partition) (store.RelayPosition, error) {
	return read(p, "relay position", row{store.Relay, at}, func() (store.RelayPosition, error) { return p.w.ns.RelayPosition(ctx, at) })
}

// LastReceipt is delivery.RelayStore's.
func (p port) LastReceipt(ctx context.Context, at ledger.Partition) (*store.Receipt, error) {
	return read(p, "last receipt", row{store.Relay, at}, func() (*store.Receipt, error) { return p.w.ns.LastReceipt(ctx, at) })
}

// Pending is delivery.RelayStore's.
func (p port) Pending(ctx context.Context, at ledger.Partition, from store.RelayPosition, most int) ([]ledger.Decision, error) {
	return read(p, "pending", row{role: "outbox", partition: at}, func() ([]ledger.Decision, error) { return p.w.ns.Pending(ctx, at, from, most) })
}

// Outbox is delivery.RelayStore's.
func (p port) Outbox(ctx context.Context, at ledger.Partition, s ledger.Sequence) (*ledger.Decision, error) {
	return read(p, "outbox", row{role: "outbox", partition: at}, func() (*ledger.Decision, error) { return p.w.ns.Outbox(ctx, at, s) })
}

// Acknowledge is delivery.RelayStore's.
func (p port) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	do := func() error {
		pos, err := p.w.ns.RelayPosition(ctx, r.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.Acknowledge(ctx, l, r); err != nil {
			return err
		}
		p.w.books[r.Partition].Receipt(l, pos, r)
		p.w.say("receipt", int64(r.First), int64(r.Next))
		return nil
	}
	return p.write("acknowledge", row{store.Relay, r.Partition}, do, func() func() error { return do })
}

// ViewPosition is delivery.ViewStore's.
func (p port) ViewPosition(ctx context.Context, at ledger.Partition) (store.ViewPosition, error) {
	return read(p, "view position", row{store.View, at}, func() (store.ViewPosition, error) { return p.w.ns.ViewPosition(ctx, at) })
}

// ViewRows is delivery.ViewStore's.
func (p port) ViewRows(ctx context.Context, at ledger.Partition, ids []ledger.OutputID) (map[ledger.OutputID]store.ViewRow, error) {
	return read(p, "view rows", row{role: "rows", partition: at}, func() (map[ledger.OutputID]store.ViewRow, error) { return p.w.ns.ViewRows(ctx, at, ids) })
}

// ApplyViewInput is delivery.ViewStore's.
func (p port) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	do := func(page *store.ViewPage) error {
		pos, err := p.w.ns.ViewPosition(ctx, page.Partition)
		if err != nil {
			return err
		}
		if err := p.w.ns.ApplyViewInput(ctx, l, page); err != nil {
			return err
		}
		p.w.books[page.Partition].View(l, pos, page)
		p.w.say("applied", int64(page.Next.Output), int64(page.Next.Sequence))
		return nil
	}
	return p.write("apply", row{store.View, page.Partition}, func() error { return do(page) }, func() func() error {
		kept := *page
		kept.Changes = slices.Clone(page.Changes)
		return func() error { return do(&kept) }
	})
}
