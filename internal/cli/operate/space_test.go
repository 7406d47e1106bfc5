package operate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/cli"
	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// space is one namespace of the worked example on a real database and an in-process broker, and the commands on it.
type space struct {
	t       *testing.T
	env     map[string]string
	dir     string
	brokers []string
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

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
	x := &space{t: t, dir: t.TempDir(), brokers: kafkatest.Embedded(t), env: map[string]string{"AMENDS_DATABASE_URL": pgtest.New(t)}}
	x.env["AMENDS_DIR"] = x.path("no-stack")
	x.env["AMENDS_BROKERS"] = strings.Join(x.brokers, ",")
	x.write("config.json", config)
	x.write("source.json", x.want(0, "", "source create -namespace demo -config @config.json -topic "+sourceTopic).stdout)
	x.write("pipeline.json", x.want(0, "", "output create -manifest @source.json -topic "+outputTopic).stdout)
	x.env["AMENDS_MANIFEST"] = x.path("pipeline.json")
	return x
}

func (x *space) path(name string) string { return filepath.Join(x.dir, name) }

func (x *space) write(name, text string) {
	x.t.Helper()
	if err := os.WriteFile(x.path(name), []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// call runs a command line in this process; @name is a file of the space.
func (x *space) call(ctx context.Context, line string) answer {
	x.t.Helper()
	return x.callWith(ctx, maps.Clone(x.env), line)
}

func (x *space) callWith(ctx context.Context, env map[string]string, line string) answer {
	x.t.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		if strings.HasPrefix(w, "@") {
			words[i] = x.path(w[1:])
		}
	}
	var stdout, stderr safeBuffer
	code := cli.Run(ctx, cli.Process{Program: "amends", Args: words, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(k string) string { return env[k] }})
	if strings.HasSuffix(line, " json") && stdout.String() != "" {
		conforms(x.t, words[0], stdout.String())
	}
	return answer{stdout.String(), stderr.String(), code}
}

// want calls a command line and checks its code and the last line of stderr.
func (x *space) want(code int, cause, line string) answer {
	x.t.Helper()
	a := x.call(x.t.Context(), line)
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	if a.code != code || !strings.Contains(lines[len(lines)-1], cause) {
		x.t.Errorf("%s: code %d, want %d with %q\n%s\n%s", line, a.code, code, cause, a.stdout, a.stderr)
	}
	return a
}

// first returns the first line of an answer.
func (a answer) first() string {
	line, _, _ := strings.Cut(a.stdout, "\n")
	return line
}

// object reads a JSON answer.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.stdout), &v); err != nil {
		t.Fatalf("%v in %q, %s", err, a.stdout, a.stderr)
	}
	return v
}

// has checks that an answer holds each text.
func (a answer) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.stdout, text) {
			t.Errorf("no %q in\n%s", text, a.stdout)
		}
	}
}

// run starts roles and returns what ends them; they must end well.
func (x *space) run(roles string) (stop func()) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(x.t.Context())
	ended := make(chan answer, 1)
	env := maps.Clone(x.env)
	go func() { ended <- x.callWith(ctx, env, "run -role "+roles) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if a := <-ended; a.code != 0 {
				x.t.Errorf("%s ended with %d: %s", roles, a.code, a.stderr)
			}
		})
	}
	x.t.Cleanup(stop)
	return stop
}

// load publishes assertions.
func (x *space) load(lines ...string) {
	x.t.Helper()
	x.write("load.jsonl", strings.Join(lines, "\n")+"\n")
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
	conn, err := pgx.Connect(x.t.Context(), x.env["AMENDS_DATABASE_URL"])
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
		a := x.call(x.t.Context(), line)
		if a.code == code && strings.HasPrefix(a.first(), prefix) {
			return a
		}
		if time.Since(began) > 30*time.Second {
			x.t.Fatalf("%s: code %d, want %d with %q\n%s\n%s", line, a.code, code, prefix, a.stdout, a.stderr)
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

// safeBuffer is a buffer that a role may still write to.
type safeBuffer struct {
	b  bytes.Buffer
	mu sync.Mutex
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
