package restore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// world is a namespace on a real database and an embedded broker, worked on by commands.
type world struct {
	*programtest.Shell
	t     *testing.T
	conn  *pgx.Conn
	admin *broker.Admin
	url   string
	host  []string // brokers
}

// newWorld has topics and a bound manifest pipeline.json of namespace shop, of the worked example's configuration or of the
// config object given.
func newWorld(t *testing.T, config string) *world {
	t.Helper()
	return newWorldOn(t, kafkatest.Embedded(t), config)
}

// newWorldOn is newWorld on a broker of the test's own.
func newWorldOn(t *testing.T, brokers []string, config string) *world {
	t.Helper()
	return newWorldNamed(t, brokers, config, "shop", "shop-source", "shop-output")
}

// newWorldNamed is newWorldOn for a broker that tests share: the namespace, the name of a consumer group too, and its topics are
// the test's own.
func newWorldNamed(t *testing.T, brokers []string, config, namespace, source, output string) *world {
	t.Helper()
	w := &world{Shell: programtest.New(t), t: t, url: pgtest.New(t), host: brokers}
	w.Env["AMENDS_DATABASE_URL"], w.Env["AMENDS_BROKERS"] = w.url, strings.Join(w.host, ",")
	var err error
	if w.conn, err = pgx.Connect(t.Context(), w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.conn.Close(context.Background()) })
	if w.admin, err = broker.Open(broker.Options{Brokers: w.host}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.admin.Close)
	create := "source create -namespace " + namespace + " -topic " + source
	if config != "" {
		create += " -config " + w.Write("config.json", config)
	}
	w.Write("source.json", w.want(0, "", create).Stdout)
	w.Write("pipeline.json", w.want(0, "", "output create -manifest @source.json -topic "+output).Stdout)
	return w
}

func (w *world) manifest(name string) *manifest.Manifest {
	w.t.Helper()
	m, err := manifest.Parse([]byte(w.Read(name)))
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// want calls a command line and checks its code and its last word on stderr.
func (w *world) want(code int, cause, line string) programtest.Answer {
	w.t.Helper()
	a := w.Call(w.t.Context(), "amends "+line)
	if !a.Is(code, cause) {
		w.t.Fatalf("%s: code %d, want %d with %q; stdout:\n%s\nstderr:\n%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a
}

// start starts a command line as a process, with settings that replace the world's; the test's end kills it.
func (w *world) start(line string, settings ...string) *programtest.Process {
	w.t.Helper()
	return w.StartWith("amends "+line, settings...)
}

// signal sends a signal and waits for the end; it returns the exit code.
func signal(t *testing.T, p *programtest.Process, s os.Signal) int {
	t.Helper()
	p.Signal(s)
	return p.Wait().Code
}

// loaded runs the roles of pipeline.json as a process, loads files of the repository's fixtures as one, waits until all is in
// the view and stops the roles.
func (w *world) loaded(files ...string) {
	w.t.Helper()
	w.Write("all.jsonl", w.fixtures(files...))
	w.filled("-file @all.jsonl", 0)
}

// fixtures returns the text of fixtures of the repository as one.
func (w *world) fixtures(names ...string) string {
	w.t.Helper()
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(programtest.Fixture(w.t, name))
		if err != nil {
			w.t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// filled is loaded for a load with those flags, none if "", after which a verification ends with that code.
func (w *world) filled(load string, code int) {
	w.t.Helper()
	p := w.start("run -manifest @pipeline.json")
	if load != "" {
		w.want(0, "", "source load -manifest @pipeline.json "+load)
	}
	w.want(code, "", "verify -manifest @pipeline.json -timeout 5m")
	p.Started()
	if code := signal(w.t, p, syscall.SIGTERM); code != 0 {
		w.t.Fatalf("roles ended with %d\n%s", code, p.Stderr)
	}
}

// dump returns every row of every table as text, by table; of one namespace where its name is given.
func (w *world) dump(namespace string) map[string][]string {
	w.t.Helper()
	ctx := w.t.Context()
	rows, err := w.conn.Query(ctx, `SELECT c.relname, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'namespace_id')
		FROM pg_class AS c WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind = 'r' ORDER BY 1`)
	if err != nil {
		w.t.Fatal(err)
	}
	type table struct {
		Name  string
		Keyed bool
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string][]string{}
	for _, x := range tables {
		where := ""
		if namespace != "" {
			if !x.Keyed {
				continue
			}
			where = fmt.Sprintf(" WHERE t.namespace_id = (SELECT namespace_id FROM amends.namespaces WHERE namespace = '%s')", namespace)
		}
		rows, err := w.conn.Query(ctx, fmt.Sprintf("SELECT t::text FROM amends.%s AS t%s ORDER BY 1", x.Name, where))
		if err != nil {
			w.t.Fatal(err)
		}
		if all[x.Name], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

func (w *world) exec(sql string) {
	w.t.Helper()
	if _, err := w.conn.PgConn().Exec(w.t.Context(), sql).ReadAll(); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) read(sql string) (s string) {
	w.t.Helper()
	if err := w.conn.QueryRow(w.t.Context(), sql).Scan(&s); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// held is a database address behind which one statement waits until the test ends or closes it.
type held struct {
	proxy *faultwire.Proxy
	shot  *faultwire.Shot
	url   string
}

// theEnd names the statement that records the end of a rebuild.
const theEnd = "the end"

// hold makes the first statement of that name wait.
func (w *world) hold(name string) *held {
	w.t.Helper()
	return w.holdWhere(faultwire.Named(name))
}

// holdEnd makes the statement that ends a rebuild wait: the one that follows the record of the verification.
func (w *world) holdEnd() *held {
	w.t.Helper()
	var recorded atomic.Bool
	return w.holdWhere(func(s faultwire.Statement) bool {
		if s.Name == "insert_verification" {
			recorded.Store(true)
		}
		return s.Name == "advance_rebuild" && recorded.Load()
	})
}

func (w *world) holdWhere(when func(faultwire.Statement) bool) *held {
	w.t.Helper()
	proxy := faultwire.New(w.t, w.url)
	return &held{proxy: proxy, url: proxy.URL(), shot: proxy.Arm(faultwire.Hold, 0, when)}
}

// await waits until the statement of a process is held.
func (h *held) await(t *testing.T, p *programtest.Process) {
	t.Helper()
	select {
	case <-h.shot.Fired():
	case <-p.Done():
		t.Fatalf("%s ended with %d before it was held\n%s\n%s", p.Line, p.Wait().Code, p.Stdout, p.Stderr)
	}
}

// close ends the server's side of what was held, as the server does when its client is gone.
func (h *held) close() { h.proxy.Close() }

func (w *world) client() *kadm.Client {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.host...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return kadm.NewClient(c)
}

// truncate deletes what lies below an offset.
func (w *world) truncate(topic string, partition int32, below int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: below, LeaderEpoch: -1})
	if _, err := w.client().DeleteRecords(w.t.Context(), offsets); err != nil {
		w.t.Fatal(err)
	}
}

// recreate makes a topic anew under its name.
func (w *world) recreate(topic string, partitions int32) {
	w.t.Helper()
	if _, err := w.client().DeleteTopics(w.t.Context(), topic); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.admin.CreateTopic(w.t.Context(), topic, partitions, 1); err != nil {
		w.t.Fatal(err)
	}
}
