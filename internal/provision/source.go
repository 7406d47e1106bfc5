package provision

import (
	"context"
	"errors"
	"fmt"
	"os"

	"amends/internal/broker"
	"amends/internal/manifest"
)

// Creator creates topics with the retention that the contract requires (S9), and describes them.
type Creator interface {
	Describer
	CreateTopic(ctx context.Context, name string, partitions int32, replication int16) (broker.Topic, error)
}

// Source says what source create makes.
type Source struct {
	Namespace   string
	Topic       string
	ConfigFile  string // path of a config object without source_incarnation; "" for the worked example's key
	Replication int16  // 1 or more
}

// NoIncarnation stands for the topic id while a configuration is validated before its topic exists.
const NoIncarnation = "kafka:00000000000000000000000000000000"

// CreateSource validates the configuration, creates the source topic and returns the unbound manifest (S2). Nothing is
// created when the configuration is wrong. An existing topic fails with broker.ErrTopicExists; a lost reply with
// broker.ErrUnknownOutcome, and then the message says how to look.
func CreateSource(ctx context.Context, topics Creator, s Source) (*manifest.Manifest, error) {
	configure, err := configuration(s)
	if err != nil {
		return nil, err
	}
	cfg, err := configure(NoIncarnation)
	if err != nil {
		return nil, err
	}
	if err := (&manifest.Manifest{Config: cfg, SourceTopic: s.Topic}).Check(); err != nil {
		return nil, err
	}
	topic, err := topics.CreateTopic(ctx, s.Topic, cfg.Partitions, s.Replication)
	if err != nil {
		return nil, creationError("source", s.Topic, err)
	}
	if cfg, err = configure(topic.Incarnation); err != nil {
		return nil, err
	}
	if err := broker.CheckIdentity(topic, cfg.SourceIncarnation, cfg.Partitions); err != nil {
		return nil, err
	}
	return &manifest.Manifest{Config: cfg, SourceTopic: s.Topic}, nil
}

// configuration returns how the configuration follows from the incarnation of its topic.
func configuration(s Source) (func(string) (*manifest.Config, error), error) {
	if s.ConfigFile == "" {
		return func(incarnation string) (*manifest.Config, error) { return manifest.Default(s.Namespace, incarnation) }, nil
	}
	raw, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		return nil, &ConfigError{Path: s.ConfigFile, Err: err}
	}
	return func(incarnation string) (*manifest.Config, error) {
		cfg, err := manifest.ParseConfig(raw, incarnation)
		if err != nil {
			return nil, &ConfigError{Path: s.ConfigFile, Err: err}
		}
		if cfg.Namespace != s.Namespace {
			return nil, &ConfigError{Path: s.ConfigFile, Err: fmt.Errorf("its namespace is %q, the flag says %q", cfg.Namespace, s.Namespace)}
		}
		return cfg, nil
	}, nil
}

// ConfigError is a configuration file that cannot be read or is not valid (exit 2).
type ConfigError struct {
	Err  error
	Path string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("read config %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// creationError says what to do about a topic that was not, or perhaps not, created.
func creationError(kind, topic string, err error) error {
	switch {
	case errors.Is(err, broker.ErrTopicExists):
		return fmt.Errorf("create %s topic %s: %w; an existing topic is never adopted: choose another name, or delete it if nothing uses it",
			kind, topic, broker.ErrTopicExists)
	case errors.Is(err, broker.ErrUnknownOutcome):
		return fmt.Errorf("create %s topic %s: %w; it may or may not exist now. To look: kcat -L -t %s, or rpk topic describe %s; if it exists, delete it, then run this again",
			kind, topic, err, topic, topic)
	}
	return fmt.Errorf("create %s topic %s: %w", kind, topic, err)
}
