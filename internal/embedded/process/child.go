package process

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// SuperviseFunction is the name of the goroutine that waits for a child process, for leak detectors in tests.
const SuperviseFunction = "amends/internal/embedded/process.supervise"

// Child is a started process that ends with the process that started it.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// Start starts cmd in its own session, so that a terminal's Ctrl-C reaches the parent alone. When the parent
// dies, by kill -9 too, the child receives the signal onDeath.
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	bindDeath(cmd, onDeath)
	c := &Child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go supervise(c, onDeath, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// supervise keeps its thread from the start of the child to its end: the kernel ties a parent-death signal to the
// thread that forked, not to the process.
func supervise(c *Child, onDeath syscall.Signal, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.cmd.Start(); err != nil {
		started <- err
		return
	}
	unwatch := watchDeath(c.cmd.Process.Pid, onDeath)
	started <- nil
	c.err = c.cmd.Wait()
	unwatch()
	close(c.done)
}

// Done is closed when the child has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how the child ended, nil for exit code 0. It is valid once Done is closed.
func (c *Child) Err() error { return c.err }

// PID is the child's number.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Alive reports whether the child still runs.
func (c *Child) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Stop sends sig and waits up to grace for the end of the child; then it kills it. It returns an error only when even
// that did not end it within 10 s.
func (c *Child) Stop(sig syscall.Signal, grace time.Duration) error {
	if !c.Alive() {
		return nil
	}
	_ = c.cmd.Process.Signal(sig) // it may have ended just now
	select {
	case <-c.done:
		return nil
	case <-time.After(grace):
	}
	return c.Kill()
}

// Kill sends SIGKILL and waits for the end.
func (c *Child) Kill() error {
	_ = c.cmd.Process.Kill() // it may have ended just now
	select {
	case <-c.done:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("kill process: it did not end within 10 s")
	}
}

// Output runs a short program to its end and returns what it printed. It dies with this process.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	<-c.done
	return out.Bytes(), c.err
}
