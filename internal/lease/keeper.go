package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"amends/internal/ledger"
	"amends/internal/pause"
	"amends/internal/store"
)

// Defaults of Options.
const (
	TTL   = 3 * time.Second
	Renew = time.Second
	Retry = 500 * time.Millisecond
)

// retryEach is the time between attempts to acquire a lease for each that this process waits for, where that is more than Retry:
// together they ask the database no more than a thousand times a second.
const retryEach = time.Millisecond

// attempts is how often an operation with a definite failure is tried (S12).
const attempts = 3

// releaseTimeout bounds giving a lease up; one that is not given up expires.
const releaseTimeout = time.Second

// Store is where leases are kept. Its clock alone decides expiry.
type Store interface {
	AcquireService(ctx context.Context, role store.Role, p ledger.Partition, holder string, ttl time.Duration) (store.Lease, error)
	RenewServices(ctx context.Context, holder string, leases []store.Lease, ttl time.Duration) ([]store.Lease, error)
	ReleaseService(ctx context.Context, l store.Lease) error
}

// Options of a Keeper; zero durations are the defaults.
type Options struct {
	// Server identifies the database server, to tell work that failed for good from work whose lease or positions were
	// lost with a promotion: the lease is then taken again (S12). Nil: every failure is the former.
	Server func(context.Context) (store.Server, error)
	// Logger receives takeovers, waits and losses; nil discards them.
	Logger *slog.Logger
	// TTL is how long a lease outlives its last renewal, Renew the time between renewals, Retry between attempts to acquire.
	TTL   time.Duration
	Renew time.Duration
	Retry time.Duration
	// NoStandby fails with store.ErrServiceBusy instead of waiting for another's lease.
	NoStandby bool
}

// Keeper holds the leases of one process under one holder name. It is safe for concurrent use.
type Keeper struct {
	st     Store
	holder string
	opts   Options
	waits  atomic.Int64 // leases that are waited for

	mu   sync.Mutex // a leaf: nothing is called while it is held
	held map[*holding]struct{}
	stop context.CancelFunc // of the renewal loop, nil while nothing is held
	done chan struct{}
}

type holding struct {
	lease   store.Lease
	server  *store.Server // when the lease was taken, nil if not known
	lose    context.CancelCauseFunc
	renewed time.Time // before the last acquisition or renewal that succeeded was asked for; guarded by the Keeper's mu
}

// New returns a Keeper. holder names this process for ever: no other process may use it.
func New(st Store, holder string, o Options) *Keeper {
	for _, d := range []struct {
		field *time.Duration
		or    time.Duration
	}{{&o.TTL, TTL}, {&o.Renew, Renew}, {&o.Retry, Retry}} {
		if *d.field == 0 {
			*d.field = d.or
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keeper{st: st, holder: holder, opts: o, held: map[*holding]struct{}{}}
}

// Hold acquires the lease of a role and partition, waiting for it as a standby, and runs work under it. The context of
// work ends when the lease is lost. It returns what work returned, or store.ErrFence if the lease was lost, or
// store.ErrServiceBusy with NoStandby. While the database is away it waits. It returns ctx's error when ctx ends first.
func (k *Keeper) Hold(ctx context.Context, role store.Role, p ledger.Partition, work func(context.Context, store.Lease) error) error {
	for {
		l, taken, err := k.acquire(ctx, role, p)
		if err != nil {
			return err
		}
		h := &holding{lease: l, server: k.server(ctx), renewed: taken}
		server := h.server
		err = k.run(ctx, h, work)
		if err == nil || ctx.Err() != nil {
			return err
		}
		// After a promotion any stored position may be another than the work knew: it begins again, once a promotion.
		if !errors.Is(err, store.ErrServerChanged) && !changed(server, k.server(ctx)) {
			return err
		}
		k.opts.Logger.Warn("the database server is another one: taking the lease again", "role", role, "partition", p, "cause", err)
	}
}

// server asks which server there is now; nil if that cannot be told.
func (k *Keeper) server(ctx context.Context) *store.Server {
	if k.opts.Server == nil {
		return nil
	}
	s, err := k.opts.Server(ctx)
	if err != nil {
		return nil
	}
	return &s
}

// changed reports whether both servers are known and not the same.
func changed(was, is *store.Server) bool { return was != nil && is != nil && *was != *is }

// acquire tries until it has the lease, and says when it began the attempt that succeeded. A lost reply needs no look: the next
// attempt installs a new nonce (S12).
func (k *Keeper) acquire(ctx context.Context, role store.Role, p ledger.Partition) (store.Lease, time.Time, error) {
	log := k.opts.Logger.With("role", role, "partition", p)
	waiting, failed := "", 0
	defer func() {
		if waiting != "" {
			k.waits.Add(-1)
		}
	}()
	for {
		began := time.Now()
		l, err := k.st.AcquireService(ctx, role, p, k.holder, k.opts.TTL)
		why := ""
		switch {
		case err == nil:
			return l, began, nil
		case ctx.Err() != nil:
			return store.Lease{}, time.Time{}, ctx.Err()
		case errors.Is(err, store.ErrServiceBusy) && !k.opts.NoStandby:
			why = "standby"
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrCommitUnknown), errors.Is(err, store.ErrServerChanged):
			why = "database"
		case failed < attempts-1 && transient(err):
			if err := pause.For(ctx, time.Duration(1<<failed)*100*time.Millisecond); err != nil {
				return store.Lease{}, time.Time{}, err
			}
			failed++
			continue
		default:
			return store.Lease{}, time.Time{}, fmt.Errorf("acquire %s lease of partition %d: %w", role, p, err)
		}
		failed = 0
		if waiting == "" {
			k.waits.Add(1)
		}
		if why != waiting {
			waiting = why
			log.Info("waiting for the lease", "cause", err)
		}
		if err := pause.For(ctx, max(k.opts.Retry, time.Duration(k.waits.Load())*retryEach)); err != nil {
			return store.Lease{}, time.Time{}, err
		}
	}
}

// transient reports whether another attempt may succeed: a deadlock or a lock timeout, say, and nothing that is typed.
func transient(err error) bool {
	for _, t := range []error{store.ErrServiceBusy, store.ErrBinding, store.ErrExhausted, store.ErrProtocol, store.ErrIntegrity, store.ErrNoSchema, store.ErrSchema, store.ErrNoNamespace, store.ErrConfig} {
		if errors.Is(err, t) {
			return false
		}
	}
	return true
}

// run renews h's lease while work runs under it, and gives it up after.
func (k *Keeper) run(ctx context.Context, h *holding, work func(context.Context, store.Lease) error) error {
	inner, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	h.lose = lose
	l := h.lease
	k.add(h)
	err := work(inner, l)
	k.remove(h)
	if cause := context.Cause(inner); ctx.Err() == nil && inner.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = cause
	}
	if errors.Is(err, store.ErrFence) {
		return err // nothing of it is left to give up
	}
	release, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer time.AfterFunc(releaseTimeout, cancel).Stop() // cancelled: a COMMIT without an answer outlives a deadline
	if e := k.st.ReleaseService(release, l); e != nil {
		k.opts.Logger.Warn("the lease was not given up; it expires", "role", l.Role, "partition", l.Partition, "cause", e)
	}
	return err
}

// Current reports whether a lease was taken or renewed less than its TTL ago, counted from before the database was asked: nobody
// else can have taken it in that time. It decides nothing that is stored (S9): who may publish and does not know it any more
// does better to wait.
func (k *Keeper) Current(l store.Lease) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.held {
		if h.lease == l {
			return time.Since(h.renewed) < k.opts.TTL
		}
	}
	return false
}

func (k *Keeper) add(h *holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[h] = struct{}{}
	if k.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	k.stop, k.done = stop, done
	go func() {
		defer close(done)
		k.renew(ctx)
	}()
}

func (k *Keeper) remove(h *holding) {
	k.mu.Lock()
	delete(k.held, h)
	var done chan struct{}
	if len(k.held) == 0 {
		k.stop()
		k.stop, done = nil, k.done
	}
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

// renew is the one renewal loop of the process; it ends with the last lease.
func (k *Keeper) renew(ctx context.Context) {
	for pause.For(ctx, k.opts.Renew) == nil {
		k.mu.Lock()
		byTerm := make(map[store.Lease]*holding, len(k.held))
		leases := make([]store.Lease, 0, len(k.held))
		for h := range k.held {
			byTerm[h.lease] = h
			leases = append(leases, h.lease)
		}
		k.mu.Unlock()
		began := time.Now()
		op, cancel := context.WithTimeout(ctx, k.opts.TTL)
		lost, err := k.st.RenewServices(op, k.holder, leases, k.opts.TTL)
		cancel()
		if err == nil {
			k.renewed(byTerm, lost, began)
		}
		if err != nil && ctx.Err() == nil {
			k.opts.Logger.Warn("leases not renewed", "cause", err)
		}
		for _, l := range lost {
			if h := byTerm[l]; h != nil {
				k.opts.Logger.Warn("lease lost", "role", l.Role, "partition", l.Partition, "term", l.Term)
				h.lose(fmt.Errorf("the %s lease of partition %d, term %d: %w", l.Role, l.Partition, l.Term, store.ErrFence))
			}
		}
		k.compare(ctx, byTerm)
	}
}

// renewed notes which leases a renewal that began at a moment has renewed: all but the lost ones.
func (k *Keeper) renewed(held map[store.Lease]*holding, lost []store.Lease, began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l, h := range held {
		if !slices.Contains(lost, l) {
			h.renewed = began
		}
	}
}

// compare ends the work that began on another server than there is now: a promotion may have lost what it did, which work
// with nothing to do would not notice. The lease is taken again.
func (k *Keeper) compare(ctx context.Context, held map[store.Lease]*holding) {
	op, cancel := context.WithTimeout(ctx, k.opts.TTL)
	defer cancel()
	now := k.server(op)
	for l, h := range held {
		if changed(h.server, now) {
			h.lose(fmt.Errorf("the %s lease of partition %d, term %d: %w", l.Role, l.Partition, l.Term, store.ErrServerChanged))
		}
	}
}

// Holder returns a name for this process in leases: no other has the same.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:10])
}
