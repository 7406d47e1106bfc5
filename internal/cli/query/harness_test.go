package query_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"amends/internal/cli"
	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("AMENDS_TEST_MAIN") != "" {
		os.Exit(cli.Main(cli.Nested))
	}
	os.Exit(m.Run())
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

// space is a bound namespace on a real broker and a real database, with its roles running in this process.
type space struct {
	t   *testing.T
	env map[string]string
	dir string
}

// newSpace creates and binds a namespace. config is the file of source create, "" for the worked example's.
func newSpace(t *testing.T, config string) *space {
	t.Helper()
	brokers := kafkatest.Embedded(t)
	s := newBare(t)
	s.env["AMENDS_DATABASE_URL"], s.env["AMENDS_BROKERS"] = pgtest.New(t), strings.Join(brokers, ",")
	create := "source create -namespace demo -topic demo-source"
	if config != "" {
		create += " -config " + s.write("config.json", config)
	}
	s.write("source.json", s.run(create))
	s.env["AMENDS_MANIFEST"] = s.write("pipeline.json", s.run("output create -manifest "+filepath.Join(s.dir, "source.json")+" -topic demo-output"))
	return s
}

func newBare(t *testing.T) *space {
	s := &space{t: t, dir: t.TempDir(), env: map[string]string{}}
	s.env["AMENDS_DIR"] = filepath.Join(s.dir, "no-stack")
	return s
}

// start runs the roles until the test ends.
func (s *space) start(roles string) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan answer, 1)
	go func() { ended <- s.call(ctx, "run", "-role", roles) }()
	s.t.Cleanup(func() {
		stop()
		if a := <-ended; a.code != 0 {
			s.t.Errorf("roles ended with code %d: %s", a.code, a.stderr)
		}
	})
}

func (s *space) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// load loads values and waits until they are in the view.
func (s *space) load(values ...string) {
	s.t.Helper()
	s.run("source load -file " + s.write("load.jsonl", strings.Join(values, "\n")+"\n"))
	s.want(-1, "verify")
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

func (a answer) first() string {
	line, _, _ := strings.Cut(a.stdout, "\n")
	return line
}

func (s *space) process(args []string, stdout, stderr *safeBuffer) cli.Process {
	return cli.Process{Program: "amends", Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Getenv: func(k string) string { return s.env[k] }}
}

func (s *space) call(ctx context.Context, args ...string) answer {
	var stdout, stderr safeBuffer
	code := cli.Run(ctx, s.process(args, &stdout, &stderr))
	return answer{stdout.String(), stderr.String(), code}
}

// want runs a command line in this process and checks its code; -1 is any of those of verify that say complete.
func (s *space) want(code int, line string) answer {
	s.t.Helper()
	a := s.call(s.t.Context(), strings.Fields(line)...)
	if code == -1 && (a.code == 0 || a.code == 4) {
		return a
	}
	if a.code != code {
		s.t.Fatalf("amends %s: code %d, want %d\n%s%s", line, a.code, code, a.stdout, a.stderr)
	}
	return a
}

func (s *space) run(line string) string {
	s.t.Helper()
	return s.want(0, line).stdout
}

// command makes a real process of a command line.
func (s *space) command(args ...string) (cmd *exec.Cmd, stdout, stderr *safeBuffer) {
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "AMENDS_TEST_MAIN=amends")
	for k, v := range s.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, stderr = &safeBuffer{}, &safeBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// fixture returns the lines of a file of the worked example.
func fixture(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// movement is a value of S3.
func movement(key [2]string, txn string, revision int, day, kind string, quantity int64) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"active","item":%q,"location":%q,"day":%q,"kind":%q,"quantity":%d}`,
		txn, revision, key[0], key[1], day, kind, quantity)
}

func cancelled(key [2]string, txn string, revision int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"cancelled","item":%q,"location":%q}`, txn, revision, key[0], key[1])
}
