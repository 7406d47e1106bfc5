package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
)

// ErrUnresolved: the outcome of a binding stays unknown after every attempt (S12, exit 12). Running the command again is safe.
var ErrUnresolved = errors.New("outcome unresolved")

// ErrSameTopic: the output topic is the source topic (S9, exit 2).
var ErrSameTopic = errors.New("the output topic must not be the source topic")

// ErrTopicName: the name is none that a broker admits (exit 2).
var ErrTopicName = errors.New(`not a topic name: 1 to 249 of [a-zA-Z0-9._-], and neither "." nor ".."`)

// waits are taken between the attempts of one operation (S12).
var waits = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond}

// Binder binds a namespace to an output, once; repeating the exact binding is idempotent (S9).
type Binder interface {
	Bindings
	Bind(ctx context.Context, o manifest.Output) error
}

// Output says what output create makes.
type Output struct {
	Topic       string
	Replication int16 // 1 or more
}

// CreateOutput creates the output topic with as many partitions as the source, binds the namespace to it and returns the
// bound manifest. Running it again, after a lost reply or a lost output, returns the same manifest. A topic that exists
// and is not this namespace's binding is not adopted (S9).
func CreateOutput(ctx context.Context, topics Creator, ns Binder, m *manifest.Manifest, o Output) (*manifest.Manifest, error) {
	if o.Topic == m.SourceTopic {
		return nil, ErrSameTopic
	}
	if !manifest.ValidTopic(o.Topic) {
		return nil, fmt.Errorf("%w: %q", ErrTopicName, o.Topic)
	}
	if _, err := CheckSource(ctx, topics, m); err != nil {
		return nil, err
	}
	bound, err := ns.Binding(ctx)
	if err != nil {
		return nil, fmt.Errorf("read output binding: %w", err)
	}
	if bound != nil {
		return adopt(ctx, topics, m, o, *bound)
	}
	if m.Output != nil {
		return nil, CheckBinding(ctx, ns, m)
	}
	topic, err := topics.CreateTopic(ctx, o.Topic, m.Config.Partitions, o.Replication)
	if err != nil {
		return nil, creationError("output", o.Topic, err)
	}
	if err := fresh(topic, m.Config.Partitions); err != nil {
		return nil, err
	}
	return bindTo(ctx, ns, m, manifest.Output{Topic: o.Topic, Incarnation: topic.Incarnation, Partitions: topic.Partitions})
}

// BindOutput binds a namespace to an output topic that was created for it, which is known by its incarnation, and returns
// the bound manifest. Repeating the exact binding is idempotent; a topic that is another one now, or holds records before
// it is bound, is refused (S9).
func BindOutput(ctx context.Context, topics Describer, ns Binder, m *manifest.Manifest, out manifest.Output) (*manifest.Manifest, error) {
	bound, err := ns.Binding(ctx)
	if err != nil {
		return nil, fmt.Errorf("read output binding: %w", err)
	}
	if bound != nil {
		return adopt(ctx, topics, &manifest.Manifest{Config: m.Config, SourceTopic: m.SourceTopic, Output: &out}, Output{Topic: out.Topic}, *bound)
	}
	topic, err := check(ctx, topics, out.Topic, out.Incarnation, out.Partitions)
	if err != nil {
		return nil, err
	}
	if err := fresh(topic, m.Config.Partitions); err != nil {
		return nil, err
	}
	return bindTo(ctx, ns, m, out)
}

func bindTo(ctx context.Context, ns Binder, m *manifest.Manifest, out manifest.Output) (*manifest.Manifest, error) {
	if err := bind(ctx, ns, out); err != nil {
		return nil, fmt.Errorf("bind namespace %s to %s: %w", m.Config.Namespace, describe(out), err)
	}
	return &manifest.Manifest{Config: m.Config, SourceTopic: m.SourceTopic, Output: &out}, nil
}

// adopt answers for a namespace that is bound already: the same topic gives the same manifest, any other is refused.
func adopt(ctx context.Context, topics Describer, m *manifest.Manifest, o Output, bound manifest.Output) (*manifest.Manifest, error) {
	if bound.Topic != o.Topic {
		return nil, fmt.Errorf("%w: namespace %s is bound to %s, once and for all", store.ErrBinding, m.Config.Namespace, describe(bound))
	}
	if m.Output != nil && *m.Output != bound {
		return nil, fmt.Errorf("%w: the manifest names %s, the database bound %s", store.ErrBinding, describe(*m.Output), describe(bound))
	}
	result := &manifest.Manifest{Config: m.Config, SourceTopic: m.SourceTopic, Output: &bound}
	_, err := CheckOutput(ctx, topics, result)
	return result, err
}

// fresh refuses a topic that cannot be bound: another retention or partition count, or not empty (S9).
func fresh(t broker.Topic, partitions int32) error {
	if err := broker.CheckIdentity(t, t.Incarnation, partitions); err != nil {
		return err
	}
	for p, end := range t.End {
		if end != 0 {
			return fmt.Errorf("%w: partition %d of %s holds records up to offset %d", store.ErrBindRefused, p, t.Name, end)
		}
	}
	return nil
}

// bind repeats the binding while its outcome is unknown: the exact repetition is idempotent, so it reads what happened
// under the same lock and completes what did not. Once an outcome is unknown only the database's word ends that: that it
// could not be asked says nothing (S12).
func bind(ctx context.Context, ns Binder, out manifest.Output) error {
	unknown := false
	for attempt := 0; ; attempt++ {
		err := ns.Bind(ctx, out)
		if errors.Is(err, store.ErrNotReplicated) {
			return nil
		}
		unknown = unknown || errors.Is(err, store.ErrCommitUnknown)
		if !unknown || err == nil || errors.Is(err, store.ErrBinding) || errors.Is(err, store.ErrBindRefused) {
			return err
		}
		if attempt < len(waits) {
			if e := pause.For(ctx, waits[attempt]); e == nil {
				continue
			}
		}
		return fmt.Errorf("%w; the same command, run again, says whether it is bound; if not, this topic stays unbound and another name is needed: %w",
			ErrUnresolved, err)
	}
}
