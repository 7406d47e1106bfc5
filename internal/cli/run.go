package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"amends/internal/cli/target"
	"amends/internal/usage"
)

// Names says how a program names its commands.
type Names bool

// The two programs share one table of commands.
const (
	Nested Names = false // amends source create
	Flat   Names = true  // amendsctl source-create
)

// Process is one invocation of a program.
type Process struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Environ func() []string // every NAME=value of the environment; nil where only Getenv is known
	Program string          // as it was started, for the commands that are printed
	Args    []string
	Names   Names
}

// Main runs the program of this operating system process and returns its exit code. The first SIGTERM or interrupt
// drains: roles finish or abandon their batch and the code is 0. A second one aborts at once.
func Main(names Names) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt) // to the very end: without it a late second one would kill
	go func() {
		s := <-signals
		fmt.Fprintf(os.Stderr, "%s: draining; a second one aborts\n", s)
		cancel(errStopped)
		for first := time.Now(); time.Since(first) < sameSignal; {
			s = <-signals
		}
		fmt.Fprintf(os.Stderr, "%s: aborted by a second %s; starting again is safe\n", os.Args[0], s)
		os.Exit(exitFailure)
	}()
	return Run(ctx, Process{Program: os.Args[0], Names: names, Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ})
}

// sameSignal: one request may arrive twice, to the process and to its group, as timeout(1) sends it.
const sameSignal = 250 * time.Millisecond

// errStopped is the cause of a context cancelled by a signal.
var errStopped = errors.New("stopped by a signal")

// Run executes one invocation and returns its exit code (design section 8). A failure's cause is the last line on Stderr.
func Run(ctx context.Context, p Process) int {
	a := &app{names: p.Names, Env: &target.Env{Program: p.Program, Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Getenv: p.Getenv, Environ: p.Environ}}
	root := a.root()
	root.SetArgs(usage.Rewrite(p.Args))
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	usage.Completion(root)
	err := root.ExecuteContext(ctx)
	if err == context.Canceled && stopped(ctx) { // what nobody wrapped says nothing to whoever reads it
		err = fmt.Errorf("%w before it was done: %w", errStopped, err)
	}
	code := classify(err)
	if code != exitDone {
		usage.Report(p.Stderr, a.name(), err)
	}
	return code
}
