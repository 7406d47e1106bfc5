package show_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"amends/internal/cli"
	"amends/internal/showcase/account"
)

// TestMain lets the test binary stand in for both programs, its child processes included.
func TestMain(m *testing.M) {
	switch os.Getenv("AMENDS_TEST_MAIN") {
	case "amends":
		os.Exit(cli.Main(cli.Nested))
	case "amendsctl":
		os.Exit(cli.Main(cli.Flat))
	}
	os.Exit(m.Run())
}

// site runs commands with one environment in a directory of its own.
type site struct {
	t   *testing.T
	dir string
	env []string
}

func newSite(t *testing.T, env ...string) *site {
	t.Helper()
	dir := t.TempDir()
	return &site{t: t, dir: dir, env: append([]string{"AMENDS_DIR=" + filepath.Join(dir, "no-stack"), "AMENDS_TEST_MAIN=amends"}, env...)}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// command makes a process of an amends command line. It dies with this one, and its children with it.
func (s *site) command(line string) (cmd *exec.Cmd, stdout, stderr *text) {
	words := strings.Fields(line)
	cmd = exec.Command(os.Args[0], words[1:]...)
	cmd.Dir = s.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AMENDS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "TMPDIR="+s.dir), s.env...)
	if words[0] == "amendsctl" {
		cmd.Env = append(cmd.Env, "AMENDS_TEST_MAIN=amendsctl")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, stderr = &text{}, &text{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// run runs a command line, which must end with the code.
func (s *site) run(code int, line string) (stdout, stderr string) {
	s.t.Helper()
	cmd, out, said := s.command(line)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", line, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("%s: code %d, want %d\n%s\n%s", line, got, code, out, said)
	}
	return out.String(), said.String()
}

// account reads a report.
func (s *site) account(text string) *account.Account {
	s.t.Helper()
	a := &account.Account{}
	if err := json.Unmarshal([]byte(text), a); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return a
}

// ended checks that no process of a report runs any more.
func ended(t *testing.T, a *account.Account) {
	t.Helper()
	if len(a.Processes) == 0 {
		t.Error("no processes in the report")
	}
	for _, p := range a.Processes {
		if alive(p.PID) {
			t.Errorf("%s, process %d, still runs", p.Name, p.PID)
		}
	}
}

// alive reports whether a process runs; one that has ended and waits for its parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// await waits until fn is true.
func await(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !fn(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute until %s", what)
		}
	}
}

// text is what a process writes while it may still run.
type text struct {
	b  bytes.Buffer
	mu sync.Mutex
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
