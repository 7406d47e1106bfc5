package operator

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"amends/internal/cli"
)

// shell calls commands in this process with one environment. A word @name is a file of the shell's folder.
type shell struct {
	t   *testing.T
	env map[string]string
	dir string
}

func newShell(t *testing.T, env map[string]string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), env: map[string]string{}}
	maps.Copy(s.env, env)
	if s.env["AMENDS_DIR"] == "" {
		s.env["AMENDS_DIR"] = filepath.Join(s.dir, "no-stack")
	}
	return s
}

func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

func (s *shell) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

// answer is what a command ended with.
type answer struct {
	stdout, stderr string
	code           int
}

// first is the first line on stdout.
func (a answer) first() string {
	line, _, _ := strings.Cut(a.stdout, "\n")
	return line
}

// cause is the last line on stderr.
func (a answer) cause() string {
	lines := strings.Split(strings.TrimSpace(a.stderr), "\n")
	return lines[len(lines)-1]
}

// ask calls a command line with what is on stdin.
func (s *shell) ask(ctx context.Context, stdin, line string) answer {
	return s.words(ctx, stdin, s.split(line)...)
}

// words calls a program with arguments.
func (s *shell) words(ctx context.Context, stdin string, words ...string) answer {
	s.t.Helper()
	return s.to(ctx, &buffer{}, stdin, words...)
}

// until calls a command line and stops it once what it has written satisfies done, or ctx ends.
func (s *shell) until(ctx context.Context, stop func(), line string, done func(stdout string) bool) answer {
	s.t.Helper()
	var stdout buffer
	ended := make(chan answer, 1)
	go func() { ended <- s.to(ctx, &stdout, "", s.split(line)...) }()
	for ctx.Err() == nil {
		select {
		case a := <-ended:
			return a
		case <-time.After(20 * time.Millisecond):
			if done(stdout.String()) {
				stop()
			}
		}
	}
	return <-ended
}

// to calls a program that writes its answer to stdout.
func (s *shell) to(ctx context.Context, stdout *buffer, stdin string, words ...string) answer {
	var stderr buffer
	code := cli.Run(ctx, cli.Process{Program: words[0], Names: words[0] == "amendsctl", Args: words[1:], Stdin: strings.NewReader(stdin),
		Stdout: stdout, Stderr: &stderr, Getenv: func(k string) string { return s.env[k] }, Environ: func() []string {
			var all []string
			for _, k := range slices.Sorted(maps.Keys(s.env)) {
				all = append(all, k+"="+s.env[k])
			}
			return all
		}})
	return answer{stdout.String(), stderr.String(), code}
}

// call calls a command line, which must end with the code.
func (s *shell) call(code int, line string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	a := s.ask(ctx, "", line)
	if a.code != code {
		s.t.Errorf("%s: code %d, want %d\nstdout: %s\nstderr: %s", line, a.code, code, a.stdout, a.stderr)
	}
	return a
}

// split takes a command line apart; 'quoted' words may hold spaces.
func (s *shell) split(line string) []string {
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
			out[i] = s.path(w[1:])
		}
	}
	return out
}

// buffer may be read while a command still writes to it.
type buffer struct {
	b  bytes.Buffer
	mu sync.Mutex
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
