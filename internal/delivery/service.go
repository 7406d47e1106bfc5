package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pause"
	"amends/internal/store"
)

// Leases gives the right to work on a partition (lease.Keeper). Hold waits for the lease, runs work under it and ends the
// context of work when the lease is lost.
type Leases interface {
	Hold(ctx context.Context, role store.Role, p ledger.Partition, work func(context.Context, store.Lease) error) error
	// Current reports whether nobody else can have taken the lease yet.
	Current(l store.Lease) bool
}

// Phase is what a partition of a service is doing.
type Phase string

// The phases.
const (
	Standby Phase = "standby" // another process holds the lease, or it is not taken yet
	Running Phase = "running"
	Waiting Phase = "waiting" // for what Detail names; by itself
	Stopped Phase = "stopped" // by a protocol violation, durably
)

// State is a partition of a service as seen from outside.
type State struct {
	Phase     Phase
	Detail    string
	Outputs   int64 // published or applied by this process
	Partition ledger.Partition
}

// Service runs one role over all partitions of a namespace.
type Service struct {
	topic   Topic
	leases  Leases
	log     *slog.Logger
	stepper func(store.Lease) Stepper
	wake    *Signal
	role    store.Role
	quiet   time.Duration // the longest wait of a partition with nothing to do

	mu     sync.Mutex // a leaf; guards what follows
	states []State
	away   string // why the output topic cannot be looked at, "" while it can
}

// NewRelay returns the relay of a namespace. wake, which may be nil, shortens its wait for the worker's commits.
func NewRelay(o RelayOptions, leases Leases, wake *Signal) *Service {
	o = o.withDefaults()
	o.Current = leases.Current
	return newService(store.Relay, o.Topic, leases, o.Logger, wake, func(l store.Lease) Stepper { return NewRelayStepper(o, l) })
}

// NewView returns the view of a namespace.
func NewView(o ViewOptions, leases Leases) *Service {
	o = o.withDefaults()
	o.Ahead = true
	return newService(store.View, o.Topic, leases, o.Logger, nil, func(l store.Lease) Stepper { return NewViewStepper(o, l) })
}

func newService(role store.Role, t Topic, leases Leases, log *slog.Logger, wake *Signal, stepper func(store.Lease) Stepper) *Service {
	s := &Service{topic: t, leases: leases, log: log.With("role", role), stepper: stepper, wake: wake, role: role, quiet: max(idleMost, time.Duration(t.Partitions)*idleEach)}
	s.states = make([]State, t.Partitions)
	for p := range s.states {
		s.states[p] = State{Partition: ledger.Partition(p), Phase: Standby}
	}
	return s
}

// States returns the partitions in order.
func (s *Service) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := slices.Clone(s.states)
	for i := range states {
		if s.away != "" && states[i].Phase == Running {
			states[i].Phase, states[i].Detail = Waiting, s.away
		}
	}
	return states
}

// Run works until ctx ends, which is no error, or until something ends the role: the first error, or for a view whose
// partitions are all stopped a *StoppedError. It returns after everything it started has ended.
func (s *Service) Run(ctx context.Context) error {
	inner, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := s.check(inner); err != nil {
		return s.end(ctx, err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex // guards stopped
	stopped := 0
	for p := range ledger.Partition(s.topic.Partitions) {
		wg.Go(func() {
			err := s.partition(inner, p)
			var stop *StoppedError
			if !errors.As(err, &stop) {
				fail(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if stopped++; stopped == int(s.topic.Partitions) {
				fail(err)
			}
		})
	}
	wg.Go(func() { fail(s.watch(inner)) })
	wg.Wait()
	return s.end(ctx, context.Cause(inner))
}

// end turns the cause of the end into Run's result.
func (s *Service) end(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || err == context.Cause(ctx)) {
		return nil
	}
	return fmt.Errorf("run %s: %w", s.role, err)
}

// watch looks at the output topic's identity and settings until they are wrong or ctx ends.
func (s *Service) watch(ctx context.Context) error {
	for {
		if err := pause.For(ctx, checkEvery); err != nil {
			return err
		}
		if err := s.check(ctx); err != nil {
			return err
		}
	}
}

func (s *Service) partition(ctx context.Context, p ledger.Partition) error {
	err := s.leases.Hold(ctx, s.role, p, func(ctx context.Context, l store.Lease) error {
		s.log.Info("partition taken", "partition", p, "term", l.Term)
		s.set(p, Running, "", 0)
		st := s.stepper(l)
		defer st.Close()
		defer s.set(p, Standby, "", 0)
		return s.drive(ctx, p, st)
	})
	var stop *StoppedError
	if errors.As(err, &stop) {
		s.set(p, Stopped, stop.Error(), 0)
		s.log.Error("partition stopped", "partition", p, "cause", err)
	}
	return err
}

// drive steps until ctx ends or an error is not one to wait for.
func (s *Service) drive(ctx context.Context, p ledger.Partition, st Stepper) error {
	var idle growing
	var out outage
	for ctx.Err() == nil {
		pr, err := st.Step(ctx)
		why := pr.Waiting
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if end := out.ends(&s.topic, err); end != nil {
				return end
			}
			why = err.Error()
		}
		if why != "" {
			s.set(p, Waiting, why, pr.Outputs)
			if out.begun() {
				s.log.Warn("waiting", "partition", p, "cause", why)
			}
			if err := pause.For(ctx, out.pause.next(awayFirst, awayMost)); err != nil {
				return err
			}
			continue
		}
		if out.since != (time.Time{}) {
			s.log.Info("going on", "partition", p, "after", time.Since(out.since))
			out = outage{}
		}
		s.set(p, Running, "", pr.Outputs)
		if !pr.Idle {
			idle = 0
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.wake.channel(p):
			idle = 0
		case <-time.After(idle.next(idleFirst, s.quiet)):
		}
	}
	return ctx.Err()
}

func (s *Service) set(p ledger.Partition, phase Phase, detail string, outputs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.states[p]
	st.Phase, st.Detail = phase, detail
	st.Outputs += int64(outputs)
}

// check looks at the output topic until it is right, wrong for good, or ctx ends. While the broker is away it waits.
func (s *Service) check(ctx context.Context) error {
	var out outage
	for {
		err := s.topic.check(ctx)
		if err == nil || ctx.Err() != nil {
			s.reachable("")
			return err
		}
		if end := out.ends(&s.topic, err); end != nil {
			return end
		}
		if out.begun() {
			s.log.Warn("waiting", "cause", err)
		}
		s.reachable(err.Error())
		if err := pause.For(ctx, out.pause.next(awayFirst, awayMost)); err != nil {
			return err
		}
	}
}

func (s *Service) reachable(away string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// outage is a time in which a service was away.
type outage struct {
	since   time.Time
	missing time.Time // since when the topic is not there
	pause   growing
}

// begun reports whether the outage is new.
func (o *outage) begun() bool {
	if o.since != (time.Time{}) {
		return false
	}
	o.since = time.Now()
	return true
}

// ends returns what err ends the role with, nil where it is to be waited for. A topic may be missing for a moment while
// brokers start.
func (o *outage) ends(t *Topic, err error) error {
	if !errors.Is(err, broker.ErrNoTopic) {
		o.missing = time.Time{}
		if away(err) {
			return nil
		}
		return err
	}
	if o.missing == (time.Time{}) {
		o.missing = time.Now()
	}
	if time.Since(o.missing) < missingTopic {
		return nil
	}
	return &broker.IdentityError{Topic: t.Name, What: "incarnation", Want: t.Incarnation, Found: "none: there is no such topic"}
}

// growing is a wait that grows by a quarter each time.
type growing time.Duration

func (p *growing) next(first, most time.Duration) time.Duration {
	now := time.Duration(*p)
	now = min(max(first, now+now/4), most)
	*p = growing(now)
	return now
}
