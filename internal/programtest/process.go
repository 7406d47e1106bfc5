package programtest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Deadline is how long anything that should happen soon may take on a busy machine.
const Deadline = 2 * time.Minute

// Process is a command line that runs as a process in the background.
type Process struct {
	t              testing.TB
	done           chan struct{}
	Cmd            *exec.Cmd
	Stdout, Stderr *Text
	Line           string
}

// Start starts a command line as a process, behind the words of a wrapper if there are any. The test's end kills it.
func (s *Shell) Start(line string, wrapper ...string) *Process {
	s.t.Helper()
	p := &Process{t: s.t, Line: line, done: make(chan struct{})}
	p.Cmd, p.Stdout, p.Stderr = s.Command(line, wrapper...)
	p.run()
	return p
}

// StartWith is Start with settings, NAME=value, that replace those of the shell.
func (s *Shell) StartWith(line string, settings ...string) *Process {
	s.t.Helper()
	p := &Process{t: s.t, Line: line, done: make(chan struct{})}
	p.Cmd, p.Stdout, p.Stderr = s.Command(line)
	p.Cmd.Env = append(p.Cmd.Env, settings...) // of two of a name the last counts
	p.run()
	return p
}

func (p *Process) run() {
	p.t.Helper()
	if err := p.Cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = p.Cmd.Wait()
		close(p.done)
	}()
	p.t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		<-p.done
		if p.t.Failed() {
			p.t.Logf("%s (%d) said last:\n%s", p.Line, p.Cmd.Process.Pid, p.Stderr.Last(12))
		}
	})
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the process, which must still run.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%s: %v\n%s", p.Line, err, p.Stderr)
	}
}

// Kill ends the process by SIGKILL; one that has ended by itself is a failure.
func (p *Process) Kill() {
	p.t.Helper()
	if p.Ended() {
		p.t.Fatalf("%s ended by itself: code %d\n%s", p.Line, p.Cmd.ProcessState.ExitCode(), p.Stderr.Last(5))
	}
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Started waits until a process that runs roles has said that they start: a SIGTERM that comes before the program listens for
// signals ends it at once.
func (p *Process) Started() {
	p.t.Helper()
	Await(p.t, p.Line+" says that it starts", func() bool { return p.Ended() || strings.Contains(p.Stderr.String(), "roles start") })
}

// Stop sends SIGTERM, to roles once they have started; the process must end with code 0 within that time.
func (p *Process) Stop(within time.Duration) {
	p.t.Helper()
	if words := strings.Fields(p.Line); slices.Contains(words, "run") || slices.Contains(words, "-role") {
		p.Started()
	}
	p.Signal(syscall.SIGTERM)
	p.EndsWithin(0, "", within)
}

// Ends waits for the process, which must end with the code, its cause holding those words.
func (p *Process) Ends(code int, cause string) {
	p.t.Helper()
	p.EndsWithin(code, cause, Deadline)
}

// EndsWithin is Ends within that time.
func (p *Process) EndsWithin(code int, cause string, within time.Duration) {
	p.t.Helper()
	if a := p.wait(within); !a.Is(code, cause) {
		p.t.Fatalf("%s: code %d, want %d with %q\n%s", p.Line, a.Code, code, cause, a.Stderr)
	}
}

// Wait waits for the end. The code is -1 after a signal.
func (p *Process) Wait() Answer {
	p.t.Helper()
	return p.wait(Deadline)
}

func (p *Process) wait(within time.Duration) Answer {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		p.t.Fatalf("%s: still runs\n%s", p.Line, p.Stderr)
	}
	return Answer{Stdout: p.Stdout.String(), Stderr: p.Stderr.String(), Code: p.Cmd.ProcessState.ExitCode()}
}
