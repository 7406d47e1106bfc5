package faultwire_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store"
	"amends/internal/wire"
	"amends/internal/worker"
)

var origin = dayOf("2026-01-01")

func dayOf(s string) ledger.Day {
	d, ok := ledger.ParseDay(s)
	if !ok {
		panic(s)
	}
	return d
}

// batch is what one poll of the source returns.
type batch struct {
	values []string
	next   ledger.Frontier
}

// example is a source: new keys and a malformed record; a correction; control records that only move the frontier.
var example = []batch{
	{[]string{
		`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"receipt","quantity":100}`,
		`{"schema":1,"txn_id":"T-2","revision":1,"state":"active","item":"a","location":"x","day":"2026-01-02","kind":"issue","quantity":20}`,
		"{\x00",
		`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"b","location":"x","day":"2026-01-01","kind":"receipt","quantity":7}`,
	}, 4},
	{[]string{`{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"receipt","quantity":70}`}, 5},
	{nil, 7},
}

// deep is a source with a correction of many days: its page of the view is a large one.
func deep() []batch {
	first := batch{next: deepDays}
	for i := range deepDays {
		first.values = append(first.values, fmt.Sprintf(`{"schema":1,"txn_id":"T-%d","revision":1,"state":"active","item":"a","location":"x","day":%q,"kind":"receipt","quantity":1}`,
			i, (origin+ledger.Day(i)).String()))
	}
	return []batch{first, {[]string{`{"schema":1,"txn_id":"T-0","revision":2,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"receipt","quantity":2}`}, deepDays + 1}}
}

const deepDays = 210

// unblocked is a source whose key is blocked and then corrected on many days: its page of the view is a large one that holds a
// status, so that its rows are few among those in reach.
func unblocked() []batch {
	batches := deep()[:1]
	for i, quantity := range []int{5, 6, 7} {
		revision := 2
		if i == 2 {
			revision = 3
		}
		batches = append(batches, batch{[]string{fmt.Sprintf(`{"schema":1,"txn_id":"T-0","revision":%d,"state":"active","item":"a","location":"x","day":"2026-01-01","kind":"receipt","quantity":%d}`,
			revision, quantity)}, deepDays + 1 + ledger.Frontier(i)})
	}
	return batches
}

// fetched turns a batch into what the client returns.
func (b batch) fetched(from ledger.Frontier) broker.Fetched {
	f := broker.Fetched{From: from, Next: b.next}
	for i, v := range b.values {
		r := ledger.SourceRecord{Offset: ledger.Offset(from) + ledger.Offset(i), Value: []byte(v)}
		if a, rejection, _ := wire.ParseValue(r.Value); rejection == 0 {
			r.Key = wire.AppendKey(nil, a.Key)
		}
		f.Records = append(f.Records, r)
	}
	return f
}

// source looks at the source topic, which is always right.
type source struct{ cfg *manifest.Config }

func (s source) Topic(_ context.Context, name string) (broker.Topic, error) {
	return broker.Topic{Name: name, Incarnation: s.cfg.SourceIncarnation, Cleanup: "delete", RetentionMS: -1, RetentionBytes: -1,
		Partitions: s.cfg.Partitions, Start: []ledger.Offset{0}, End: []ledger.Offset{0}}, nil
}

// member drives the production worker by hand: a clock that only its own waits move.
type member struct {
	life   *worker.Lifecycle
	part   *worker.Partition
	now    time.Time
	failed error
}

func newMember(cfg *manifest.Config, s worker.Store) *member {
	m := &member{now: time.Unix(0, 0)}
	m.within(context.Background(), cfg, s)
	return m
}

// within makes the lifecycle of a role that ends with ctx.
func (m *member) within(ctx context.Context, cfg *manifest.Config, s worker.Store) {
	m.life = worker.NewLifecycle(ctx,
		&worker.Options{Store: s, Topics: source{cfg}, Manifest: &manifest.Manifest{Config: cfg, SourceTopic: "source"}},
		&worker.Drive{
			Start: func(p *worker.Partition) { m.part = p },
			Stop:  func([]*worker.Partition) { m.part = nil },
			Fail:  func(err error) { m.failed = errors.Join(m.failed, err) },
			Hold:  func(ledger.Partition, bool) {},
			Wake:  func() {},
			Clock: func() time.Time { return m.now },
			Pause: func(_ context.Context, d time.Duration) error { m.now = m.now.Add(d); return nil },
			// Every key is worth a snapshot.
			SnapshotRows: 1,
		})
}

// join is the group's part: it assigns until the positions are read, and returns the frontier.
func (m *member) join() (ledger.Frontier, error) {
	for range 20 {
		m.life.Assigned(context.Background(), []ledger.Partition{0})
		at, err := m.life.Positions(context.Background(), []ledger.Partition{0})
		if err == nil {
			return at[0], nil
		}
		if m.failed != nil {
			return 0, m.failed
		}
	}
	return 0, errors.New("not positioned after 20 assignments")
}

// settle steps until nothing is left to do.
func (m *member) settle() error {
	for range 500 {
		pr, err := m.part.Step(context.Background())
		if err != nil || pr.Idle || pr.Done {
			return err
		}
		m.now = m.now.Add(pr.Wait)
	}
	return errors.New("no end after 500 steps")
}

// work runs a worker over a source from the stored frontier on, up to but not including the given one.
func work(cfg *manifest.Config, s worker.Store, batches []batch, end ledger.Frontier) error {
	m := newMember(cfg, s)
	at, err := m.join()
	if err != nil {
		return err
	}
	from := ledger.Frontier(0)
	for _, b := range batches {
		if at <= from && b.next <= end {
			if err := m.life.Dispatch([]broker.Fetched{b.fetched(from)}, func(ledger.Partition, ledger.Frontier) {}); err != nil {
				return err
			}
			if err := m.settle(); err != nil {
				return err
			}
			if got := m.part.Frontier(); got != b.next {
				return fmt.Errorf("the worker stands at %d, not at %d", got, b.next)
			}
		}
		from = b.next
	}
	m.life.Close()
	return m.failed
}

// services is what a relay or a view and their leases need.
type services interface {
	delivery.RelayStore
	delivery.ViewStore
	lease.Store
}

func (c *cell) keeper(ns services) *lease.Keeper {
	return lease.New(ns, "holder", lease.Options{Server: c.database.db.Server, TTL: time.Hour, Renew: time.Hour, Retry: 20 * time.Millisecond})
}

// quickKeeper renews all the time.
func (c *cell) quickKeeper() *lease.Keeper {
	return lease.New(c.ns, "holder", lease.Options{Server: c.database.db.Server, TTL: time.Hour, Renew: 10 * time.Millisecond, Retry: 20 * time.Millisecond})
}

// relay publishes what is pending under a lease of its own.
func (c *cell) relay(ns services) error {
	return c.keeper(ns).Hold(context.Background(), store.Relay, 0, func(ctx context.Context, l store.Lease) error {
		s := delivery.NewRelayStepper(delivery.RelayOptions{Config: c.cfg, Store: ns, Topic: c.topic.delivery(), Serial: true}, l)
		defer s.Close()
		return drive(ctx, s, func(pr delivery.Progress) bool { return pr.Idle })
	})
}

// view materializes what is published under a lease of its own.
func (c *cell) view(ns services) error {
	return c.keeper(ns).Hold(context.Background(), store.View, 0, func(ctx context.Context, l store.Lease) error {
		s := delivery.NewViewStepper(delivery.ViewOptions{Config: c.cfg, Store: ns, Topic: c.topic.delivery()}, l)
		defer s.Close()
		return drive(ctx, s, func(delivery.Progress) bool {
			v, err := c.direct.ViewPosition(ctx, 0)
			must(err)
			return v.Output == ledger.Frontier(len(c.topic.from(0)))
		})
	})
}

// drive does what delivery.Service does: it steps, and waits while the database is away.
func drive(ctx context.Context, s delivery.Stepper, done func(delivery.Progress) bool) error {
	for range 500 {
		pr, err := s.Step(ctx)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			time.Sleep(time.Millisecond)
		case err != nil:
			return err
		case pr.Waiting == "" && done(pr):
			return nil
		}
	}
	return errors.New("no end after 500 steps")
}

// creator creates the output topic.
type creator struct {
	source
	out *topic
}

func (a creator) Topic(ctx context.Context, name string) (broker.Topic, error) {
	if name == "source" {
		return a.source.Topic(ctx, name)
	}
	return a.out.Topic(ctx, name)
}

func (a creator) CreateTopic(ctx context.Context, name string, partitions int32, replication int16) (broker.Topic, error) {
	return a.out.CreateTopic(ctx, name, partitions, replication)
}

// bind runs output create until it succeeds, each time with a topic of its own: one left by a failed run is not adopted.
func (c *cell) bind() error {
	m := &manifest.Manifest{Config: c.cfg, SourceTopic: "source"}
	for try := range 3 {
		name := fmt.Sprintf("output-%d", try)
		out := &topic{incarnation: fmt.Sprintf("kafka:%032x", int64(c.number())<<8+int64(try)+1<<40)}
		bound, err := provision.CreateOutput(context.Background(), creator{source{c.cfg}, out}, c.ns, m, provision.Output{Topic: name, Replication: 1})
		switch class := classOf(err); {
		case err == nil:
			stored, err := c.direct.Binding(context.Background())
			must(err)
			ensure(stored != nil && *stored == *bound.Output, "bound to %v, output create said %v", stored, *bound.Output)
			return nil
		case class != unavailable:
			return fmt.Errorf("try %d: %w", try, err)
		}
	}
	return errors.New("not bound after three runs")
}
