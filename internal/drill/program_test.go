package drill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"amends/internal/pace"
	"amends/internal/scratch"
)

// program builds the program once a test binary, with the race detector in it where the tests have it: a process that saw a
// race ends with code 66.
var program = sync.OnceValues(func() (string, error) {
	dir, err := scratch.Dir("amends-drill-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "amends")
	args := []string{"build", "-o", path}
	if pace.Raced {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "amends/cmd/amends")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// site runs command lines in a directory of its own, with one environment.
type site struct {
	t       testing.TB
	dir     string
	bin     string
	env     map[string]string
	started []*process
}

func newSite(t testing.TB) *site {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), bin: bin, env: map[string]string{}}
	s.env["AMENDS_DIR"] = filepath.Join(s.dir, "no-stack") // never a stack that happens to run on this machine
	t.Cleanup(func() {
		for _, p := range s.started {
			if t.Failed() {
				t.Logf("%s (%d) said last:\n%s", p.args, p.cmd.Process.Pid, p.stderr.last(12))
			}
		}
	})
	return s
}

// write makes a file of the site's directory.
func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// command makes a process of the program's arguments, behind the words of a wrapper if there are any.
func (s *site) command(args string, wrapper ...string) (cmd *exec.Cmd, stdout, stderr *text) {
	words := append(append(wrapper, s.bin), strings.Fields(args)...)
	cmd = exec.Command(words[0], words[1:]...)
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

// run runs a command that must end with the code, and returns what it printed on stdout and its last word on stderr.
func (s *site) run(code int, args string) (stdout, last string) {
	s.t.Helper()
	cmd, out, said := s.command(args)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", args, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("%s: code %d, want %d\n%s%s", args, got, code, out, said)
	}
	return out.String(), said.last(1)
}

// process is a role in the background.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *text
	done   chan struct{}
	args   string
}

// start starts a process; the test's end kills it.
func (s *site) start(args string, wrapper ...string) *process {
	s.t.Helper()
	cmd, _, stderr := s.command(args, wrapper...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &process{t: s.t, cmd: cmd, stderr: stderr, done: make(chan struct{}), args: args}
	s.started = append(s.started, p)
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

// role starts one role of the bound manifest.
func (s *site) role(name string, flags ...string) *process {
	s.t.Helper()
	return s.start(strings.Join(append([]string{"run -manifest pipeline.json -role", name}, flags...), " "))
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: %v", p.args, err)
	}
}

// kill ends the process by SIGKILL; a process that has ended by itself is a failure.
func (p *process) kill() {
	p.t.Helper()
	if p.ended() {
		p.t.Fatalf("%s ended by itself: code %d\n%s", p.args, p.cmd.ProcessState.ExitCode(), p.stderr.last(5))
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// pause stops the process by SIGSTOP and waits until it stands still.
func (p *process) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	await(p.t, p.args+" stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if err != nil {
			p.t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return fields[0] == "T"
	})
}

func (p *process) resume() { p.t.Helper(); p.signal(syscall.SIGCONT) }

// stop sends SIGTERM; the process must end with code 0. It returns how long that took.
func (p *process) stop() time.Duration {
	p.t.Helper()
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.ends(0, "")
	return time.Since(began)
}

// ownership finds what a source process says of its partitions.
var ownership = regexp.MustCompile(`msg="partition(?:s)? (claimed|revoked|lost)".* partitions?="?\[?([0-9 ]+)`)

// owns reports whether a source process has partitions, by its own words.
func (p *process) owns() bool {
	owned := map[string]bool{}
	for _, m := range ownership.FindAllStringSubmatch(p.stderr.String(), -1) {
		for _, partition := range strings.Fields(m[2]) {
			owned[partition] = m[1] == "claimed"
		}
	}
	for _, mine := range owned {
		if mine {
			return true
		}
	}
	return false
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ends waits for the process, which must end with the code and name the cause in its last line.
func (p *process) ends(code int, cause string) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(deadline):
		p.t.Fatalf("%s: still runs\n%s", p.args, p.stderr.last(20))
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.stderr.last(1), cause) {
		p.t.Fatalf("%s: code %d, want %d with %q\n%s", p.args, got, code, cause, p.stderr.last(20))
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

// last returns the last n lines.
func (b *text) last(n int) string {
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
