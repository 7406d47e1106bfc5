package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"amends/internal/embedded/process"
	"amends/internal/pause"
	"amends/internal/showcase/account"
)

const (
	stopGrace = 15 * time.Second // from SIGTERM to SIGKILL; a role drains within 10 s
	lastLines = 4                // of a log in an error
)

// child is one role in a process of its own.
type child struct {
	child   *process.Child
	log     *os.File
	name    string
	command string
	begun   time.Time
	ended   *time.Time
	killed  bool // by this run, or told to end
}

// databaseName is the variable by which a child learns its database.
const databaseName = "AMENDS_DATABASE_URL"

// spawn starts a role as name, on the database of that URL.
func (r *run) spawn(s *account.Step, name, role, database string) (*child, error) {
	words := []string{"run", "-role", role, "-manifest", r.account.Manifest, "-brokers", strings.Join(r.Broker.Brokers, ","), "-workers=1",
		"-no-standby=false"}
	words = append(words, r.Access...)
	cmd := exec.Command(r.Program, words...)
	cmd.Dir = r.Directory
	for _, v := range r.Env {
		if n, _, _ := strings.Cut(v, "="); n != databaseName && n != databaseName+"_FILE" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, databaseName+"="+database)
	path := filepath.Join(r.Directory, strings.ReplaceAll(name, " ", "-")+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	c := &child{name: name, command: "amends " + strings.Join(words[:3], " "), log: log, begun: now()}
	if c.child, err = process.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	r.started = append(r.started, c)
	event(s, "%s starts: process %d", name, c.child.PID())
	return c, nil
}

// kill ends the process by SIGKILL and waits for its end.
func (c *child) kill() error {
	c.killed = true
	err := c.child.Kill()
	c.note()
	return err
}

// terminate sends SIGTERM and waits for the end; a process that outlasts the grace is killed.
func (c *child) terminate() error {
	c.killed = true
	err := c.child.Stop(syscall.SIGTERM, stopGrace)
	c.note()
	return err
}

// note keeps when the process was seen to have ended.
func (c *child) note() {
	if c.ended == nil && !c.child.Alive() {
		at := now()
		c.ended = &at
		_ = c.log.Close()
	}
}

// end says how the process ended: "SIGKILL", "exit code 0", or "" while it runs.
func (c *child) end() string {
	if c.child.Alive() {
		return ""
	}
	var exit *exec.ExitError
	switch err := c.child.Err(); {
	case err == nil:
		return "exit code 0"
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			if status.Signal() == syscall.SIGKILL {
				return "SIGKILL"
			}
			return "signal: " + status.Signal().String()
		}
		return fmt.Sprintf("exit code %d", exit.ExitCode())
	default:
		return err.Error()
	}
}

// process is the child in the report.
func (c *child) process() account.Process {
	c.note()
	return account.Process{Name: c.name, PID: c.child.PID(), Command: c.command, Log: c.log.Name(), Started: c.begun, Ended: c.ended, End: c.end()}
}

// said returns what the process wrote.
func (c *child) said() string { return process.LogSince(c.log.Name(), 0) }

// alive fails where a process ended that nobody told to.
func (r *run) alive() error {
	for _, c := range r.started {
		if !c.killed && !c.child.Alive() {
			return fmt.Errorf("%s (process %d) ended by itself with %s; it said last: %s", c.name, c.child.PID(), c.end(),
				strings.Join(strings.Fields(process.LastLines(c.said(), lastLines)), " "))
		}
	}
	return nil
}

// endAll ends every process that still runs, and both barriers.
func (r *run) endAll() {
	for _, c := range r.started {
		if c.child.Alive() {
			_ = c.terminate() // it dies with this process at the latest
		}
	}
	if r.worker != nil {
		r.worker.Close()
	}
	if r.view != nil {
		r.view.Close()
	}
}

const (
	lookFirst  = 2 * time.Millisecond
	lookAtMost = 50 * time.Millisecond
)

// await looks until fn is true. It fails when a process ends meanwhile, and says what was awaited when ctx ends.
func (r *run) await(ctx context.Context, what string, fn func() (bool, error)) error {
	for wait := lookFirst; ; wait = min(2*wait, lookAtMost) {
		if err := r.alive(); err != nil {
			return err
		}
		ok, err := fn()
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		if pause.For(ctx, wait) != nil {
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
}
