package acceptance

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// space is a namespace on Apache Kafka and PostgreSQL: a shell whose commands reach it, and a checker's own clients,
// which share no code with the product. source.json is its unbound manifest, pipeline.json its bound one.
type space struct {
	*shell
	kafka          *kgo.Client
	admin          *kadm.Client
	sql            *pgx.Conn
	name           string
	source, output string // topics
	brokers        []string
}

// Configurations without source_incarnation (S2).
const (
	// twoKeys has one key on each of two partitions.
	twoKeys = `{"schema_version":1,"namespace":"accepted","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[
		{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
		{"item":"gadget","location":"paris","partition":1,"opening_balance":0,"threshold":60}]}`
	// openKeys admits every key.
	openKeys = `{"schema_version":1,"namespace":"accepted","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[],
		"open_keys":{"opening_balance":0,"threshold":null}}`
)

// newUnbound makes a namespace without an output. An empty config is the worked example's.
func newUnbound(t testing.TB, config string) *space {
	t.Helper()
	return newIn(t, pgtest.New(t), fmt.Sprintf("accepted-%.8s", strings.ToLower(rand.Text())), config)
}

// newIn makes an unbound namespace in a database; its name stands for the one in config. Tests share a broker, where a name is
// that of a consumer group too.
func newIn(t testing.TB, database, name, config string) *space {
	t.Helper()
	s := &space{shell: newShell(t), name: name, brokers: kafkatest.Brokers(t)}
	s.source, s.output = kafkatest.Topic(t, s.brokers), kafkatest.Topic(t, s.brokers)
	s.Env["AMENDS_DATABASE_URL"], s.Env["AMENDS_BROKERS"] = database, strings.Join(s.brokers, ",")
	s.connect()
	line := fmt.Sprintf("amendsctl source-create -namespace %s -topic %s", name, s.source)
	if config != "" {
		s.Write("config.json", strings.Replace(config, `"namespace":"accepted"`, `"namespace":"`+name+`"`, 1))
		line += " -config config.json"
	}
	s.Write("source.json", s.run(line))
	return s
}

// newSpace makes a bound namespace.
func newSpace(t testing.TB, config string) *space {
	t.Helper()
	s := newUnbound(t, config)
	s.bind()
	return s
}

func (s *space) bind() {
	s.t.Helper()
	s.Write("pipeline.json", s.run("amendsctl output-create -manifest source.json -topic "+s.output))
}

func (s *space) connect() {
	s.t.Helper()
	ctx := context.Background()
	var err error
	if s.sql, err = pgx.Connect(ctx, s.Env["AMENDS_DATABASE_URL"]); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.sql.Close(ctx) })
	s.kafka, err = kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(900_000))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.kafka.Close)
	s.admin = kadm.NewClient(s.kafka)
}

// roles starts every role in one process.
func (s *space) roles() *programtest.Process {
	s.t.Helper()
	return s.Start("amends run -manifest pipeline.json")
}

// load publishes values of S3 through the loader.
func (s *space) load(values ...string) string {
	s.t.Helper()
	path := s.Write("load.jsonl", strings.Join(values, "\n")+"\n")
	return s.run("amendsctl source-load -manifest source.json -file " + path)
}

// raw is a record that may be invalid; nil is absent.
type raw struct {
	key, value []byte
	partition  int
}

// loadRaw publishes records as they are through the loader.
func (s *space) loadRaw(records ...raw) {
	s.t.Helper()
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, `{"partition":%d,"key":%s,"value":%s}`+"\n", r.partition, base64Text(r.key), base64Text(r.value))
	}
	s.run("amendsctl source-load -manifest source.json -format raw -file " + s.Write("load.raw", b.String()))
}

func base64Text(b []byte) string {
	if b == nil {
		return "null"
	}
	return `"` + base64.StdEncoding.EncodeToString(b) + `"`
}

// send publishes records to a partition of any topic, without the product.
func (s *space) send(topic string, partition int32, records ...*kgo.Record) {
	s.t.Helper()
	for _, r := range records {
		r.Topic, r.Partition = topic, partition
	}
	if err := s.kafka.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// consume reads a partition of a topic from its start to its last stable offset, read committed.
func (s *space) consume(topic string, partition int32) []*kgo.Record {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), programtest.Deadline)
	defer cancel()
	ends, err := s.admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		s.t.Fatalf("no end of %s %d: %v", topic, partition, end.Err)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(0)}}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	var out []*kgo.Record
	for at := int64(0); at < end.Offset; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			s.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
		})
	}
	return out
}

// published returns the envelopes of a partition in the order of the topic.
func (s *space) published(partition int32) []string {
	s.t.Helper()
	out := []string{}
	for _, r := range s.consume(s.output, partition) {
		out = append(out, string(r.Value))
	}
	return out
}

// query returns rows, a row's columns joined by a bar as PostgreSQL writes them.
func (s *space) query(sql string, args ...any) []string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programtest.Deadline)
	defer cancel()
	rows, err := s.sql.Query(ctx, "SELECT concat_ws('|', VARIADIC array_remove(ARRAY(SELECT coalesce(value, 'NULL') FROM json_each_text(row_to_json(r))), NULL)) FROM ("+sql+") r", args...)
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// one returns the only value of a query.
func (s *space) one(sql string, args ...any) string {
	s.t.Helper()
	rows := s.query(sql, args...)
	if len(rows) != 1 {
		s.t.Fatalf("%s: %d rows", sql, len(rows))
	}
	return rows[0]
}

// exec changes the database as no operation of the product would.
func (s *space) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.sql.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// frontier waits until a partition's frontier is the given one.
func (s *space) frontier(partition int, want int64) {
	s.t.Helper()
	programtest.Await(s.t, fmt.Sprintf("frontier %d of partition %d", want, partition), func() bool {
		return s.one("SELECT frontier FROM amends.partitions WHERE partition = $1", partition) == fmt.Sprint(want)
	})
}

// viewed waits until the view's output frontier of a partition is the given one.
func (s *space) viewed(partition int, want int64) {
	s.t.Helper()
	programtest.Await(s.t, fmt.Sprintf("view at %d of partition %d", want, partition), func() bool {
		return s.one("SELECT output_offset FROM amends.view_progress WHERE partition = $1", partition) == fmt.Sprint(want)
	})
}

// verified is the documented JSON of verify.
type verified struct {
	Namespace string `json:"namespace"`
	Status    string `json:"status"`
	Mode      string `json:"mode"`
	Boundary  []struct {
		Partition int64 `json:"partition"`
		SourceEnd int64 `json:"source_end"`
		OutputEnd int64 `json:"output_end"`
	} `json:"boundary"`
	Blocked []struct {
		Item     string          `json:"item"`
		Location string          `json:"location"`
		Reasons  json.RawMessage `json:"reasons"`
	} `json:"blocked"`
	Reasons       json.RawMessage `json:"reasons"`
	Schema        int             `json:"schema"`
	SourceRecords int64           `json:"source_records"`
	Rejected      int64           `json:"rejected"`
	Outputs       int64           `json:"outputs"`
}

// verify runs a deep verification, which must end with the code.
func (s *space) verify(code int) verified {
	s.t.Helper()
	budget := programtest.Deadline
	if code == 3 {
		budget = 6 * time.Second // which opening the services is part of, on a busy machine too
	}
	a := s.Must(code, "", fmt.Sprintf("amendsctl verify -manifest pipeline.json -deep -timeout %v -o json", budget))
	var v verified
	if err := json.Unmarshal([]byte(a.Stdout), &v); err != nil {
		s.t.Fatalf("%v in %s", err, a.Stdout)
	}
	return v
}

// manifestOf reads a manifest of the shell's directory.
func (s *space) manifestOf(name string) *manifest.Manifest {
	s.t.Helper()
	m, err := manifest.Parse([]byte(readFile(s.t, s.Dir, name)))
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// Values of S3.

func active(item, location, txn string, revision int, kind string, quantity int64, day string) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"active","item":%q,"location":%q,"day":%q,"kind":%q,"quantity":%d}`,
		txn, revision, item, location, day, kind, quantity)
}

func cancelled(item, location, txn string, revision int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"cancelled","item":%q,"location":%q}`, txn, revision, item, location)
}

// widget and gadget are movements of the two keys of twoKeys, on a day of January 2026.
func widget(txn string, revision int, kind string, quantity int64, day int) string {
	return active("widget", "berlin", txn, revision, kind, quantity, fmt.Sprintf("2026-01-%02d", day))
}

func gadget(txn string, revision int, kind string, quantity int64, day int) string {
	return active("gadget", "paris", txn, revision, kind, quantity, fmt.Sprintf("2026-01-%02d", day))
}

// example is the worked example for a key.
func example(item, location string) (before, correction, cancelLastDay []string) {
	return []string{active(item, location, "T-1", 1, "receipt", 100, "2026-01-01"), active(item, location, "T-2", 1, "issue", 20, "2026-01-02"),
			active(item, location, "T-3", 1, "issue", 30, "2026-01-03")},
		[]string{active(item, location, "T-1", 2, "receipt", 70, "2026-01-01")}, []string{cancelled(item, location, "T-3", 2)}
}

// golden is the worked example's envelopes as written by hand beside package wire, for another namespace, key and partition.
func golden(t testing.TB, namespace, item, location string, partition int) []string {
	t.Helper()
	r := strings.NewReplacer(`"namespace":"demo"`, `"namespace":"`+namespace+`"`, `"widget","berlin"`, `"`+item+`","`+location+`"`,
		`"cause":{"partition":0,`, fmt.Sprintf(`"cause":{"partition":%d,`, partition))
	lines := strings.Split(strings.TrimSuffix(readFile(t, "..", "wire", "testdata", "worked-example.jsonl"), "\n"), "\n")
	if len(lines) != 11 {
		t.Fatalf("%d golden envelopes", len(lines))
	}
	for i := range lines {
		lines[i] = r.Replace(lines[i])
	}
	return lines
}
