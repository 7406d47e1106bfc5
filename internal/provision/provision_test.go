package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
	"amends/internal/store"
	"amends/internal/store/memory"
)

func open(t *testing.T) *broker.Admin {
	t.Helper()
	a, err := broker.Open(broker.Options{Brokers: kafkatest.Embedded(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCreateSource(t *testing.T) {
	t.Parallel()
	a := open(t)
	m, err := provision.CreateSource(t.Context(), a, provision.Source{Namespace: "demo", Topic: "s", Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	topic, err := a.Topic(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.CheckIdentity(topic, m.Config.SourceIncarnation, 2); err != nil {
		t.Error(err)
	}
	again, err := manifest.Parse(m.Append(nil))
	if err != nil || again.Config.Digest() != m.Config.Digest() || again.Output != nil || again.SourceTopic != "s" {
		t.Errorf("%v %+v", err, again)
	}
	_, err = provision.CreateSource(t.Context(), a, provision.Source{Namespace: "demo", Topic: "s", Replication: 1})
	if !errors.Is(err, broker.ErrTopicExists) || !strings.Contains(err.Error(), "never adopted") {
		t.Errorf("existing topic: %v", err)
	}
}

func TestCreateSourceFromConfig(t *testing.T) {
	t.Parallel()
	a := open(t)
	const config = `{"schema_version":1,"namespace":"shop","ledger_origin":"2025-01-01","partitions":3,"quantity_scale":2,"stock_keys":[],
		"open_keys":{"opening_balance":0,"threshold":null}}`
	s := provision.Source{Namespace: "shop", Topic: "shop", Replication: 1, ConfigFile: write(t, config)}
	m, err := provision.CreateSource(t.Context(), a, s)
	if err != nil || m.Config.Partitions != 3 || m.Config.OpenKeys == nil {
		t.Fatalf("%v %+v", err, m)
	}
	for name, bad := range map[string]provision.Source{
		"another namespace": {Namespace: "other", Topic: "bad", Replication: 1, ConfigFile: s.ConfigFile},
		"unknown member":    {Namespace: "shop", Topic: "bad", Replication: 1, ConfigFile: write(t, `{"x":1}`)},
		"no file":           {Namespace: "shop", Topic: "bad", Replication: 1, ConfigFile: "/nowhere"},
	} {
		var fault *provision.ConfigError
		if _, err := provision.CreateSource(t.Context(), a, bad); !errors.As(err, &fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var name *manifest.Error
	if _, err := provision.CreateSource(t.Context(), a, provision.Source{Namespace: "shop", Topic: "a b", Replication: 1}); !errors.As(err, &name) {
		t.Errorf("a name that no topic has: %v", err)
	}
	if _, err := a.Topic(t.Context(), "bad"); !errors.Is(err, broker.ErrNoTopic) {
		t.Errorf("a topic was created for a wrong configuration: %v", err)
	}
}

// lost answers CreateTopic as a broker does whose reply is lost, the topic created or not.
type lost struct {
	*broker.Admin
	create bool
}

func (l lost) CreateTopic(ctx context.Context, name string, partitions int32, replication int16) (broker.Topic, error) {
	if l.create {
		if _, err := l.Admin.CreateTopic(ctx, name, partitions, replication); err != nil {
			return broker.Topic{}, err
		}
	}
	return broker.Topic{}, broker.ErrUnknownOutcome
}

func TestSC41UnknownCreationIsNotAdopted(t *testing.T) {
	t.Parallel()
	a := open(t)
	_, err := provision.CreateSource(t.Context(), lost{a, true}, provision.Source{Namespace: "demo", Topic: "s", Replication: 1})
	if !errors.Is(err, broker.ErrUnknownOutcome) || !strings.Contains(err.Error(), "To look") {
		t.Errorf("source: %v", err)
	}
	w := unbound(t)
	o := provision.Output{Topic: "out", Replication: 1}
	_, err = provision.CreateOutput(t.Context(), lost{w.Admin, true}, w.NS, w.Source, o)
	if !errors.Is(err, broker.ErrUnknownOutcome) {
		t.Errorf("output: %v", err)
	}
	_, err = provision.CreateOutput(t.Context(), w.Admin, w.NS, w.Source, o)
	if !errors.Is(err, broker.ErrTopicExists) {
		t.Errorf("orphan: %v", err)
	}
	if b, err := w.NS.Binding(t.Context()); b != nil || err != nil {
		t.Errorf("bound to an orphan: %+v %v", b, err)
	}
}

// unbound is a namespace of its own without output.
func unbound(t *testing.T) *pipelinetest.World {
	t.Helper()
	w := &pipelinetest.World{Admin: open(t), DB: memory.New()}
	var err error
	if w.Source, err = provision.CreateSource(t.Context(), w.Admin, provision.Source{Namespace: "demo", Topic: "source", Replication: 1}); err != nil {
		t.Fatal(err)
	}
	if w.NS, err = w.DB.Init(t.Context(), w.Source.Config, "source"); err != nil {
		t.Fatal(err)
	}
	return w
}

// flaky loses the reply of a binding, which was or was not committed.
type flaky struct {
	*memory.Namespace
	lose   int
	commit bool
}

func (f *flaky) Bind(ctx context.Context, o manifest.Output) error {
	if f.lose == 0 {
		return f.Namespace.Bind(ctx, o)
	}
	f.lose--
	if f.commit {
		if err := f.Namespace.Bind(ctx, o); err != nil {
			return err
		}
	}
	return store.ErrCommitUnknown
}

func TestSC41BindingReplyLost(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := unbound(t)
			m, err := provision.CreateOutput(t.Context(), w.Admin, &flaky{w.NS, 1, commit}, w.Source, provision.Output{Topic: "out", Replication: 1})
			if err != nil {
				t.Fatal(err)
			}
			bound, err := w.NS.Binding(t.Context())
			if err != nil || bound == nil || *bound != *m.Output {
				t.Errorf("%v %+v %+v", err, bound, m.Output)
			}
		})
	}
	w := unbound(t)
	_, err := provision.CreateOutput(t.Context(), w.Admin, &flaky{w.NS, 3, true}, w.Source, provision.Output{Topic: "out", Replication: 1})
	if !errors.Is(err, provision.ErrUnresolved) {
		t.Errorf("three lost replies: %v", err)
	}
	m, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, w.Source, provision.Output{Topic: "out", Replication: 1})
	if err != nil || m.Output == nil {
		t.Errorf("run again: %v", err)
	}
}

// silent commits the first binding, loses the reply and is away from then on.
type silent struct {
	*memory.Namespace
	binds int
}

func (s *silent) Bind(ctx context.Context, o manifest.Output) error {
	if s.binds++; s.binds > 1 {
		return fmt.Errorf("dial: %w", store.ErrUnavailable)
	}
	return errors.Join(store.ErrCommitUnknown, s.Namespace.Bind(ctx, o))
}

// SC41, S12: a database that is away after a lost reply leaves the outcome unresolved; it is no failure of the binding.
func TestSC41BindingReplyLostAndDatabaseAway(t *testing.T) {
	t.Parallel()
	w := unbound(t)
	ns := &silent{Namespace: w.NS}
	_, err := provision.CreateOutput(t.Context(), w.Admin, ns, w.Source, provision.Output{Topic: "out", Replication: 1})
	if !errors.Is(err, provision.ErrUnresolved) || ns.binds != 3 {
		t.Errorf("%d attempts: %v", ns.binds, err)
	}
	if b, err := w.NS.Binding(t.Context()); b == nil || err != nil {
		t.Errorf("binding: %+v %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w = unbound(t)
	_, err = provision.CreateOutput(ctx, w.Admin, &stopped{silent{Namespace: w.NS}, cancel}, w.Source, provision.Output{Topic: "out", Replication: 1})
	if !errors.Is(err, provision.ErrUnresolved) {
		t.Errorf("stopped after a lost reply: %v", err)
	}
}

// stopped ends the command when the reply is lost.
type stopped struct {
	silent
	cancel context.CancelFunc
}

func (s *stopped) Bind(ctx context.Context, o manifest.Output) error {
	defer s.cancel()
	return s.silent.Bind(ctx, o)
}

func TestSC41CreateOutputIsIdempotentAndBindsOnce(t *testing.T) {
	t.Parallel()
	w := unbound(t)
	o := provision.Output{Topic: "out", Replication: 1}
	first, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, w.Source, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []*manifest.Manifest{w.Source, first} {
		again, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, from, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first.Append(nil)), string(again.Append(nil))); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, w.Source, provision.Output{Topic: "other", Replication: 1}); !errors.Is(err, store.ErrBinding) {
		t.Errorf("another topic: %v", err)
	}
	if _, err := w.Admin.Topic(t.Context(), "other"); !errors.Is(err, broker.ErrNoTopic) {
		t.Errorf("a topic was created for a refused binding: %v", err)
	}
	if _, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, w.Source, provision.Output{Topic: "source", Replication: 1}); !errors.Is(err, provision.ErrSameTopic) {
		t.Errorf("the source as output: %v", err)
	}
	changed := *first
	changed.Output = &manifest.Output{Topic: "out", Incarnation: first.Config.SourceIncarnation, Partitions: 2}
	if _, err := provision.CreateOutput(t.Context(), w.Admin, w.NS, &changed, o); !errors.Is(err, store.ErrBinding) {
		t.Errorf("one field changed: %v", err)
	}
	if err := provision.CheckBinding(t.Context(), w.NS, &changed); !errors.Is(err, store.ErrBinding) {
		t.Errorf("check: %v", err)
	}
}

func TestCheckBinding(t *testing.T) {
	t.Parallel()
	w := unbound(t)
	claims := *w.Source
	claims.Output = &manifest.Output{Topic: "out", Incarnation: w.Source.Config.SourceIncarnation, Partitions: 2}
	if err := provision.CheckBinding(t.Context(), w.NS, w.Source); err != nil {
		t.Errorf("unbound: %v", err)
	}
	if err := provision.CheckBinding(t.Context(), w.NS, &claims); !errors.Is(err, store.ErrBinding) {
		t.Errorf("not bound in the database: %v", err)
	}
	if _, err := provision.CheckOutput(t.Context(), w.Admin, w.Source); !errors.Is(err, provision.ErrUnbound) {
		t.Errorf("check output of an unbound manifest: %v", err)
	}
}
