package operate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// space is one namespace of the worked example on a real database and an in-process broker, and the commands on it.
type space struct {
	*programtest.Shell
	t       *testing.T
	brokers []string
}

// answer is what a command ended with.
type answer struct{ programtest.Answer }

// config is the worked example's key on partition 0, and a second key on partition 1; other keys are open.
const config = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,
	"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
	{"item":"gadget","location":"oslo","partition":1,"opening_balance":0,"threshold":null}],
	"open_keys":{"opening_balance":0,"threshold":null}}`

const (
	sourceTopic = "amends-test-source"
	outputTopic = "amends-test-output"
)

func newSpace(t *testing.T) *space {
	t.Helper()
	return spaceOn(t, kafkatest.Embedded(t))
}

// spaceOn is newSpace on brokers of the test's own.
func spaceOn(t *testing.T, brokers []string) *space {
	t.Helper()
	x := &space{Shell: programtest.New(t), t: t, brokers: brokers}
	x.Env["AMENDS_DATABASE_URL"], x.Env["AMENDS_BROKERS"] = pgtest.New(t), strings.Join(x.brokers, ",")
	x.Write("config.json", config)
	x.Write("source.json", x.want(0, "", "source create -namespace demo -config @config.json -topic "+sourceTopic).Stdout)
	x.Write("pipeline.json", x.want(0, "", "output create -manifest @source.json -topic "+outputTopic).Stdout)
	x.Env["AMENDS_MANIFEST"] = x.Path("pipeline.json")
	return x
}

// call runs a command line in this process. An answer in JSON is as documented.
func (x *space) call(line string) answer {
	x.t.Helper()
	a := answer{x.Call(x.t.Context(), "amends "+line)}
	if strings.HasSuffix(line, " json") && a.Stdout != "" {
		command, _, _ := strings.Cut(line, " ")
		if n := programtest.Conforms(x.t, command, a.Stdout); n != 1 {
			x.t.Errorf("%s: %d JSON values, want 1", line, n)
		}
	}
	return a
}

// want calls a command line and checks its code and the last line of stderr.
func (x *space) want(code int, cause, line string) answer {
	x.t.Helper()
	a := x.call(line)
	if !a.Is(code, cause) {
		x.t.Errorf("%s: code %d, want %d with %q\n%s\n%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a
}

// object reads a JSON answer.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.Stdout), &v); err != nil {
		t.Fatalf("%v in %q, %s", err, a.Stdout, a.Stderr)
	}
	return v
}

// has checks that an answer holds each text.
func (a answer) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.Stdout, text) {
			t.Errorf("no %q in\n%s", text, a.Stdout)
		}
	}
}

// run starts roles and returns what ends them; they must end well.
func (x *space) run(roles string) (stop func()) {
	x.t.Helper()
	return x.Roles("amends run -role " + roles)
}

// load publishes assertions.
func (x *space) load(lines ...string) {
	x.t.Helper()
	x.Write("load.jsonl", strings.Join(lines, "\n")+"\n")
	x.want(0, "published", "source load -file @load.jsonl")
}

// publish writes a record as it is to the source topic or another.
func (x *space) publish(topic string, partition int32, key, value string) {
	x.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(x.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(x.t.Context(), &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
		x.t.Fatal(err)
	}
}

// exec runs SQL that must touch one row.
func (x *space) exec(sql string) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if tag, err := conn.Exec(x.t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
		x.t.Fatalf("%s: %v %v", sql, tag, err)
	}
}

// eventually waits until a command's code and first line are as wanted.
func (x *space) eventually(code int, prefix, line string) answer {
	x.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		a := x.call(line)
		if a.Code == code && strings.HasPrefix(a.First(), prefix) {
			return a
		}
		if time.Since(began) > 90*time.Second {
			x.t.Fatalf("%s: code %d, want %d with %q\n%s\n%s", line, a.Code, code, prefix, a.Stdout, a.Stderr)
		}
	}
}

// active writes an assertion of the worked example's key.
func active(txn string, revision int, day, kind string, quantity int) string {
	return assertion("widget", "berlin", txn, revision, day, kind, quantity)
}

func assertion(item, location, txn string, revision int, day, kind string, quantity int) string {
	b, err := json.Marshal(map[string]any{"schema": 1, "txn_id": txn, "revision": revision, "state": "active", "item": item, "location": location,
		"day": day, "kind": kind, "quantity": quantity})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// worked are the five records of the worked example.
var worked = []string{
	active("T-1", 1, "2026-01-01", "receipt", 100), active("T-2", 1, "2026-01-02", "issue", 20), active("T-3", 1, "2026-01-03", "issue", 30),
	active("T-1", 2, "2026-01-01", "receipt", 70),
	`{"schema":1,"txn_id":"T-3","revision":2,"state":"cancelled","item":"widget","location":"berlin"}`,
}
