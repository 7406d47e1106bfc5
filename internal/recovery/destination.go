package recovery

import (
	"context"
	"errors"
	"fmt"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

var (
	// ErrDestination: the namespace or the topic is there and is not this rebuild's; nothing of it was changed (exit 13).
	ErrDestination = errors.New("the destination is not this rebuild's")
	// ErrUncertain: whether this rebuild made a topic cannot be told, so that it is kept and never used (exit 12).
	ErrUncertain = errors.New("it cannot be told whether this rebuild made the topic")
	// ErrName: the names given cannot be those of a new namespace and its output (exit 2).
	ErrName = errors.New("not a destination")
)

// Destination is where a rebuild goes, as it is now.
type Destination struct {
	Record   *store.Rebuild     // nil: nothing was begun
	Manifest *manifest.Manifest // of the new namespace; bound once its topic is recorded
}

// look reads what there is of the destination and refuses what is not this rebuild's. It changes nothing.
func (r *Rebuild) look(ctx context.Context) (*Destination, error) {
	if err := r.names(); err != nil {
		return nil, err
	}
	c := *r.Origin.Config
	c.Namespace = r.Namespace
	cfg, err := manifest.New(c)
	if err != nil {
		return nil, err
	}
	d := &Destination{Manifest: &manifest.Manifest{Config: cfg, SourceTopic: r.Origin.SourceTopic}}
	record, exists, err := r.record(ctx)
	if err != nil {
		return nil, err
	}
	if d.Record = record; record == nil && exists {
		return nil, fmt.Errorf("%w: namespace %q exists and no rebuild made it; choose another -namespace", ErrDestination, r.Namespace)
	}
	if record != nil {
		if err := r.ours(record); err != nil {
			return nil, err
		}
		if record.Incarnation != "" {
			d.Manifest.Output = &manifest.Output{Topic: record.Topic, Incarnation: record.Incarnation, Partitions: cfg.Partitions}
		}
	}
	return d, r.topic(ctx, d)
}

// names checks what was asked for, before anything is looked at.
func (r *Rebuild) names() error {
	switch out := r.Origin.Output; {
	case !manifest.ValidNamespace(r.Namespace):
		return fmt.Errorf("%w: -namespace %q: it matches [a-z0-9][a-z0-9._-]{0,63}", ErrName, r.Namespace)
	case r.Namespace == r.Origin.Config.Namespace:
		return fmt.Errorf("%w: -namespace %q is the namespace that is rebuilt; a rebuild goes into a new one", ErrName, r.Namespace)
	case !manifest.ValidTopic(r.Topic):
		return fmt.Errorf("%w: %q", provision.ErrTopicName, r.Topic)
	case r.Topic == r.Origin.SourceTopic:
		return provision.ErrSameTopic
	case out != nil && r.Topic == out.Topic:
		return fmt.Errorf("%w: -topic %q is the output of the namespace that is rebuilt; a rebuild goes into a new one", ErrName, r.Topic)
	}
	return nil
}

// record reads the rebuild's row; exists says whether the namespace is there at all.
func (r *Rebuild) record(ctx context.Context) (record *store.Rebuild, exists bool, err error) {
	err = r.From.Look(ctx, func(s *reader.Snapshot) error {
		record, exists, err = s.Rebuild(ctx, r.Namespace)
		return err
	})
	return record, exists, err
}

// ours refuses the record of another rebuild. A topic that was never recorded as made may be given up for another.
func (r *Rebuild) ours(record *store.Rebuild) error {
	switch {
	case record.Origin != r.Origin.Config.Namespace:
		return fmt.Errorf("%w: namespace %q is a rebuild of %q, not of %q", ErrDestination, r.Namespace, record.Origin, r.Origin.Config.Namespace)
	case record.Topic != r.Topic && record.Phase != store.RebuildCreate:
		return fmt.Errorf("%w: the rebuild of %q into namespace %q goes to topic %s, not %s", ErrDestination, record.Origin, r.Namespace, record.Topic, r.Topic)
	}
	return nil
}

// topic refuses a topic that is there without being recorded, and one that is recorded and another one now.
func (r *Rebuild) topic(ctx context.Context, d *Destination) error {
	found, err := r.Topics.Topic(ctx, r.Topic)
	missing := errors.Is(err, broker.ErrNoTopic)
	switch {
	case err != nil && !missing:
		return fmt.Errorf("describe topic %s: %w", r.Topic, err)
	case d.Manifest.Output != nil && missing:
		return fmt.Errorf("the topic of this rebuild is gone: describe topic %s: %w", r.Topic, err)
	case d.Manifest.Output != nil:
		return broker.CheckIdentity(found, d.Manifest.Output.Incarnation, d.Manifest.Config.Partitions)
	case missing:
		return nil
	case d.Record != nil && d.Record.Topic == r.Topic:
		return r.uncertain(fmt.Sprintf("it was ended while it made topic %s, and now there is %s (%s)", r.Topic, r.Topic, found.Incarnation))
	}
	return fmt.Errorf("%w: topic %s (%s) exists and is never adopted; choose another -topic", ErrDestination, r.Topic, found.Incarnation)
}

// uncertain says what to do about a topic that may or may not be this rebuild's.
func (r *Rebuild) uncertain(why string) error {
	return fmt.Errorf("%w: %s; the topic is kept as it is. Run the same rebuild with another -topic, or look (kcat -L -t %s), delete the topic if nothing uses it, and run the same again",
		ErrUncertain, why, r.Topic)
}
