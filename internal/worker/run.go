package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
)

// Options are what a worker is made of. Store, Topics, Join and Manifest are required.
type Options struct {
	Store  Store
	Topics Topics // on a client of its own
	// Join makes a member of the group GroupID of the manifest's source topic and incarnation, with the lifecycle as
	// its broker.Member.
	Join     func(broker.Member) (Source, error)
	Manifest *manifest.Manifest
	Log      *slog.Logger // nil discards
	// Ready is told whenever readiness changes, with the reason when it is false; nil for nobody.
	Ready func(ready bool, reason string)
	// CacheBytes bounds the key states of all partitions together; 0 for the default.
	CacheBytes int64
}

// GroupID returns the consumer group of a namespace's workers.
func GroupID(namespace string) string { return "amends." + namespace + ".source" }

// Run is the source role: it joins the group and decides and commits what it is assigned until ctx ends, which stops it
// cleanly with nil, or until something ends it: doc.go lists the errors. Everything it started has ended when it returns.
func Run(ctx context.Context, o Options) error {
	r := newRunner(ctx, &o)
	defer r.cancel()
	if err := r.firstLook(); err != nil {
		return r.result(ctx, err)
	}
	source, err := o.Join(r.life)
	if err != nil {
		return fmt.Errorf("join group %s: %w", GroupID(r.cfg.Namespace), err)
	}
	r.join(source)
	r.wg.Go(r.watch)
	err = r.poll()
	r.fail(err)
	// Partitions first, then the group: the revoke that leaving causes finds nothing running.
	r.life.Close()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	source.Close(closing)
	r.cancel()
	r.wg.Wait()
	return r.result(ctx, nil)
}

// runner drives a lifecycle and its partitions with goroutines.
type runner struct {
	*shared
	ctx       context.Context // ends the polling and the watching; not the steps, which Stop ends
	end       context.CancelFunc
	hard      context.Context // ends the steps
	cancel    context.CancelFunc
	life      *Lifecycle
	identity  *identity
	source    Source
	joined    chan struct{} // closed when source is set
	interrupt context.CancelFunc
	err       error
	drives    map[*Partition]*drive
	wg        sync.WaitGroup
	mu        sync.Mutex // guards err, drives, interrupt; a leaf
}

// drive is one running partition.
type drive struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newRunner(ctx context.Context, o *Options) *runner {
	r := &runner{joined: make(chan struct{}), drives: map[*Partition]*drive{}, interrupt: func() {}}
	r.ctx, r.end = context.WithCancel(ctx)
	r.hard, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.life, r.identity = newLifecycle(r.ctx, o, &Drive{Start: r.start, Stop: r.stop, Fail: r.fail, Hold: r.hold, Wake: r.wakePoll, Clock: time.Now, Pause: pause.For, AtOnce: claimsAtOnce})
	r.shared = r.life.shared
	r.ready.set("group", errors.New("joining"))
	return r
}

// firstLook waits for the broker and refuses another topic before anything is joined or claimed.
func (r *runner) firstLook() error {
	for wait := FirstWait; ; wait = min(2*wait, awayWait) {
		err := r.identity.refresh(r.ctx)
		switch {
		case err == nil:
			r.ready.set("broker", nil)
			return nil
		case stopsTopic(err):
			return err
		}
		r.ready.set("broker", err)
		if err := pause.For(r.ctx, wait); err != nil {
			return err
		}
	}
}

// join makes the source known to callbacks that began before Join returned.
func (r *runner) join(s Source) {
	r.source = s
	close(r.joined)
}

func (r *runner) hold(p ledger.Partition, held bool) {
	<-r.joined
	r.source.Hold(p, held)
}

// poll hands records to the partitions until the role ends. Every poll is released, whatever it returned.
func (r *runner) poll() error {
	ctx := r.interruptible()
	for {
		if r.life.full() {
			if pause.For(r.ctx, fullWait) != nil {
				return nil
			}
			continue
		}
		fetched, err := r.source.Poll(ctx)
		ctx = r.interruptible() // a wake-up that Dispatch is too early for ends the next poll
		dispatched := r.life.Dispatch(fetched, r.source.Seek)
		r.source.AllowRebalance()
		switch {
		case r.ctx.Err() != nil:
			return nil
		case dispatched != nil:
			return dispatched
		case errors.Is(err, context.Canceled), err == nil:
			continue
		case stopsTopic(err), errors.Is(err, broker.ErrClosed):
			return err
		}
		switch {
		case errors.Is(err, broker.ErrSession):
			r.ready.because("group", err) // a poll that waited for room may tell of a session before this one
		case errors.Is(err, broker.ErrUnreadable):
			r.ready.set("records", err) // the next assignment clears it: the partition stands still until an operator has looked
		default:
			r.ready.set("broker", err) // the next look does
		}
		r.log.Warn("poll failed, trying again", "namespace", r.cfg.Namespace, "error", err)
		if pause.For(r.ctx, FirstWait) != nil {
			return nil
		}
	}
}

// interruptible ends the context of the last poll and returns that of the next one, which wakePoll ends.
func (r *runner) interruptible() context.Context {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt()
	r.interrupt = cancel
	return ctx
}

// wakePoll makes the poll in progress, or the next one, return, so that a seek is done.
func (r *runner) wakePoll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt()
}

// watch looks at the topic every second, so that a change is noticed without traffic too and commits find a fresh look.
func (r *runner) watch() {
	for pause.For(r.ctx, lookEvery) == nil {
		err := r.identity.refresh(r.ctx)
		switch {
		case r.ctx.Err() != nil:
			return
		case stopsTopic(err):
			r.fail(fmt.Errorf("watch topic %s: %w", r.identity.topic, err))
			return
		}
		r.ready.set("broker", err)
	}
}

// start runs the steps of a partition in a goroutine of its own.
func (r *runner) start(p *Partition) {
	ctx, cancel := context.WithCancel(r.hard)
	d := &drive{cancel: cancel, done: make(chan struct{})}
	r.mu.Lock()
	r.drives[p] = d
	r.mu.Unlock()
	r.wg.Go(func() {
		defer close(d.done)
		defer cancel()
		if err := r.steps(ctx, p); err != nil {
			r.fail(err)
		}
	})
}

// steps calls Step until the partition is done. What a cancelled step failed with is no error: its successor reads
// durable state before it does anything.
func (r *runner) steps(ctx context.Context, p *Partition) error {
	for ctx.Err() == nil {
		progress, err := p.Step(ctx)
		switch {
		case err != nil && ctx.Err() != nil && classify(err) != fenced:
			return nil
		case err != nil:
			return err
		case progress.Done:
			return nil
		case progress.Wait > 0:
			wake, stopped := p.in.wake, p.stopped
			if !progress.Idle {
				wake = nil
			}
			if p.phase == resolving {
				stopped = nil // a stop does not end it, nor its pauses (S12)
			}
			t := time.NewTimer(progress.Wait)
			select {
			case <-t.C:
			case <-wake:
			case <-stopped:
			case <-ctx.Done():
			}
			t.Stop()
		}
	}
	return nil
}

// stop ends partitions: they issue no further commit at once, may finish what is in flight within the grace, and are
// then cancelled and joined.
func (r *runner) stop(ps []*Partition) {
	grace := time.NewTimer(StopGrace)
	defer grace.Stop()
	var drives []*drive
	r.mu.Lock()
	for _, p := range ps {
		drives = append(drives, r.drives[p])
		delete(r.drives, p)
	}
	r.mu.Unlock()
	for _, p := range ps {
		p.Stop()
	}
	for _, d := range drives {
		select {
		case <-d.done:
		case <-grace.C:
			for _, d := range drives {
				d.cancel()
			}
			<-d.done
		}
	}
}

// fail notes the first error and ends the role; nil ends it cleanly.
func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.end()
}

// result returns the error that ended the role, nil when it was asked to end.
func (r *runner) result(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		err = r.err
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run worker of %s: %w", r.cfg.Namespace, err)
	}
	return nil
}
