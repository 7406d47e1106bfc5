package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/audit"
	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/reader"
	"amends/internal/verify"
	"amends/internal/wire"
)

// patience bounds the waiting for what roles do by themselves on a busy machine.
const patience = 2 * time.Minute

// world is a bound namespace on an embedded broker of its own and a real database.
type world struct {
	*testing.T
	broker   *embedded.Broker
	dir      string // of the broker
	db       *postgres.DB
	ns       *postgres.Namespace
	admin    *broker.Admin
	brokers  broker.Options
	manifest *manifest.Manifest
	conn     *pgx.Conn // of somebody who changes what is stored
}

// newWorld makes a namespace of the given configuration, nil for the worked example's.
func newWorld(t *testing.T, config []byte) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{T: t, dir: t.TempDir()}
	w.startBroker()
	t.Cleanup(func() {
		w.admin.Close()
		_ = w.broker.Stop()
	})
	url := pgtest.New(t, pgtest.Fast)
	var err error
	w.db, err = postgres.Open(ctx, postgres.Options{URL: url, AllowFsyncOff: true})
	w.ok(err)
	t.Cleanup(w.db.Close)
	w.ok(w.db.Migrate(ctx))
	file := ""
	if config != nil {
		file = filepath.Join(t.TempDir(), "config.json")
		w.ok(os.WriteFile(file, config, 0o600))
	}
	source, err := provision.CreateSource(ctx, w.admin, provision.Source{Namespace: "demo", Topic: "source", Replication: 1, ConfigFile: file})
	w.ok(err)
	w.ns, err = w.db.Init(ctx, source.Config, source.SourceTopic)
	w.ok(err)
	w.manifest, err = provision.CreateOutput(ctx, w.admin, w.ns, source, provision.Output{Topic: "output", Replication: 1})
	w.ok(err)
	w.conn, err = pgx.Connect(ctx, url)
	w.ok(err)
	t.Cleanup(func() { _ = w.conn.Close(context.Background()) })
	return w
}

// begun is the worked example with its roles running and its first stage in the view.
func begun(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.start()
	w.load(pipelinetest.Before...)
	w.settled()
	return w
}

// startBroker starts the broker on its data. It takes the port of last time, or another where that is taken meanwhile.
func (w *world) startBroker() {
	w.Helper()
	started, err := embedded.StartBroker(w.Context(), embedded.BrokerOptions{Dir: w.dir})
	w.ok(err)
	w.broker = started
	w.brokers = broker.Options{Brokers: []string{started.Address()}, FetchWait: 50 * time.Millisecond, RequestTimeout: 5 * time.Second, DeliveryTimeout: 5 * time.Second}
	if w.admin != nil {
		w.admin.Close()
	}
	w.admin, err = broker.Open(w.brokers)
	w.ok(err)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// load publishes values, each to its key's partition; a value that is no assertion goes to partition 0 as it is.
func (w *world) load(values ...string) {
	w.Helper()
	batches := map[ledger.Partition][]broker.Message{}
	for _, v := range values {
		a, code, _ := wire.ParseValue([]byte(v))
		if code != 0 {
			batches[0] = append(batches[0], broker.Message{Key: []byte("no key"), Value: []byte(v)})
			continue
		}
		p, _ := w.manifest.Config.Route(a.Key)
		batches[p] = append(batches[p], broker.Message{Key: wire.AppendKey(nil, a.Key), Value: []byte(v)})
	}
	producer, err := broker.NewProducer(w.brokers, w.manifest.SourceTopic, w.manifest.Config.SourceIncarnation)
	w.ok(err)
	defer producer.Close()
	for p, messages := range batches {
		_, err = producer.Produce(w.Context(), p, messages)
		w.ok(err)
	}
}

// start runs the three roles until stop.
func (w *world) start() (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- roles.Run(ctx, roles.Options{Manifest: w.manifest, Namespace: w.ns, Topics: w.admin, Broker: w.brokers, Holder: "test",
			Server: w.db.Server, Roles: roles.All()})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// settled waits until everything published is in the view.
func (w *world) settled() {
	w.Helper()
	ends, err := w.admin.Ends(w.Context(), w.manifest.SourceTopic)
	w.ok(err)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var states []store.PartitionState
		w.ok(w.ns.Snapshot(w.Context(), func(s store.Snapshot) (err error) {
			states, err = s.Partitions(w.Context())
			return err
		}))
		there := true
		for p, s := range states {
			there = there && s.Owned.Frontier >= ledger.Frontier(ends[p]) && s.View.Sequence == s.Owned.Sequence && s.Relay.Sequence == s.Owned.Sequence
		}
		if there {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("not everything reached the view: %+v", states)
		}
	}
}

// exec changes exactly n rows behind everybody's back.
func (w *world) exec(n int64, sql string, args ...any) {
	w.Helper()
	tag, err := w.conn.Exec(context.Background(), sql, args...)
	if err != nil || tag.RowsAffected() != n {
		w.Fatalf("%s: %d rows, %v", sql, tag.RowsAffected(), err)
	}
}

// options audit w; every source record that is read is counted in read, if that is given.
func (w *world) options(read *int64) audit.Options {
	m := w.manifest
	return audit.Options{Namespace: w.ns, Manifest: m, Topics: w.admin, FullEvery: time.Hour,
		Source: func() (verify.Reader, error) {
			r, err := broker.NewReader(w.brokers, m.SourceTopic, m.Config.SourceIncarnation)
			return counting{r, read}, err
		},
		Output: func() (verify.Reader, error) {
			return broker.NewReader(w.brokers, m.Output.Topic, m.Output.Incarnation)
		}}
}

// counting counts what is read.
type counting struct {
	verify.Reader
	n *int64
}

func (c counting) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	return c.Reader.ReadTo(ctx, p, from, end, func(r ledger.SourceRecord) error {
		if c.n != nil {
			*c.n++
		}
		return fn(r)
	})
}

// job verifies w.
func (w *world) job() *verify.Job {
	o := w.options(nil)
	return &verify.Job{Manifest: w.manifest, Topics: w.admin, Store: w.ns, Source: o.Source, Output: o.Output, Timeout: patience, Live: true}
}

// deep runs a deep verification.
func (w *world) deep() *verify.Report {
	w.Helper()
	j := w.job()
	j.Deep = true
	r, err := j.Run(w.Context())
	w.ok(err)
	return r
}

// state is what the database has of the audit.
func (w *world) state() (state store.AuditState) {
	w.Helper()
	w.ok(w.ns.Look(w.Context(), func(s *reader.Snapshot) (err error) {
		state, err = s.AuditState(w.Context())
		return err
	}))
	return state
}

func (w *world) once(o audit.Options) *audit.Cycle {
	w.Helper()
	c, err := audit.New(o).Once(w.Context())
	w.ok(err)
	return c
}

// is fails unless a cycle has the status.
func (w *world) is(c *audit.Cycle, status verify.Status, full string) {
	w.Helper()
	if c.Status != status || c.Why != full {
		w.Fatalf("%s (full: %q), want %s (%q); reasons %v, first %+v", c.Status, c.Why, status, full, c.Reasons, c.First)
	}
}

// next runs one cycle more of an audit, which must have the status.
func (w *world) next(a *audit.Auditor, status verify.Status, full string) {
	w.Helper()
	c, err := a.Once(w.Context())
	w.ok(err)
	w.is(c, status, full)
}

// receipt is an assertion of one receipt.
func receipt(item, txn string, revision, day, quantity int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":"%s","revision":%d,"state":"active","item":"%s","location":"berlin","day":"2026-01-%02d","kind":"receipt","quantity":%d}`,
		txn, revision, item, day, quantity)
}
