package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/kafkatest"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/store/postgres"
)

// TestMain finds goroutines that a test left behind, beside the server that the test binary shares.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("amends/internal/embedded/process.supervise"))
}

const twoPartitions = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,
	"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
	{"item":"far","location":"berlin","partition":1,"opening_balance":0,"threshold":60}]}`

var (
	widget = ledger.StockKey{Item: "widget", Location: "berlin"}
	far    = ledger.StockKey{Item: "far", Location: "berlin"}
)

// world is a namespace in memory bound to a topic on an in-process broker. Its outbox is written by hand.
type world struct {
	cfg    *manifest.Config
	ns     namespace
	admin  *broker.Admin
	opts   broker.Options
	topic  delivery.Topic
	now    time.Time
	clock  func(func() time.Time) // of the leases; now unless changed before they are used
	tokens map[ledger.Partition]store.Token
	keys   map[ledger.StockKey]ledger.KeyID
}

// namespace is what the tests use of both stores.
type namespace interface {
	delivery.RelayStore
	delivery.ViewStore
	lease.Store
	Bind(ctx context.Context, o manifest.Output) error
	Claim(ctx context.Context, p ledger.Partition) (store.Owned, error)
	Observe(ctx context.Context, p ledger.Partition) (store.Owned, error)
	Commit(ctx context.Context, t store.Token, b *ledger.Batch) error
	Snapshot(ctx context.Context, fn func(store.Snapshot) error) error
}

// newWorld keeps everything in memory.
func newWorld(t testing.TB, config string) *world {
	t.Helper()
	cfg := parse(t, config)
	var w *world
	read := func() time.Time { return w.now }
	ns, err := memory.NewWithClock(func() time.Time { return read() }).Init(t.Context(), cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	w = worldOf(t, cfg, ns)
	w.clock = func(now func() time.Time) { read = now }
	return w
}

// newPostgresWorld keeps the namespace in a database of its own.
func newPostgresWorld(t testing.TB, config string) *world {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := parse(t, config)
	ns, err := db.Init(t.Context(), cfg, "source")
	if err != nil {
		t.Fatal(err)
	}
	return worldOf(t, cfg, ns)
}

func parse(t testing.TB, config string) *manifest.Config {
	t.Helper()
	cfg, err := manifest.ParseConfig([]byte(config), "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func worldOf(t testing.TB, cfg *manifest.Config, ns namespace) *world {
	t.Helper()
	ctx := t.Context()
	brokers := kafkatest.Embedded(t)
	w := &world{cfg: cfg, ns: ns, opts: broker.Options{Brokers: brokers, FetchWait: 50 * time.Millisecond}, now: time.Unix(1_800_000_000, 0), tokens: map[ledger.Partition]store.Token{},
		keys: map[ledger.StockKey]ledger.KeyID{}}
	var err error
	if w.admin, err = broker.Open(w.opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.admin.Close)
	name := kafkatest.NewTopic(t, brokers, cfg.Partitions)
	found, err := w.admin.Topic(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ns.Bind(ctx, manifest.Output{Topic: name, Incarnation: found.Incarnation, Partitions: cfg.Partitions}); err != nil {
		t.Fatal(err)
	}
	w.topic = delivery.Topic{Topics: w.admin, Name: name, Incarnation: found.Incarnation, Partitions: cfg.Partitions,
		NewProducer: func() (delivery.Producer, error) { return broker.NewProducer(w.opts, name, found.Incarnation) },
		NewReader:   func() (delivery.Reader, error) { return broker.NewReader(w.opts, name, found.Incarnation) }}
	return w
}

// commit appends decisions to the outbox of p, each the next source record, as a worker would.
func (w *world) commit(t testing.TB, p ledger.Partition, decisions ...ledger.Decision) {
	t.Helper()
	ctx := t.Context()
	if _, ok := w.tokens[p]; !ok {
		owned, err := w.ns.Claim(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		w.tokens[p] = owned.Token
	}
	owned, err := w.ns.Observe(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	b := ledger.Batch{Partition: p, Expected: owned.Frontier, Next: owned.Frontier, FirstSequence: owned.Sequence, NextSequence: owned.Sequence}
	for _, d := range decisions {
		d.Offset, d.Class, d.Sequence = ledger.Offset(b.Next), ledger.Applied, b.NextSequence
		id, known := w.keys[d.Assertion.Key]
		if !known {
			id = ledger.KeyID(d.Offset)
			w.keys[d.Assertion.Key] = id
		}
		d.KeyID, d.NewKey = id, !known
		b.Next++
		b.NextSequence += ledger.Sequence(len(d.Changes))
		b.Decisions = append(b.Decisions, d)
	}
	if err := w.ns.Commit(ctx, w.tokens[p], &b); err != nil {
		t.Fatal(err)
	}
}

func decision(key ledger.StockKey, txn string, revision ledger.Revision, changes ...ledger.Change) ledger.Decision {
	return ledger.Decision{Assertion: ledger.Assertion{Key: key, TxnID: txn, Revision: revision, Payload: ledger.Payload{State: ledger.Cancelled}}, Changes: changes}
}

func on(t testing.TB, s string) ledger.Day {
	t.Helper()
	d, ok := ledger.ParseDay(s)
	if !ok {
		t.Fatal(s)
	}
	return d
}

func balance(d ledger.Day, version ledger.Version, closing int64) ledger.Change {
	return ledger.Change{Kind: ledger.Balance, Day: d, Version: version, Present: true, Close: closing}
}

func alert(d ledger.Day, version ledger.Version, previous, closing int64) ledger.Change {
	return ledger.Change{Kind: ledger.Alert, Day: d, Version: version, Present: true, Previous: previous, Close: closing}
}

func withdrawn(kind ledger.OutputKind, d ledger.Day, version ledger.Version) ledger.Change {
	return ledger.Change{Kind: kind, Day: d, Version: version}
}

func ready(version ledger.Version) ledger.Change {
	return ledger.Change{Kind: ledger.TrustStatus, Version: version, Present: true, Status: &ledger.Status{}}
}

// worked is the worked example's decisions, by hand from semantics.md.
func worked(t testing.TB) []ledger.Decision {
	t.Helper()
	d1, d2, d3 := on(t, "2026-01-01"), on(t, "2026-01-02"), on(t, "2026-01-03")
	return []ledger.Decision{
		decision(widget, "T-1", 1, balance(d1, 1, 100), ready(1)),
		decision(widget, "T-2", 1, balance(d2, 1, 80)),
		decision(widget, "T-3", 1, balance(d3, 1, 50), alert(d3, 1, 80, 50)),
		decision(widget, "T-1", 2, balance(d1, 2, 70), balance(d2, 2, 50), alert(d2, 1, 70, 50), balance(d3, 2, 20), withdrawn(ledger.Alert, d3, 2)),
		decision(widget, "T-3", 2, withdrawn(ledger.Balance, d3, 3)),
	}
}

// workedLines is the worked example's eleven envelopes, behind namespace and sequence.
var workedLines = []string{
	`["balance","widget","berlin","2026-01-01"],"version":1,"present":true,"payload":{"close":100},"cause":{"partition":0,"offset":0,"txn_id":"T-1","revision":1},"repair":{"index":0,"count":2}}`,
	`["status","widget","berlin"],"version":1,"present":true,"payload":{"status":"READY","reasons":[],"more":0},"cause":{"partition":0,"offset":0,"txn_id":"T-1","revision":1},"repair":{"index":1,"count":2}}`,
	`["balance","widget","berlin","2026-01-02"],"version":1,"present":true,"payload":{"close":80},"cause":{"partition":0,"offset":1,"txn_id":"T-2","revision":1},"repair":{"index":0,"count":1}}`,
	`["balance","widget","berlin","2026-01-03"],"version":1,"present":true,"payload":{"close":50},"cause":{"partition":0,"offset":2,"txn_id":"T-3","revision":1},"repair":{"index":0,"count":2}}`,
	`["alert","widget","berlin","2026-01-03"],"version":1,"present":true,"payload":{"previous":80,"close":50,"threshold":60},"cause":{"partition":0,"offset":2,"txn_id":"T-3","revision":1},"repair":{"index":1,"count":2}}`,
	`["balance","widget","berlin","2026-01-01"],"version":2,"present":true,"payload":{"close":70},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":0,"count":5}}`,
	`["balance","widget","berlin","2026-01-02"],"version":2,"present":true,"payload":{"close":50},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":1,"count":5}}`,
	`["alert","widget","berlin","2026-01-02"],"version":1,"present":true,"payload":{"previous":70,"close":50,"threshold":60},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":2,"count":5}}`,
	`["balance","widget","berlin","2026-01-03"],"version":2,"present":true,"payload":{"close":20},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":3,"count":5}}`,
	`["alert","widget","berlin","2026-01-03"],"version":2,"present":false,"payload":null,"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":4,"count":5}}`,
	`["balance","widget","berlin","2026-01-03"],"version":3,"present":false,"payload":null,"cause":{"partition":0,"offset":4,"txn_id":"T-3","revision":2},"repair":{"index":0,"count":1}}`,
}

const widgetKey = `{"item":"widget","location":"berlin"}`

func workedEnvelopes() []string {
	out := make([]string, len(workedLines))
	for i, l := range workedLines {
		out[i] = fmt.Sprintf(`{"schema":1,"namespace":"demo","sequence":%d,"output":%s`, i, l)
	}
	return out
}

// publish writes records to the output topic past everything else, as somebody else.
func (w *world) publish(t testing.TB, p ledger.Partition, key string, values ...string) {
	t.Helper()
	pr, err := broker.NewProducer(w.opts, w.topic.Name, w.topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	var m []broker.Message
	for _, v := range values {
		m = append(m, broker.Message{Key: []byte(key), Value: []byte(v)})
	}
	if _, err := pr.Produce(t.Context(), p, m); err != nil {
		t.Fatal(err)
	}
}

// published returns all records of an output partition.
func (w *world) published(t testing.TB, p ledger.Partition) []ledger.SourceRecord {
	t.Helper()
	ends, err := w.admin.Ends(t.Context(), w.topic.Name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := broker.NewReader(w.opts, w.topic.Name, w.topic.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []ledger.SourceRecord
	if _, err := r.ReadTo(t.Context(), p, 0, ledger.Frontier(ends[p]), func(rec ledger.SourceRecord) error {
		out = append(out, rec)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func values(records []ledger.SourceRecord) []string {
	var out []string
	for _, r := range records {
		out = append(out, string(r.Value))
	}
	return out
}

func (w *world) lease(t testing.TB, role store.Role, p ledger.Partition, holder string) store.Lease {
	t.Helper()
	l, err := w.ns.AcquireService(t.Context(), role, p, holder, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// relayOptions are those of a relay without concurrency.
func (w *world) relayOptions() delivery.RelayOptions {
	return delivery.RelayOptions{Config: w.cfg, Store: w.ns, Topic: w.topic, Serial: true}
}

func (w *world) viewOptions() delivery.ViewOptions {
	return delivery.ViewOptions{Config: w.cfg, Store: w.ns, Topic: w.topic}
}

// relay publishes everything pending and closes.
func (w *world) relay(t testing.TB, o delivery.RelayOptions, l store.Lease) error {
	t.Helper()
	s := delivery.NewRelayStepper(o, l)
	defer s.Close()
	return settle(t, s, func(pr delivery.Progress) bool { return pr.Idle })
}

// materialize applies everything published and closes.
func (w *world) materialize(t testing.TB, o delivery.ViewOptions, l store.Lease) error {
	t.Helper()
	ends, err := w.admin.Ends(t.Context(), w.topic.Name)
	if err != nil {
		t.Fatal(err)
	}
	s := delivery.NewViewStepper(o, l)
	defer s.Close()
	return settle(t, s, func(delivery.Progress) bool {
		return w.viewAt(t, l.Partition).Output == ledger.Frontier(ends[l.Partition])
	})
}

func settle(t testing.TB, s delivery.Stepper, done func(delivery.Progress) bool) error {
	t.Helper()
	for range 10_000 {
		pr, err := s.Step(t.Context())
		if err != nil {
			return err
		}
		if done(pr) {
			return nil
		}
		if pr.Idle {
			time.Sleep(time.Millisecond)
		}
	}
	return errors.New("no end after 10,000 steps")
}

func (w *world) viewAt(t testing.TB, p ledger.Partition) store.ViewPosition {
	t.Helper()
	pos, err := w.ns.ViewPosition(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}

func (w *world) relayAt(t testing.TB, p ledger.Partition) store.RelayPosition {
	t.Helper()
	pos, err := w.ns.RelayPosition(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}

// state is what one snapshot holds of a partition.
type state struct {
	rows       []store.ViewRow
	receipts   []store.Receipt
	violations []store.Violation
}

func (w *world) state(t testing.TB, p ledger.Partition) state {
	t.Helper()
	var st state
	err := w.ns.Snapshot(t.Context(), func(s store.Snapshot) error {
		if err := s.ViewRows(t.Context(), p, func(r store.ViewRow) error { st.rows = append(st.rows, r); return nil }); err != nil {
			return err
		}
		all, err := s.Violations(t.Context())
		for _, v := range all {
			if v.Partition == p {
				st.violations = append(st.violations, v)
			}
		}
		if err != nil {
			return err
		}
		st.receipts, err = s.Receipts(t.Context(), p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// show writes rows as "kind day v3 close", in the store's order.
func (st state) show() []string {
	var out []string
	for _, r := range st.rows {
		value := "withdrawn"
		if r.Present {
			value = fmt.Sprint(r.Close)
		}
		out = append(out, fmt.Sprintf("%s %s v%d %s", r.ID.Day, r.ID.Kind, r.Version, value))
	}
	return out
}

var workedRows = []string{
	"2026-01-01 balance v2 70", "2026-01-02 balance v2 50", "2026-01-02 alert v1 50",
	"2026-01-03 balance v3 withdrawn", "2026-01-03 alert v2 withdrawn", "- status v1 0",
}

// checkReceipts: they form a prefix from sequence 0 to next, and each offset holds the outbox's bytes (I8).
func (w *world) checkReceipts(t testing.TB, p ledger.Partition, want []string) {
	t.Helper()
	at := map[ledger.Offset]string{}
	for _, r := range w.published(t, p) {
		at[r.Offset] = string(r.Value)
	}
	next := ledger.Sequence(0)
	for _, r := range w.state(t, p).receipts {
		if r.First != next {
			t.Fatalf("receipt %+v where sequence %d is next", r, next)
		}
		for ; next < r.Next; next++ {
			if got := at[r.Offset+ledger.Offset(next-r.First)]; got != want[next] {
				t.Fatalf("sequence %d, receipt %+v: %s, want %s", next, r, got, want[next])
			}
		}
	}
	if int(next) != len(want) {
		t.Fatalf("receipts end at %d, want %d", next, len(want))
	}
}

// faultyReceipts loses replies and requests of Acknowledge.
type faultyReceipts struct {
	delivery.RelayStore
	fault func(n int, do func() error) error
	n     int
}

func (f *faultyReceipts) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	f.n++
	return f.fault(f.n, func() error { return f.RelayStore.Acknowledge(ctx, l, r) })
}

// faultyProducer loses acknowledgements and sends.
type faultyProducer struct {
	delivery.Producer
	fault func(messages []broker.Message, send func([]broker.Message) ([]ledger.Offset, error)) ([]ledger.Offset, error)
}

func (f *faultyProducer) Produce(ctx context.Context, p ledger.Partition, m []broker.Message) ([]ledger.Offset, error) {
	return f.fault(m, func(part []broker.Message) ([]ledger.Offset, error) { return f.Producer.Produce(ctx, p, part) })
}
