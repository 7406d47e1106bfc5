package failover

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"amends/internal/broker"
	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pipelinetest"
	"amends/internal/provision"
	"amends/internal/roles"
	"amends/internal/store/postgres"
	"amends/internal/verify"
	"amends/internal/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("amends/internal/embedded/process.supervise"))
}

// patience bounds the waiting for what roles do by themselves on a busy machine.
const patience = 90 * time.Second

// world is a bound namespace on an in-process broker and a real database behind a proxy, which is the address that stays
// when the server becomes another one.
type world struct {
	*testing.T
	proxy    *faultwire.Proxy
	db       *postgres.DB
	ns       *postgres.Namespace
	admin    *broker.Admin
	brokers  broker.Options
	manifest *manifest.Manifest
	url      string // of the database, past the proxy
}

// setup is what a world is made of and a test may want otherwise.
type setup struct {
	database postgres.Options
	source   provision.Source
}

// named gives a namespace, and so a consumer group, a name of its own where tests share a broker.
func named(name string) func(*setup) { return func(s *setup) { s.source.Namespace = name } }

// newWorld makes a namespace in a database, on a broker of its own.
func newWorld(t *testing.T, url string, more ...func(*setup)) *world {
	t.Helper()
	o := broker.Options{Brokers: kafkatest.Embedded(t), FetchWait: 50 * time.Millisecond, RequestTimeout: 5 * time.Second, DeliveryTimeout: 5 * time.Second}
	return newWorldOn(t, url, o, "source", "output", more...)
}

func newWorldOn(t *testing.T, url string, o broker.Options, sourceTopic, outputTopic string, more ...func(*setup)) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{T: t, proxy: faultwire.New(t, url), url: url, brokers: o}
	var err error
	w.admin, err = broker.Open(w.brokers)
	w.ok(err)
	t.Cleanup(w.admin.Close)
	of := setup{postgres.Options{URL: w.proxy.URL(), AllowFsyncOff: true}, provision.Source{Namespace: "demo", Topic: sourceTopic, Replication: 1}}
	for _, change := range more {
		change(&of)
	}
	w.db, err = postgres.Open(ctx, of.database)
	w.ok(err)
	t.Cleanup(w.db.Close)
	w.ok(w.db.Migrate(ctx))
	source, err := provision.CreateSource(ctx, w.admin, of.source)
	w.ok(err)
	w.ns, err = w.db.Init(ctx, source.Config, source.SourceTopic)
	w.ok(err)
	w.manifest, err = provision.CreateOutput(ctx, w.admin, w.ns, source, provision.Output{Topic: outputTopic, Replication: 1})
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// load publishes assertions.
func (w *world) load(values ...string) {
	w.Helper()
	var messages []broker.Message
	for _, v := range values {
		a, code, problem := wire.ParseValue([]byte(v))
		if code != 0 {
			w.Fatalf("%s: %v", v, problem)
		}
		messages = append(messages, broker.Message{Key: wire.AppendKey(nil, a.Key), Value: []byte(v)})
	}
	w.publish(w.manifest.SourceTopic, w.manifest.Config.SourceIncarnation, messages...)
}

func (w *world) publish(topic, incarnation string, messages ...broker.Message) {
	w.Helper()
	p, err := broker.NewProducer(w.brokers, topic, incarnation)
	w.ok(err)
	defer p.Close()
	_, err = p.Produce(w.Context(), 0, messages)
	w.ok(err)
}

// running is the roles of one process.
type running struct {
	w    *world
	stop func() error
	done chan struct{}
	err  error
}

// start runs roles until stop.
func (w *world) start(holder string, which ...roles.Role) *running {
	w.Helper()
	return w.startOn(w.ns, holder, which...)
}

// startOn runs roles on a namespace of the test's own.
func (w *world) startOn(ns roles.Namespace, holder string, which ...roles.Role) *running {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{w: w, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = roles.Run(ctx, roles.Options{Manifest: w.manifest, Namespace: ns, Topics: w.admin, Broker: w.brokers, Holder: holder,
			Server: w.db.Server, Roles: which})
	}()
	r.stop = sync.OnceValue(func() error { cancel(); <-r.done; return r.err })
	w.Cleanup(func() { _ = r.stop() })
	return r
}

// stops fails the test unless the roles stop without an error.
func (r *running) stops() {
	r.w.Helper()
	r.w.ok(r.stop())
}

// ends waits until the roles end by themselves.
func (r *running) ends() error {
	r.w.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.w.Fatal("the roles go on")
	}
	if r.err == nil {
		r.w.Fatal("the roles ended without an error")
	}
	return r.err
}

// await asks until the answer is as wanted; the database may be away meanwhile.
func (w *world) await(what, want string, ask func() (string, error)) {
	w.Helper()
	var got string
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got, err = ask(); err == nil && got == want {
			return
		}
	}
	w.Fatalf("%s: %q, want %q; %v", what, got, want, err)
}

// sql asks the present server.
func (w *world) sql(query string, args ...any) (string, error) {
	return one(w.proxy.URL(), query, args...)
}

// run runs a statement under a URL.
func run(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// one asks for one text under a URL.
func one(url, query string, args ...any) (text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	return text, conn.QueryRow(ctx, query, args...).Scan(&text)
}

// positions waits for frontier, sequence, the relay's sequence and the view's on partition 0.
func (w *world) positions(frontier, sequence int) {
	w.Helper()
	w.await("positions", fmt.Sprintf("%d %d %d %d", frontier, sequence, sequence, sequence), func() (string, error) {
		return w.sql(`SELECT concat_ws(' ', p.frontier, p.next_sequence, r.next_sequence, v.next_sequence)
			FROM amends.partitions p JOIN amends.relay_progress r USING (namespace_id, partition) JOIN amends.view_progress v USING (namespace_id, partition)
			WHERE partition = 0`)
	})
}

// frontier waits for the frontier of partition 0.
func (w *world) frontier(want string) {
	w.Helper()
	w.await("frontier", want, func() (string, error) {
		return w.sql("SELECT frontier::text FROM amends.partitions WHERE partition = 0")
	})
}

// published returns the envelopes of the output topic.
func (w *world) published() (values []string) {
	w.Helper()
	out := w.manifest.Output
	ends, err := w.admin.Ends(w.Context(), out.Topic)
	w.ok(err)
	r, err := broker.NewReader(w.brokers, out.Topic, out.Incarnation)
	w.ok(err)
	defer r.Close()
	_, err = r.ReadTo(w.Context(), 0, 0, ledger.Frontier(ends[0]), func(rec ledger.SourceRecord) error {
		values = append(values, string(rec.Value))
		return nil
	})
	w.ok(err)
	return values
}

// worked checks that everything is as after an undisturbed run of the worked example: the topic's bytes, and a deep
// verification.
func (w *world) worked() {
	w.Helper()
	undisturbed := pipelinetest.New(w.T, "")
	for _, stage := range [][]string{pipelinetest.Before, pipelinetest.Correction, pipelinetest.CancelLastDay} {
		undisturbed.Values(w.T, stage...)
		undisturbed.Settle(w.T)
	}
	want := &world{T: w.T, admin: undisturbed.Admin, brokers: undisturbed.Broker, manifest: undisturbed.Manifest}
	name := func(of *world) string { return fmt.Sprintf(`"namespace":%q`, of.manifest.Config.Namespace) }
	envelopes := want.published()
	for i := range envelopes {
		envelopes[i] = strings.Replace(envelopes[i], name(want), name(w), 1)
	}
	if d := cmp.Diff(envelopes, w.published()); d != "" {
		w.Errorf("published:\n%s", d)
	}
	w.verified()
}

// verified runs a deep verification.
func (w *world) verified() {
	w.Helper()
	m := w.manifest
	job := &verify.Job{Manifest: m, Topics: w.admin, Store: w.ns, Timeout: patience, Deep: true, Live: true,
		Source: func() (verify.Reader, error) {
			return broker.NewReader(w.brokers, m.SourceTopic, m.Config.SourceIncarnation)
		},
		Output: func() (verify.Reader, error) {
			return broker.NewReader(w.brokers, m.Output.Topic, m.Output.Incarnation)
		}}
	report, err := job.Run(w.Context())
	w.ok(err)
	if report.Status != verify.Pass {
		w.Errorf("verify: %+v", report)
	}
}
