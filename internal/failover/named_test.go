package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/kafkatest"
	"amends/internal/ledger"
	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/roles"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/worker"
)

// hook is a namespace whose calls somebody hears of before they are made.
type hook struct {
	*postgres.Namespace
	observe func(ledger.Partition)
	commit  func(ledger.Partition)
}

func (h *hook) Observe(ctx context.Context, p ledger.Partition) (store.Owned, error) {
	if h.observe != nil {
		h.observe(p)
	}
	return h.Namespace.Observe(ctx, p)
}

func (h *hook) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	if h.commit != nil {
		h.commit(b.Partition)
	}
	return h.Namespace.Commit(ctx, t, b)
}

// holds locks a partition's row by a session of its own, until end.
func (w *world) holds(p ledger.Partition) (pid uint32, end func()) {
	w.Helper()
	conn, err := pgx.Connect(context.Background(), w.url)
	w.ok(err)
	_, err = conn.Exec(context.Background(), fmt.Sprintf("BEGIN; SELECT FROM amends.partitions WHERE partition = %d FOR UPDATE", p))
	w.ok(err)
	return conn.PgConn().PID(), sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
}

// waits waits until a backend waits for the one of that process id.
func (w *world) waits(pid uint32) {
	w.Helper()
	w.await("backends that wait for the row", "true", func() (string, error) {
		return w.sql("SELECT (count(*) > 0)::text FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", int32(pid))
	})
}

// S12: a worker is told to end while the callback that adjusts its offsets waits for the row. It ends at once and cleanly,
// no position is used, and the next one goes on.
// Shows N3.
func TestS12CancelledInADelayedOffsetAdjustment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.New(t))
	w.load(pipelinetest.Before...)
	blocked := make(chan uint32, 1)
	var once sync.Once
	release := func() {}
	h := &hook{Namespace: w.ns, observe: func(p ledger.Partition) {
		once.Do(func() {
			var pid uint32
			pid, release = w.holds(p)
			blocked <- pid
		})
	}}
	first := w.startOn(h, "a", roles.Source)
	w.waits(<-blocked)
	began := time.Now()
	first.stops()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("ending took %v", took)
	}
	release()
	if got, err := w.sql("SELECT count(*)::text FROM amends.journal"); err != nil || got != "0" {
		t.Errorf("%s decisions without a position, %v", got, err)
	}
	w.load(append(append([]string(nil), pipelinetest.Correction...), pipelinetest.CancelLastDay...)...)
	w.start("b", roles.All()...)
	w.positions(5, 11)
	w.worked()
}

// SC22: while a record that was polled is not decided, the broker sees the rebalance that a second worker asked for wait. On
// Apache Kafka.
// Shows N4.
func TestSC22TheBrokerSeesARebalanceWaitForAPolledDecision(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	w := newWorldOn(t, pgtest.New(t), broker.Options{Brokers: brokers}, kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers), named("polled"))
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	w.ok(err)
	defer client.Close()
	state := func() (string, error) {
		group := worker.GroupID(w.manifest.Config.Namespace)
		all, err := kadm.NewClient(client).DescribeGroups(t.Context(), group)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %d", all[group].State, len(all[group].Members)), all[group].Err
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h := &hook{Namespace: w.ns, commit: func(ledger.Partition) {
		once.Do(func() {
			close(entered)
			<-leave
		})
	}}
	first := w.startOn(h, "first", roles.Source)
	release := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(release) // a test that fails here must not wait for the roles that it holds
	w.load(pipelinetest.Before[0])
	<-entered
	w.await("the group", "Stable 1", state)
	second := w.start("second", roles.Source)
	w.await("the group", "PreparingRebalance 2", state)
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(200 * time.Millisecond) { // less than a revoke waits
		if got, err := state(); err != nil || got != "PreparingRebalance 2" {
			t.Fatalf("the group is %s while a polled record is not decided, %v", got, err)
		}
	}
	release()
	w.await("the group", "Stable 2", state)
	if got, err := w.sql("SELECT string_agg(source_offset::text, ' ') FROM amends.journal"); err != nil || got != "0" {
		t.Errorf("decisions at %q when the rebalance ended, %v", got, err)
	}
	w.load(append(append(append([]string(nil), pipelinetest.Before[1:]...), pipelinetest.Correction...), pipelinetest.CancelLastDay...)...)
	w.start("rest", roles.Relay, roles.View)
	w.positions(5, 11)
	w.worked()
	first.stops()
	second.stops()
}

// malformed are outputs that are none, each of its own kind, by what is wrong.
var malformed = []struct{ what, value string }{
	{"empty", ""}, {"not UTF-8", "{\"schema\":\xff}"}, {"not JSON", `{"schema":1`}, {"an array", `[]`}, {"a number", `7`},
	{"a NUL byte in a member name", "{\"sch\x00ema\":1}"}, {"an escaped NUL in a member name", `{"sch\u0000ema":1}`}, {"a NUL byte behind it", "{}\x00"},
	{"a byte order mark", "\ufeff{}"}, {"trailing data", `{} {}`}, {"a member twice", `{"schema":1,"schema":1}`}, {"unknown schema", `{"schema":2}`},
	{"a missing member", `{"schema":1,"namespace":"demo"}`}, {"null", `{"schema":null}`}, {"a fraction", `{"schema":1.0}`},
	{"a lone surrogate", `{"schema":1,"namespace":"\ud800"}`}, {"deep nesting", strings.Repeat("[", 70) + strings.Repeat("]", 70)},
	{"white space", strings.Replace(right, ":", ": ", 1)}, {"another order", strings.Replace(right, `"schema":1,"namespace":"demo",`, `"namespace":"demo","schema":1,`, 1)},
	{"an escape too many", strings.Replace(right, "widget", `\u0077idget`, 1)}, {"an unknown member", strings.Replace(right, `"repair"`, `"x":0,"repair"`, 1)},
	{"another namespace", strings.Replace(right, "demo", "other", 1)}, {"another partition", strings.Replace(right, `"version":1`, `"version":2`, 1)},
	{"a NUL byte in a later member name", strings.Replace(right, `"repair"`, "\"rep\x00air\"", 1)},
	{"an escaped NUL in a later member name", strings.Replace(right, `"repair"`, `"rep\u0000air"`, 1)},
	{"a withdrawal with a payload", strings.Replace(right, `"present":true`, `"present":false`, 1)}, {"long", strings.Repeat("x", 900_000)},
	{"a NUL in the key", right},
}

// right would be the first output of partition 0.
const right = `{"schema":1,"namespace":"demo","sequence":0,"output":["balance","widget","berlin","2026-01-01"],"version":1,"present":true,"payload":{"close":100},` +
	`"cause":{"partition":0,"offset":0,"txn_id":"T-1","revision":1},"repair":{"index":0,"count":2}}`

// SC21: malformed outputs of every kind, one on a partition each: every partition stops, and what stands there is kept byte
// for byte, NULs and all.
// Shows N9.
func TestSC21MalformedOutputsAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":%d,"quantity_scale":0,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}`, len(malformed))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, pgtest.New(t, pgtest.Fast), func(s *setup) { s.source.ConfigFile = config })
	p, err := broker.NewProducer(w.brokers, w.manifest.Output.Topic, w.manifest.Output.Incarnation)
	w.ok(err)
	defer p.Close()
	value := func(i int) string {
		return strings.Replace(malformed[i].value, `"cause":{"partition":0`, fmt.Sprintf(`"cause":{"partition":%d`, i), 1)
	}
	key := func(i int) string {
		k := `{"item":"widget","location":"berlin"}`
		if malformed[i].value == right {
			k += "\x00"
		}
		return k
	}
	for i := range malformed {
		_, err := p.Produce(t.Context(), ledger.Partition(i), []broker.Message{{Key: []byte(key(i)), Value: []byte(value(i))}})
		w.ok(err)
	}
	for range 2 { // and again after a restart
		var stop *delivery.StoppedError
		if err := w.start("view", roles.View).ends(); !errors.As(err, &stop) {
			t.Fatalf("the view ended by %v", err)
		}
	}
	conn, err := pgx.Connect(t.Context(), w.url)
	w.ok(err)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT partition, output_offset, reason, key, value FROM amends.protocol_errors ORDER BY partition")
	w.ok(err)
	n := 0
	for ; rows.Next(); n++ {
		var at int
		var offset int64
		var reason string
		var k, v []byte
		w.ok(rows.Scan(&at, &offset, &reason, &k, &v))
		if at != n || offset != 0 || reason == "" || string(k) != key(at) || string(v) != value(at) {
			t.Errorf("%s: partition %d offset %d, reason %q: other bytes are kept", malformed[n].what, at, offset, reason)
		}
		t.Logf("%s: %s", malformed[n].what, reason)
	}
	w.ok(rows.Err())
	if n != len(malformed) {
		t.Errorf("%d of %d kept", n, len(malformed))
	}
	if got, err := w.sql("SELECT count(*)::text FROM amends.view_rows"); err != nil || got != "0" {
		t.Errorf("%s rows, %v", got, err)
	}
}
