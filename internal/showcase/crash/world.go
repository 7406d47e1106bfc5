package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"amends/fixtures"
	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/showcase/account"
	"amends/internal/showcase/barrier"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
	"amends/internal/workload"
)

// TakenError says that something of the run's names exists: it is not the run's to touch.
type TakenError struct {
	What string
	Name string
}

// Error says what to do.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s %q exists, and a showcase touches only what it made: choose another -namespace", e.What, e.Name)
}

// storyKey is the stock key of the worked example.
func storyKey() ledger.StockKey { return ledger.StockKey{Item: "widget", Location: "berlin"} }

// seed of the history: every run loads the same one.
const seed = 7

// setting is the worked example's key beside a shop's keys.
func setting(data *workload.Dataset) (workload.Setting, error) {
	example, err := manifest.Default("example", provision.NoIncarnation)
	if err != nil {
		return workload.Setting{}, err
	}
	s := workload.Setting{Keys: example.StockKeys, Origin: example.LedgerOrigin, Partitions: example.Partitions}
	if data != nil {
		s.Origin = data.Setting.Origin
		s.Keys = append(s.Keys, data.Setting.Keys...)
		s.Partitions = max(s.Partitions, data.Setting.Partitions)
	}
	return s, nil
}

func manifestPath(dir string) string { return filepath.Join(dir, "pipeline.json") }

// refuse fails with *TakenError where the namespace, a topic or the directory exists. It creates nothing.
func (r *run) refuse(ctx context.Context) error {
	empty, err := manifest.Default(r.Namespace, provision.NoIncarnation)
	if err != nil {
		return err
	}
	switch _, err := r.DB.Namespace(ctx, empty); {
	case err == nil, errors.Is(err, store.ErrConfig):
		return &TakenError{"namespace", r.Namespace}
	case !errors.Is(err, store.ErrNoNamespace):
		return fmt.Errorf("look for namespace: %w", err)
	}
	for _, topic := range []string{r.account.SourceTopic, r.account.OutputTopic} {
		switch _, err := r.Admin.Topic(ctx, topic); {
		case err == nil:
			return &TakenError{"topic", topic}
		case !errors.Is(err, broker.ErrNoTopic):
			return fmt.Errorf("look for topic: %w", err)
		}
	}
	if _, err := os.Lstat(r.Directory); !errors.Is(err, fs.ErrNotExist) {
		return &TakenError{"directory", r.Directory}
	}
	return nil
}

// provision makes the directory, the topics, the namespace, its binding and the manifest file.
func (r *run) provision(ctx context.Context, s *account.Step) error {
	if err := os.Mkdir(r.Directory, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	first, second, use, err := r.records()
	if err != nil {
		return err
	}
	config := filepath.Join(r.Directory, "config.json")
	if err := os.WriteFile(config, use.AppendFile(nil, r.Namespace), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := errors.Join(r.write("history-1.jsonl", first), r.write("history-2.jsonl", second)); err != nil {
		return err
	}
	m, err := provision.CreateSource(ctx, r.Admin, provision.Source{Namespace: r.Namespace, Topic: r.account.SourceTopic, ConfigFile: config, Replication: r.Copies})
	if err != nil {
		return err
	}
	event(s, "topic %s is created", m.SourceTopic)
	if r.namespace, err = r.DB.Init(ctx, m.Config, m.SourceTopic); err != nil {
		return err
	}
	event(s, "namespace %s is initialised", r.Namespace)
	r.manifest, err = provision.CreateOutput(ctx, r.Admin, r.namespace, m, provision.Output{Topic: r.account.OutputTopic, Replication: r.Copies})
	if err != nil {
		return err
	}
	event(s, "topic %s is created and bound", r.manifest.Output.Topic)
	if err := os.WriteFile(r.account.Manifest, r.manifest.Append(nil), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	r.repeated = make([]int64, m.Config.Partitions)
	err = r.namespace.Look(ctx, func(s *reader.Snapshot) (err error) {
		r.account.Services.PostgreSQL, err = s.ServerVersion(ctx)
		return err
	})
	if err != nil {
		return err
	}
	bound, err := r.namespace.Binding(ctx)
	if err != nil {
		return err
	}
	s.Findings = append(s.Findings, account.Finding{OK: bound != nil && bound.Topic == r.account.OutputTopic,
		Text: fmt.Sprintf("namespace %s, %d partitions, is bound to topic %s", r.Namespace, m.Config.Partitions, r.account.OutputTopic)})
	return r.measure(ctx, s, "at the beginning")
}

// records returns the lines of both parts of the history, and the setting that they need.
func (r *run) records() (first, second []byte, use workload.Setting, err error) {
	if r.Records == 0 {
		use, err = setting(nil)
		return nil, nil, use, err
	}
	data := workload.SyntheticRetail(workload.RetailOptions{Seed: seed, Sales: r.Records})
	use, err = setting(data)
	for i, a := range data.Assertions {
		if 2*i < len(data.Assertions) {
			first = workload.AppendLine(first, a)
		} else {
			second = workload.AppendLine(second, a)
		}
	}
	return first, second, use, err
}

// write makes a file of the run's directory.
func (r *run) write(name string, content []byte) error {
	if len(content) == 0 {
		return nil
	}
	if err := os.WriteFile(filepath.Join(r.Directory, name), content, 0o600); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

// load publishes a file of the run's directory.
func (r *run) load(ctx context.Context, s *account.Step, name string) (int64, error) {
	m := r.manifest
	l := &provision.Load{Manifest: m, Topics: r.Admin, Path: filepath.Join(r.Directory, name), Format: provision.JSONL,
		Emit: func([]provision.Coordinates) error { return nil },
		Guard: func(ctx context.Context) (provision.Guard, error) {
			g, err := r.DB.GuardSource(ctx, m.Config.SourceIncarnation)
			if err != nil {
				return nil, err
			}
			return g, nil
		},
		Publish: func() (provision.Publisher, error) {
			return broker.NewProducer(r.Broker, m.SourceTopic, m.Config.SourceIncarnation)
		}}
	n, err := l.Run(ctx)
	if err == nil {
		event(s, "%s published", account.Count(n, "source record is", "source records are"))
	}
	return n, err
}

// start starts the three roles, worker and view behind barriers, and waits until each has taken its partitions.
func (r *run) start(ctx context.Context, s *account.Step) (err error) {
	if r.worker, err = barrier.Listen(r.Database); err != nil {
		return err
	}
	if r.view, err = barrier.Listen(r.Database); err != nil {
		return err
	}
	if r.source, err = r.spawn(s, "worker 1", "source", r.worker.URL()); err != nil {
		return err
	}
	if r.relay, err = r.spawn(s, "relay 1", "relay", r.Database); err != nil {
		return err
	}
	if r.viewer, err = r.spawn(s, "view 1", "view", r.view.URL()); err != nil {
		return err
	}
	taken := func(p account.Partition) bool { return p.Epoch > 0 && p.RelayTerm > 0 && p.ViewTerm > 0 }
	if err := r.await(ctx, "every role holds every partition", r.every(ctx, taken)); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "every role holds its partitions"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, owned(r.last)...)
	return nil
}

// history loads the first part of the history and the movements of the story, and waits until all of it is in the view.
func (r *run) history(ctx context.Context, s *account.Step) error {
	if err := r.write("story-1.jsonl", []byte(fixtures.Before)); err != nil {
		return err
	}
	files := []string{"story-1.jsonl"}
	if r.Records > 0 {
		files = append(files, "history-1.jsonl")
	}
	var loaded int64
	for _, f := range files {
		n, err := r.load(ctx, s, f)
		if err != nil {
			return err
		}
		loaded += n
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx, s, "the history is in the view"); err != nil {
		return err
	}
	s.Findings = append(s.Findings, decided(r.last, loaded), told(movements(), r.last))
	return nil
}
