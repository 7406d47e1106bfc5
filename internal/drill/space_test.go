package drill

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// space is a bound namespace with the checker's own clients, which share no code with the product. source.json is its
// unbound manifest, pipeline.json its bound one.
type space struct {
	*site
	kafka          *kgo.Client
	admin          *kadm.Client
	sql            *pgxpool.Pool
	name           string
	source, output string // topics
	brokers        []string
	partitions     int
	keys           int // of each partition
}

// shape is how large a namespace is.
type shape struct{ partitions, keys int }

// newSpace makes a namespace on the servers that the test binary shares.
func newSpace(t testing.TB, sh shape) *space {
	t.Helper()
	return newSpaceOn(t, sh, kafkatest.Brokers(t), pgtest.New(t))
}

// newSpaceOn makes a namespace on given servers.
func newSpaceOn(t testing.TB, sh shape, brokers []string, database string) *space {
	t.Helper()
	// The name is the group's too: tests side by side must not meet in one.
	s := &space{site: newSite(t), name: "drilled-" + strings.ToLower(rand.Text()[:8]), brokers: brokers, partitions: sh.partitions, keys: sh.keys}
	s.source, s.output = kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers)
	s.Env["AMENDS_DATABASE_URL"], s.Env["AMENDS_BROKERS"] = database, strings.Join(brokers, ",")
	s.connect()
	s.Write("config.json", s.config())
	manifest, _ := s.run(0, fmt.Sprintf("source create -namespace %s -topic %s -config config.json", s.name, s.source))
	s.Write("source.json", manifest)
	s.bind()
	return s
}

func (s *space) bind() {
	s.t.Helper()
	manifest, _ := s.run(0, "output create -manifest source.json -topic "+s.output)
	s.Write("pipeline.json", manifest)
}

// beside makes another namespace that reads the same source, on the same servers and with an output of its own.
func (s *space) beside(name string) *space {
	s.t.Helper()
	o := &space{site: newSite(s.t), name: name, brokers: s.brokers, partitions: s.partitions, keys: s.keys, source: s.source,
		output: kafkatest.Topic(s.t, s.brokers), kafka: s.kafka, admin: s.admin, sql: s.sql}
	for k, v := range s.Env {
		o.Env[k] = v
	}
	raw, err := os.ReadFile(filepath.Join(s.Dir, "source.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	o.Write("source.json", strings.Replace(string(raw), strconv.Quote(s.name), strconv.Quote(name), 1))
	o.bind()
	return o
}

// The terms of every key.
const (
	opening   = 100
	threshold = 60
)

func item(k int) string     { return fmt.Sprintf("item-%d", k) }
func location(p int) string { return fmt.Sprintf("place-%d", p) }

// config lists every key with its partition.
func (s *space) config() string {
	var keys []string
	for p := range s.partitions {
		for k := range s.keys {
			keys = append(keys, fmt.Sprintf(`{"item":%q,"location":%q,"partition":%d,"opening_balance":%d,"threshold":%d}`, item(k), location(p), p, opening, threshold))
		}
	}
	return fmt.Sprintf(`{"schema_version":1,"namespace":%q,"ledger_origin":"2026-01-01","partitions":%d,"quantity_scale":0,"stock_keys":[%s]}`,
		s.name, s.partitions, strings.Join(keys, ","))
}

func (s *space) connect() {
	s.t.Helper()
	var err error
	if s.sql, err = pgxpool.New(context.Background(), s.Env["AMENDS_DATABASE_URL"]); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.sql.Close)
	s.kafka, err = kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.kafka.Close)
	s.admin = kadm.NewClient(s.kafka)
}

// query returns rows of text; $1 is the namespace's id. The server may be away for a while: it tries again.
func (s *space) query(sql string, args ...any) (out [][]string) {
	s.t.Helper()
	began := time.Now()
	for {
		out, err := s.try(sql, args...)
		if err == nil {
			return out
		}
		if time.Since(began) > deadline {
			s.t.Fatalf("%s: %v", sql, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *space) try(sql string, args ...any) (out [][]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	// Every column as text: simple queries with their arguments inside.
	rows, err := s.sql.Query(ctx, strings.ReplaceAll(sql, "$NS", "(SELECT namespace_id FROM amends.namespaces WHERE namespace = '"+s.name+"')"),
		append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row []string
		for _, v := range rows.RawValues() {
			if v == nil {
				row = append(row, "NULL")
				continue
			}
			row = append(row, string(v))
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// one returns the only row of a query, its columns joined by a bar.
func (s *space) one(sql string, args ...any) string {
	s.t.Helper()
	rows := s.query(sql, args...)
	if len(rows) != 1 {
		s.t.Fatalf("%s: %d rows", sql, len(rows))
	}
	return strings.Join(rows[0], "|")
}

// number returns the only value of a query as a number.
func (s *space) number(sql string, args ...any) int64 {
	s.t.Helper()
	n, err := strconv.ParseInt(s.one(sql, args...), 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// What a role has moved forward, over all partitions.
const (
	decided    = "SELECT coalesce(sum(frontier), 0)::bigint FROM amends.partitions WHERE namespace_id = $NS"
	emitted    = "SELECT coalesce(sum(next_sequence), 0)::bigint FROM amends.partitions WHERE namespace_id = $NS"
	receipted  = "SELECT coalesce(sum(next_sequence), 0)::bigint FROM amends.relay_progress WHERE namespace_id = $NS"
	shown      = "SELECT coalesce(sum(next_sequence), 0)::bigint FROM amends.view_progress WHERE namespace_id = $NS"
	ownerships = "SELECT coalesce(sum(epoch), 0)::bigint FROM amends.partitions WHERE namespace_id = $NS"
	relayTerms = "SELECT coalesce(sum(term), 0)::bigint FROM amends.relay_progress WHERE namespace_id = $NS"
	viewTerms  = "SELECT coalesce(sum(term), 0)::bigint FROM amends.view_progress WHERE namespace_id = $NS"
)

// progress is the number that a role moves forward, and terms the one that a takeover of it does.
func progress(role string) string {
	return map[string]string{"source": decided, "relay": receipted, "view": shown}[role]
}

func terms(role string) string {
	return map[string]string{"source": ownerships, "relay": relayTerms, "view": viewTerms}[role]
}

// positions is the table whose row the role's commits lock.
func positions(role string) string {
	return map[string]string{"source": "partitions", "relay": "relay_progress", "view": "view_progress"}[role]
}

// moves waits until a number grows beyond a former value.
func (s *space) moves(what, sql string, beyond int64) time.Duration {
	s.t.Helper()
	return await(s.t, what, func() bool { return s.number(sql) > beyond })
}

// lock holds the rows of a role's positions until released.
type lock struct {
	s    *space
	conn *pgx.Conn
}

// hold locks the position rows of a role for all partitions, so that its next commit waits.
func (s *space) hold(role string) *lock {
	s.t.Helper()
	return s.holdBy("SELECT 1 FROM amends." + positions(role) + " WHERE namespace_id = (SELECT namespace_id FROM amends.namespaces WHERE namespace = '" + s.name + "') FOR UPDATE")
}

// holdBy holds whatever a statement locks.
func (s *space) holdBy(statement string) *lock {
	s.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(ctx) })
	if _, err := conn.PgConn().Exec(ctx, "BEGIN; "+statement).ReadAll(); err != nil {
		s.t.Fatal(err)
	}
	return &lock{s, conn}
}

// waiting returns the first backend that waits for the lock, waiting for one.
func (l *lock) waiting() (pid string) {
	l.s.t.Helper()
	await(l.s.t, "a commit that waits for the lock", func() bool {
		rows := l.s.query(fmt.Sprintf("SELECT pid FROM pg_stat_activity WHERE %d = ANY(pg_blocking_pids(pid)) ORDER BY pid", l.conn.PgConn().PID()))
		if len(rows) > 0 {
			pid = rows[0][0]
		}
		return pid != ""
	})
	return pid
}

// blocks reports whether a backend waits for the lock.
func (l *lock) blocks(pid string) bool {
	l.s.t.Helper()
	return l.s.one(fmt.Sprintf("SELECT CASE WHEN %d = ANY(pg_blocking_pids(%s)) THEN 'yes' ELSE 'no' END", l.conn.PgConn().PID(), pid)) == "yes"
}

// release gives the rows up; they are free when it returns.
func (l *lock) release() {
	ctx := context.Background()
	_, _ = l.conn.Exec(ctx, "ROLLBACK") // fails where it was released before
	_ = l.conn.Close(ctx)
}
