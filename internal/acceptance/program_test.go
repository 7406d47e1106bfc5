package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"amends/internal/scratch"
)

// programs builds both programs once a test binary and returns their folder.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := scratch.Dir("amends-acceptance-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-o", dir+"/", "amends/cmd/amends", "amends/cmd/amendsctl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
})

// deadline is how long anything that should happen soon may take on a busy machine.
const deadline = 60 * time.Second

// shell runs command lines in a directory of its own, with one environment.
type shell struct {
	t   testing.TB
	dir string
	bin string
	env map[string]string
}

func newShell(t testing.TB) *shell {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, dir: t.TempDir(), bin: bin, env: map[string]string{}}
	s.env["AMENDS_DIR"] = filepath.Join(s.dir, "no-stack") // never a stack that happens to run on this machine
	return s
}

// write makes a file of the shell's directory and returns its path.
func (s *shell) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// command makes a process of a command line, which begins with amends or amendsctl and runs in the shell's directory.
func (s *shell) command(line string) (cmd *exec.Cmd, stdout, stderr *text) {
	words := strings.Fields(line)
	cmd = exec.Command(filepath.Join(s.bin, words[0]), words[1:]...)
	cmd.Dir = s.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AMENDS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	for k, v := range s.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, stderr = &text{}, &text{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

// lastLine is the cause that a command names.
func (a answer) lastLine() string {
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	return lines[len(lines)-1]
}

// call runs a command line to its end.
func (s *shell) call(line string) answer {
	s.t.Helper()
	cmd, stdout, stderr := s.command(line)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", line, err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// run runs a command line that must end with code 0 and returns what it printed.
func (s *shell) run(line string) string {
	s.t.Helper()
	return s.want(0, "", line).stdout
}

// want runs a command line that must end with the code, its last word on stderr holding the cause.
func (s *shell) want(code int, cause, line string) answer {
	s.t.Helper()
	a := s.call(line)
	if a.code != code || !strings.Contains(a.lastLine(), cause) {
		s.t.Fatalf("%s: code %d, want %d with %q\n%s%s", line, a.code, code, cause, a.stdout, a.stderr)
	}
	return a
}

// process is a role in the background.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *text
	done   chan struct{}
	line   string
}

// start starts a role; the test's end kills it.
func (s *shell) start(line string) *process {
	s.t.Helper()
	cmd, _, stderr := s.command(line)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &process{t: s.t, cmd: cmd, stderr: stderr, done: make(chan struct{}), line: line}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
	})
	return p
}

// stop sends SIGTERM; the process must end with code 0.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("%s: %v\n%s", p.line, err, p.stderr)
	}
	p.ends(0, "")
}

// ends waits for the process, which must end with the code and name the cause.
func (p *process) ends(code int, cause string) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(deadline):
		p.t.Fatalf("%s: still runs\n%s", p.line, p.stderr)
	}
	a := answer{stderr: p.stderr.String(), code: p.cmd.ProcessState.ExitCode()}
	if a.code != code || !strings.Contains(a.lastLine(), cause) {
		p.t.Fatalf("%s: code %d, want %d with %q\n%s", p.line, a.code, code, cause, a.stderr)
	}
}

// text collects what a process writes.
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

// await polls until the condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// fixture is the path of a file of the repository's fixtures.
func fixture(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "fixtures", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t testing.TB, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
