package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/worker"
)

// Role is a part of the pipeline that a process can run.
type Role string

// The roles.
const (
	Source Role = "source"
	Relay  Role = "relay"
	View   Role = "view"
	Audit  Role = "audit"
	Web    Role = "web"
)

// All lists the roles that move data, in its order.
func All() []Role { return []Role{Source, Relay, View} }

// Parse returns the roles of the names that a command line gives, each once.
func Parse(names []string) (out []Role, err error) {
	for _, name := range names {
		r := Role(strings.TrimSpace(name))
		if r != Audit && r != Web && !slices.Contains(All(), r) {
			return nil, fmt.Errorf("unknown role %q; the roles are source, relay, view, audit and web", name)
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out, nil
}

// Namespace is a namespace of store/postgres or store/memory.
type Namespace interface {
	worker.Store
	delivery.RelayStore
	delivery.ViewStore
	lease.Store
}

// Options say what runs. Manifest, Namespace, Topics and Roles are required; a relay or a view needs a bound manifest.
type Options struct {
	Manifest  *manifest.Manifest
	Namespace Namespace
	Topics    *broker.Admin
	Broker    broker.Options
	Holder    string // names this process in leases; no other process may use it
	// Server identifies the database server (lease.Options).
	Server    func(context.Context) (store.Server, error)
	Logger    *slog.Logger // nil discards
	Ready     func(ready bool, reason string)
	Roles     []Role
	Workers   int // source members in this process, 0 for one
	NoStandby bool
	// GroupProtocol is how source members share partitions out, broker.Eager unless given.
	GroupProtocol broker.GroupProtocol
	// Audit runs the audit role until its context ends; required where Roles holds it.
	Audit func(context.Context) error
	// Web runs the web role until its context ends; required where Roles holds it. It is given what says, whenever it is called,
	// why the other roles are not ready, nothing when they are.
	Web func(ctx context.Context, waits func() []string) error
}

// Run runs the roles until ctx ends, which drains them and is no error, or until one of them ends: then the others are
// drained too, and its error is returned.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	inner, end := context.WithCancel(ctx)
	defer end()
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	start := func(run func(context.Context) error) {
		wg.Go(func() {
			defer end()
			err := run(inner)
			once.Do(func() { first = err })
		})
	}
	runs, b, err := o.runs()
	if err != nil {
		return err
	}
	for _, run := range runs {
		start(run)
	}
	if slices.Contains(o.Roles, Web) {
		wg.Go(func() {
			if err := o.Web(inner, b.waits); err != nil { // that it ended well says nothing of the others, which may still drain
				once.Do(func() { first = err })
				end()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil && errors.Is(first, context.Canceled) {
		return nil
	}
	return first
}

// runs makes everything that moves or proves data before any of it runs: the board knows all of it from the start.
func (o *Options) runs() (all []func(context.Context) error, b *board, err error) {
	wake := delivery.NewSignal(o.Manifest.Config.Partitions)
	keeper := lease.New(o.Namespace, o.Holder, lease.Options{Server: o.Server, Logger: o.Logger, NoStandby: o.NoStandby})
	b = &board{report: o.Ready}
	for _, r := range o.Roles {
		switch r {
		case Source:
			for range max(o.Workers, 1) {
				all = append(all, o.worker(wake, b.worker()))
			}
		case Relay:
			relay := delivery.NewRelay(delivery.RelayOptions{Config: o.Manifest.Config, Store: o.Namespace, Topic: o.output(), Logger: o.Logger}, keeper, wake)
			b.service(Relay, relay)
			all = append(all, relay.Run)
		case View:
			view := delivery.NewView(delivery.ViewOptions{Config: o.Manifest.Config, Store: o.Namespace, Topic: o.viewed(), Logger: o.Logger}, keeper)
			b.service(View, view)
			all = append(all, view.Run)
		case Audit:
			all = append(all, o.Audit)
		case Web:
		default:
			return nil, nil, fmt.Errorf("run roles: unknown role %q", r)
		}
	}
	return all, b, nil
}

// worker returns one member of the source group, which wakes the relay after each commit that has outputs.
func (o *Options) worker(wake *delivery.Signal, ready func(bool, string)) func(context.Context) error {
	m := o.Manifest
	options := worker.Options{
		Store: notifying{Store: o.Namespace, wake: wake}, Topics: o.Topics, Manifest: m, Log: o.Logger, Ready: ready,
		Join: func(member broker.Member) (worker.Source, error) {
			return broker.NewGroup(broker.GroupOptions{Member: member, Group: worker.GroupID(m.Config.Namespace), Topic: m.SourceTopic,
				Incarnation: m.Config.SourceIncarnation, Options: o.Broker, Protocol: o.GroupProtocol})
		},
	}
	return func(ctx context.Context) error { return worker.Run(ctx, options) }
}

// output returns the bound topic with the ways to open it.
func (o *Options) output() delivery.Topic {
	out := o.Manifest.Output
	return delivery.Topic{
		Topics: o.Topics, Name: out.Topic, Incarnation: out.Incarnation, Partitions: out.Partitions,
		NewProducer: func() (delivery.Producer, error) { return broker.NewProducer(o.Broker, out.Topic, out.Incarnation) },
		NewReader:   func() (delivery.Reader, error) { return broker.NewReader(o.Broker, out.Topic, out.Incarnation) },
	}
}

// viewed is output for a view, which keeps nothing of what a poll returned.
func (o *Options) viewed() delivery.Topic {
	t, reuse := o.output(), o.Broker
	reuse.Reuse = true
	t.NewReader = func() (delivery.Reader, error) { return broker.NewReader(reuse, t.Name, t.Incarnation) }
	return t
}

// notifying is a worker's store that tells the relay beside it what was committed.
type notifying struct {
	worker.Store
	wake *delivery.Signal
}

// Commit commits and, when outputs are pending, wakes the relay.
func (n notifying) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	err := n.Store.Commit(ctx, t, b)
	if err == nil && b.NextSequence > b.FirstSequence {
		n.wake.Notify(b.Partition)
	}
	return err
}
