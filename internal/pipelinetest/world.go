package pipelinetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/store/memory"
	"amends/internal/wire"
)

// World is one namespace with its topics and store.
type World struct {
	Admin    *broker.Admin
	DB       *memory.DB
	NS       *memory.Namespace
	Manifest *manifest.Manifest // bound
	Source   *manifest.Manifest // unbound
	Broker   broker.Options
	producer *broker.Producer
}

// New makes a bound namespace with the worked example's configuration, or with the given config object (S2).
func New(t testing.TB, config string) *World {
	t.Helper()
	brokers := kafkatest.Embedded(t)
	ctx := t.Context()
	w := &World{DB: memory.New(), Broker: broker.Options{Brokers: brokers, RequestTimeout: 5 * time.Second, DeliveryTimeout: 5 * time.Second}}
	admin, err := broker.Open(w.Broker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	w.Admin = admin
	source := provision.Source{Namespace: "demo", Topic: "amends-test-source", Replication: 1}
	if config != "" {
		source.ConfigFile = filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(source.ConfigFile, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if w.Source, err = provision.CreateSource(ctx, admin, source); err != nil {
		t.Fatal(err)
	}
	if w.NS, err = w.DB.Init(ctx, w.Source.Config, w.Source.SourceTopic); err != nil {
		t.Fatal(err)
	}
	if w.Manifest, err = provision.CreateOutput(ctx, admin, w.NS, w.Source, provision.Output{Topic: "amends-test-output", Replication: 1}); err != nil {
		t.Fatal(err)
	}
	return w
}

// Values publishes assertions in order, keys and partitions derived.
func (w *World) Values(t testing.TB, values ...string) {
	t.Helper()
	for _, v := range values {
		a, code, problem := wire.ParseValue([]byte(v))
		if code != 0 {
			t.Fatalf("%s: %v %v", v, code, problem)
		}
		p, ok := w.Manifest.Config.Route(a.Key)
		if !ok {
			t.Fatalf("%s: unknown key", v)
		}
		w.Publish(t, p, broker.Message{Key: wire.AppendKey(nil, a.Key), Value: []byte(v)})
	}
}

// Publish publishes records as they are.
func (w *World) Publish(t testing.TB, p ledger.Partition, messages ...broker.Message) {
	t.Helper()
	if w.producer == nil {
		w.producer = w.produces(t, w.Manifest.SourceTopic, w.Manifest.Config.SourceIncarnation)
	}
	if _, err := w.producer.Produce(t.Context(), p, messages); err != nil {
		t.Fatal(err)
	}
}

func (w *World) produces(t testing.TB, topic, incarnation string) *broker.Producer {
	t.Helper()
	p, err := broker.NewProducer(w.Broker, topic, incarnation)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Settle runs every stage once: what was published is then in the view.
func (w *World) Settle(t testing.TB) {
	t.Helper()
	w.Work(t)
	w.Relay(t)
	w.View(t)
}

// read returns the visible records of a partition from a position to the topic's present end, and that end.
func (w *World) read(ctx context.Context, t testing.TB, topic, incarnation string, p ledger.Partition, from ledger.Frontier) ([]ledger.SourceRecord, ledger.Frontier) {
	t.Helper()
	r, err := broker.NewReader(w.Broker, topic, incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stable, err := w.Admin.Stable(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	var out []ledger.SourceRecord
	at, err := r.ReadTo(ctx, p, from, ledger.Frontier(stable[p]), func(rec ledger.SourceRecord) error {
		out = append(out, rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, at
}

// The worked example, a file a stage.
var (
	Before = []string{
		`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":100}`,
		`{"schema":1,"txn_id":"T-2","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-02","kind":"issue","quantity":20}`,
		`{"schema":1,"txn_id":"T-3","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-03","kind":"issue","quantity":30}`,
	}
	Correction    = []string{`{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":70}`}
	CancelLastDay = []string{`{"schema":1,"txn_id":"T-3","revision":2,"state":"cancelled","item":"widget","location":"berlin"}`}
)
