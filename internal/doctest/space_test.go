package doctest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"amends/internal/cli"
)

// space is a folder and an environment to call the program in, within this process.
type space struct {
	t   *testing.T
	env map[string]string
	dir string
}

func newSpace(t *testing.T, env map[string]string) *space {
	return &space{t: t, env: env, dir: t.TempDir()}
}

func (s *space) path(name string) string { return filepath.Join(s.dir, name) }

func (s *space) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *space) process(args []string, stdout, stderr *bytes.Buffer) cli.Process {
	return cli.Process{Program: "amends", Names: cli.Nested, Args: args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr,
		Getenv: func(name string) string { return s.env[name] }}
}

// call runs a command, which must end with code 0, and returns what it printed.
func (s *space) call(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if code := cli.Run(ctx, s.process(args, &stdout, &stderr)); code != 0 {
		s.t.Fatalf("amends %s: code %d\n%s", strings.Join(args, " "), code, &stderr)
	}
	return stdout.String()
}

// start runs a role in the background until the returned function is called.
func (s *space) start(args ...string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	var stdout, stderr bytes.Buffer
	go func() {
		defer close(done)
		cli.Run(ctx, s.process(args, &stdout, &stderr))
	}()
	return func() {
		cancel()
		<-done
	}
}
