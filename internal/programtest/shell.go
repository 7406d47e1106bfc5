package programtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"amends/internal/cli"
)

// Shell runs command lines in a directory of its own, with one environment. A line begins with amends or amendsctl; 'quoted'
// words may hold spaces; @name is a file of the directory.
type Shell struct {
	t       testing.TB
	program func(name string) (path, setting string)

	// Env is what the program reads. No AMENDS_ variable of the test's own environment reaches it.
	Env map[string]string
	Dir string
}

// New makes a shell whose processes are the test binary: its TestMain is Main.
func New(t testing.TB) *Shell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newShell(t, func(name string) (path, setting string) { return self, StandIn + "=" + name })
}

// Built makes a shell whose processes are the binaries as built by go build; with race, with the race detector in them.
func Built(t testing.TB, race bool) *Shell {
	t.Helper()
	build := plain
	if race {
		build = raced
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return newShell(t, func(name string) (path, setting string) { return filepath.Join(dir, name), "" })
}

func newShell(t testing.TB, program func(string) (string, string)) *Shell {
	t.Helper()
	s := &Shell{t: t, program: program, Dir: t.TempDir(), Env: map[string]string{}}
	s.Env["AMENDS_DIR"] = s.Path("no-stack") // never a stack that happens to run on this machine
	return s
}

// Path names a file of the shell's directory.
func (s *Shell) Path(name string) string { return filepath.Join(s.Dir, name) }

// Write makes a file of the shell's directory and returns its path.
func (s *Shell) Write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.Path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.Path(name)
}

// Read returns the text of a file of the shell's directory.
func (s *Shell) Read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.Path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// Words takes a command line apart.
func (s *Shell) Words(line string) []string {
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
			out[i] = s.Path(w[1:])
		}
	}
	return out
}

// Call runs a command line in this process.
func (s *Shell) Call(ctx context.Context, line string) Answer {
	s.t.Helper()
	return s.CallWords(ctx, "", s.Words(line)...)
}

// CallWords runs a program with arguments in this process, text being its standard input.
func (s *Shell) CallWords(ctx context.Context, text string, words ...string) Answer {
	return s.CallTo(ctx, &Text{}, text, words...)
}

// CallTo is CallWords that lets stdout be read while the command runs.
func (s *Shell) CallTo(ctx context.Context, stdout *Text, text string, words ...string) Answer {
	env := maps.Clone(s.Env)
	var all []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		all = append(all, k+"="+env[k])
	}
	var stderr Text
	code := cli.Run(ctx, cli.Process{Program: words[0], Names: words[0] == "amendsctl", Args: words[1:], Stdin: strings.NewReader(text),
		Stdout: stdout, Stderr: &stderr, Getenv: func(k string) string { return env[k] }, Environ: func() []string { return all }})
	return Answer{Stdout: stdout.String(), Stderr: stderr.String(), Code: code}
}

// Want calls a command line in this process and checks its code and that its cause holds those words.
func (s *Shell) Want(code int, cause, line string) Answer {
	s.t.Helper()
	a := s.Call(s.t.Context(), line)
	if !a.Is(code, cause) {
		s.t.Errorf("%s: code %d, want %d with %q; stdout:\n%s\nstderr:\n%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a
}

// Roles calls a command line that runs roles in this process with the present environment, until stop or the test's end; it must
// end well. A further stop does nothing.
func (s *Shell) Roles(line string) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan Answer, 1)
	now := *s
	now.Env = maps.Clone(s.Env) // the test may change its own meanwhile
	go func() { ended <- now.Call(ctx, line) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if a := <-ended; a.Code != 0 {
			s.t.Errorf("%s ended with code %d: %s", line, a.Code, a.Stderr)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// Command makes a process of a command line, behind the words of a wrapper if there are any. It runs in the shell's directory and
// dies with this process.
func (s *Shell) Command(line string, wrapper ...string) (cmd *exec.Cmd, stdout, stderr *Text) {
	words := s.Words(line)
	path, setting := s.program(words[0])
	all := slices.Concat(wrapper, []string{path}, words[1:])
	cmd = exec.Command(all[0], all[1:]...)
	cmd.Dir = s.Dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AMENDS_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if setting != "" {
		cmd.Env = append(cmd.Env, setting)
	}
	for k, v := range s.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, stderr = &Text{}, &Text{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// Run runs a command line as a process to its end.
func (s *Shell) Run(line string) Answer {
	s.t.Helper()
	cmd, stdout, stderr := s.Command(line)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", line, err)
	}
	return Answer{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// Must runs a command line as a process, which must end with the code, its cause holding those words.
func (s *Shell) Must(code int, cause, line string) Answer {
	s.t.Helper()
	a := s.Run(line)
	if !a.Is(code, cause) {
		s.t.Fatalf("%s: code %d, want %d with %q\n%s%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a
}
