package provision

import (
	"context"
	"errors"
	"fmt"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/store"
)

// ErrUnbound: the manifest has no output where one is needed (S9, exit 2).
var ErrUnbound = errors.New("the manifest is not bound to an output topic: bind it with output create, which prints the bound manifest")

// Describer reads what a broker says of a topic.
type Describer interface {
	Topic(ctx context.Context, name string) (broker.Topic, error)
}

// Bindings reads the output binding of a namespace; nil when there is none.
type Bindings interface {
	Binding(ctx context.Context) (*manifest.Output, error)
}

// CheckSource establishes that the source topic is the manifest's: topic id, retention, partition count and a log start
// of 0 (S9, S13). It returns the topic as it is now. A topic that is missing or another one fails with *broker.IdentityError.
func CheckSource(ctx context.Context, d Describer, m *manifest.Manifest) (broker.Topic, error) {
	return check(ctx, d, m.SourceTopic, m.Config.SourceIncarnation, m.Config.Partitions)
}

// CheckOutput does the same for the output topic of a bound manifest; an unbound one fails with ErrUnbound.
func CheckOutput(ctx context.Context, d Describer, m *manifest.Manifest) (broker.Topic, error) {
	if m.Output == nil {
		return broker.Topic{}, ErrUnbound
	}
	return check(ctx, d, m.Output.Topic, m.Output.Incarnation, m.Output.Partitions)
}

// CheckTopics checks the source topic, and the output topic where the manifest is bound. Every role calls it before it
// reads anything.
func CheckTopics(ctx context.Context, d Describer, m *manifest.Manifest) error {
	if _, err := CheckSource(ctx, d, m); err != nil {
		return err
	}
	if m.Output == nil {
		return nil
	}
	_, err := CheckOutput(ctx, d, m)
	return err
}

func check(ctx context.Context, d Describer, name, incarnation string, partitions int32) (broker.Topic, error) {
	t, err := d.Topic(ctx, name)
	if err != nil {
		return t, fmt.Errorf("describe topic %s: %w", name, err)
	}
	return t, broker.CheckIdentity(t, incarnation, partitions)
}

// CheckBinding refuses a manifest whose output the database has not bound, or bound otherwise (S9): store.ErrBinding,
// naming the difference. An unbound manifest passes.
func CheckBinding(ctx context.Context, b Bindings, m *manifest.Manifest) error {
	if m.Output == nil {
		return nil
	}
	bound, err := b.Binding(ctx)
	if err != nil {
		return fmt.Errorf("read output binding: %w", err)
	}
	if bound == nil {
		return fmt.Errorf("%w: the manifest names output %s, but the database has no binding of namespace %s: it is another database, or the output was never created with it",
			store.ErrBinding, m.Output.Topic, m.Config.Namespace)
	}
	if *bound != *m.Output {
		return fmt.Errorf("%w: the manifest names %s, the database bound %s", store.ErrBinding, describe(*m.Output), describe(*bound))
	}
	return nil
}

func describe(o manifest.Output) string {
	return fmt.Sprintf("%s (%s, %s)", o.Topic, o.Incarnation, phrase.Counted(int(o.Partitions), "partition"))
}
