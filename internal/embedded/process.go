package embedded

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
const SuperviseFunction = "amends/internal/embedded.supervise"

// child is a started process that ends with the process that started it.
type child struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// startChild starts cmd in its own session, so that a terminal's Ctrl-C reaches the parent alone. When the parent
// dies, by kill -9 too, the child receives the signal onDeath.
func startChild(cmd *exec.Cmd, onDeath syscall.Signal) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	bindDeath(cmd, onDeath)
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go supervise(c, onDeath, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return c, nil
}

// supervise keeps its thread from the start of the child to its end: the kernel ties a parent-death signal to the
// thread that forked, not to the process.
func supervise(c *child, onDeath syscall.Signal, started chan<- error) {
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

// alive reports whether the child still runs.
func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// stop sends sig and waits up to grace for the end of the child; then it kills it. It returns an error only when even
// that did not end it.
func (c *child) stop(sig syscall.Signal, grace time.Duration) error {
	if !c.alive() {
		return nil
	}
	_ = c.cmd.Process.Signal(sig) // it may have ended just now
	select {
	case <-c.done:
		return nil
	case <-time.After(grace):
	}
	return c.kill()
}

// kill sends SIGKILL and waits for the end.
func (c *child) kill() error {
	_ = c.cmd.Process.Kill() // it may have ended just now
	select {
	case <-c.done:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("kill process: it did not end within 10 s")
	}
}

// runBound runs a short program to its end and returns what it printed. It dies with this process.
func runBound(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := startChild(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	<-c.done
	return out.Bytes(), c.err
}
