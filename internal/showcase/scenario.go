package showcase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/provision"
)

// Scenario is a demo's namespace. Its topics are amends-<name>-source and amends-<name>-output.
type Scenario struct {
	Name string // also the namespace
	// Config returns the configuration over the source topic's incarnation.
	Config func(sourceIncarnation string) (*manifest.Config, error)
}

// replication is the number of copies of the embedded broker's topics.
const replication = 1

// maxOutputs bounds the output topics that failed creations may leave behind.
const maxOutputs = 100

// Provision returns the scenario's bound manifest and keeps it in the file at path. What is there already is used: a demo
// that was killed between any two steps goes on. open opens, and where needed initialises, the namespace of a manifest.
// An output topic that was created and not bound is left alone, and the next name is taken (S9).
func (s Scenario) Provision(ctx context.Context, topics provision.Creator, path string,
	open func(context.Context, *manifest.Manifest) (provision.Binder, error)) (*manifest.Manifest, error) {
	m, err := s.source(ctx, topics, path)
	if err != nil {
		return nil, err
	}
	ns, err := open(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", s.Name, err)
	}
	bound, err := ns.Binding(ctx)
	if err != nil {
		return nil, fmt.Errorf("read output binding: %w", err)
	}
	o := provision.Output{Topic: "amends-" + s.Name + "-output", Replication: replication}
	if bound != nil {
		o.Topic = bound.Topic
	}
	for n := 2; ; n++ {
		result, err := provision.CreateOutput(ctx, topics, ns, m, o)
		if err == nil {
			return result, write(path, result)
		}
		if !errors.Is(err, broker.ErrTopicExists) || n > maxOutputs {
			return nil, err
		}
		o.Topic = fmt.Sprintf("amends-%s-output-%d", s.Name, n)
	}
}

// source returns the manifest of the source topic, creating the topic where it is missing.
func (s Scenario) source(ctx context.Context, topics provision.Creator, path string) (*manifest.Manifest, error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		return manifest.Parse(raw)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	name := "amends-" + s.Name + "-source"
	empty, err := s.Config(provision.NoIncarnation)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", s.Name, err)
	}
	topic, err := topics.Topic(ctx, name)
	if errors.Is(err, broker.ErrNoTopic) {
		topic, err = topics.CreateTopic(ctx, name, empty.Partitions, replication)
	}
	if err != nil {
		return nil, fmt.Errorf("provide source topic: %w", err)
	}
	config, err := s.Config(topic.Incarnation)
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", s.Name, err)
	}
	return &manifest.Manifest{SourceTopic: name, Config: config}, nil
}

// write replaces the manifest file as a whole.
func write(path string, m *manifest.Manifest) error {
	next := path + ".new"
	if err := os.WriteFile(next, m.Append(nil), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// WorkedExample is the demo's scenario: one stock key, three movements, a correction and a cancellation.
func WorkedExample() Scenario {
	return Scenario{Name: "demo", Config: func(incarnation string) (*manifest.Config, error) {
		return manifest.Default("demo", incarnation)
	}}
}
