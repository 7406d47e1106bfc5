package restore_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/broker"
	"amends/internal/cli"
	"amends/internal/faultwire"
	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pgtest"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("AMENDS_TEST_MAIN") != "" {
		os.Exit(cli.Main(cli.Nested))
	}
	os.Exit(m.Run())
}

// world is a namespace on a real database and an embedded broker, worked on by commands.
type world struct {
	t     *testing.T
	conn  *pgx.Conn
	admin *broker.Admin
	env   map[string]string
	dir   string
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
	w := &world{t: t, dir: t.TempDir(), url: pgtest.New(t), host: brokers}
	w.env = map[string]string{"AMENDS_DIR": filepath.Join(w.dir, "no-stack"), "AMENDS_DATABASE_URL": w.url, "AMENDS_BROKERS": strings.Join(w.host, ",")}
	var err error
	if w.conn, err = pgx.Connect(t.Context(), w.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.conn.Close(context.Background()) })
	if w.admin, err = broker.Open(broker.Options{Brokers: w.host}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.admin.Close)
	create := "source create -namespace shop -topic shop-source"
	if config != "" {
		create += " -config " + w.write("config.json", config)
	}
	w.write("source.json", w.want(0, "", create).stdout)
	w.write("pipeline.json", w.want(0, "", "output create -manifest @source.json -topic shop-output").stdout)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) string {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.path(name)
}

func (w *world) manifest(name string) *manifest.Manifest {
	w.t.Helper()
	raw, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := manifest.Parse(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

func (a answer) cause() string {
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	return lines[len(lines)-1]
}

// call runs a command line in this process; @name is a file of the world's directory.
func (w *world) call(line string) answer {
	w.t.Helper()
	var stdout, stderr safeBuffer
	code := cli.Run(w.t.Context(), cli.Process{Program: "amends", Args: w.words(line), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(k string) string { return w.env[k] }})
	return answer{stdout.String(), stderr.String(), code}
}

func (w *world) words(line string) []string {
	words := strings.Fields(line)
	for i, s := range words {
		if strings.HasPrefix(s, "@") {
			words[i] = w.path(s[1:])
		}
	}
	return words
}

// want calls a command line and checks its code and its last word on stderr.
func (w *world) want(code int, cause, line string) answer {
	w.t.Helper()
	a := w.call(line)
	if a.code != code || !strings.Contains(a.cause(), cause) {
		w.t.Fatalf("%s: code %d, want %d with %q; stdout:\n%s\nstderr:\n%s", line, a.code, code, cause, a.stdout, a.stderr)
	}
	return a
}

// process is a command that runs as a process of its own.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *safeBuffer
	done           chan struct{}
	line           string
}

// start starts a command line as a process, with settings that replace the world's; the test's end kills it.
func (w *world) start(line string, settings ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, line: line, done: make(chan struct{}), stdout: &safeBuffer{}, stderr: &safeBuffer{}}
	p.cmd = exec.Command(os.Args[0], w.words(line)...)
	p.cmd.Env = append(os.Environ(), "AMENDS_TEST_MAIN=amends")
	for k, v := range w.env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Env = append(p.cmd.Env, settings...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	w.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// signal sends a signal and waits for the end; it returns the exit code.
func (p *process) signal(s os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v\n%s", p.line, err, p.stderr)
	}
	return p.wait()
}

// wait waits for the end; it returns the exit code, -1 after a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(60 * time.Second):
		p.t.Fatalf("%s: still runs\n%s", p.line, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// loaded runs the roles of pipeline.json as a process, loads files of the repository's fixtures as one, waits until all is in
// the view and stops the roles.
func (w *world) loaded(files ...string) {
	w.t.Helper()
	w.write("all.jsonl", w.fixtures(files...))
	w.filled("-file @all.jsonl", 0)
}

// fixtures returns the text of fixtures of the repository as one.
func (w *world) fixtures(names ...string) string {
	w.t.Helper()
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(fixture(w.t, name))
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
	if code := p.signal(syscall.SIGTERM); code != 0 {
		w.t.Fatalf("roles ended with %d\n%s", code, p.stderr)
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

// safeBuffer is a buffer that a process may still write to.
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

// fixture returns the path of a fixture of the repository.
func fixture(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (w *world) text(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
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
func (h *held) await(p *process) {
	p.t.Helper()
	select {
	case <-h.shot.Fired():
	case <-p.done:
		p.t.Fatalf("%s ended with %d before it was held\n%s\n%s", p.line, p.wait(), p.stdout, p.stderr)
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
