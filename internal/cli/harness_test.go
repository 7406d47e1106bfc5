package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"amends/internal/cli"
)

// TestMain lets the test binary stand in for both programs.
func TestMain(m *testing.M) {
	switch os.Getenv("AMENDS_TEST_MAIN") {
	case "amends":
		os.Exit(cli.Main(cli.Nested))
	case "amendsctl":
		os.Exit(cli.Main(cli.Flat))
	}
	os.Exit(m.Run())
}

// shell runs commands of one session with one environment, as processes (start, run) or in this process (call).
type shell struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newShell(t *testing.T, env map[string]string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), env: map[string]string{}}
	s.env["AMENDS_DIR"] = filepath.Join(s.dir, "no-stack")
	for k, v := range env {
		s.env[k] = v
	}
	return s
}

func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

func (s *shell) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

// lastLine is the cause on stderr.
func (a answer) lastLine() string {
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	return lines[len(lines)-1]
}

func names(program string) cli.Names { return program == "amendsctl" }

// call runs a command line in this process. Files are named relative to the shell's directory by a leading @.
func (s *shell) call(ctx context.Context, line string) answer {
	s.t.Helper()
	words := s.words(line)
	var stdout, stderr safeBuffer
	code := cli.Run(ctx, cli.Process{Program: words[0], Names: names(words[0]), Args: words[1:], Stdin: strings.NewReader(""),
		Stdout: &stdout, Stderr: &stderr, Getenv: func(k string) string { return s.env[k] }})
	return answer{stdout.String(), stderr.String(), code}
}

// words splits a command line; @name is a file of the shell's directory, 'quoted' words may hold spaces.
func (s *shell) words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	for i, w := range out {
		if strings.HasPrefix(w, "@") {
			out[i] = s.path(w[1:])
		}
	}
	return out
}

// want calls a command line and checks its code and its last word on stderr.
func (s *shell) want(code int, cause, line string) answer {
	s.t.Helper()
	a := s.call(s.t.Context(), line)
	if a.code != code || !strings.Contains(a.lastLine(), cause) {
		s.t.Errorf("%s: code %d, want %d with %q; stderr:\n%s", line, a.code, code, cause, a.stderr)
	}
	return a
}

// command makes a real process of a command line.
func (s *shell) command(line string) (*exec.Cmd, *safeBuffer, *safeBuffer) {
	words := s.words(line)
	cmd := exec.Command(os.Args[0], words[1:]...)
	cmd.Env = append(os.Environ(), "AMENDS_TEST_MAIN="+words[0])
	for k, v := range s.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, stderr := &safeBuffer{}, &safeBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// run runs a command line as a process; it must end with code 0.
func (s *shell) run(line string) string {
	s.t.Helper()
	cmd, stdout, stderr := s.command(line)
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, stderr)
	}
	return stdout.String()
}

// process is a role that runs in the background.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *safeBuffer
	done   chan error
	line   string
}

// start starts a role as a process; the test's end kills it.
func (s *shell) start(line string) *process {
	s.t.Helper()
	cmd, _, stderr := s.command(line)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &process{t: s.t, cmd: cmd, stderr: stderr, done: make(chan error, 1), line: line}
	go func() { p.done <- cmd.Wait() }()
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// stop sends SIGTERM; the process must end with code 0 within 15 s (SC25).
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("%s: %v\n%s", p.line, err, p.stderr)
	}
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("%s: %v\n%s", p.line, err, p.stderr)
		}
	case <-time.After(15 * time.Second):
		p.t.Errorf("%s: still runs after SIGTERM\n%s", p.line, p.stderr)
	}
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
	path, err := filepath.Abs(filepath.Join("..", "..", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
