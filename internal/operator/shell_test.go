package operator

import (
	"context"
	"maps"
	"testing"
	"time"

	"amends/internal/programtest"
)

// shell calls commands in this process with one environment.
type shell struct {
	*programtest.Shell
	t *testing.T
}

func newShell(t *testing.T, env map[string]string) *shell {
	t.Helper()
	s := &shell{Shell: programtest.New(t), t: t}
	maps.Copy(s.Env, env)
	return s
}

// words calls a program with arguments.
func (s *shell) words(words ...string) programtest.Answer {
	s.t.Helper()
	return s.CallWords(s.t.Context(), "", words...)
}

// until calls a command line and stops it once what it has written satisfies done, or ctx ends.
func (s *shell) until(ctx context.Context, stop func(), line string, done func(stdout string) bool) programtest.Answer {
	s.t.Helper()
	var stdout programtest.Text
	ended := make(chan programtest.Answer, 1)
	go func() { ended <- s.CallTo(ctx, &stdout, "", s.Words(line)...) }()
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

// call calls a command line, which must end with the code.
func (s *shell) call(code int, line string) programtest.Answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	a := s.Call(ctx, line)
	if a.Code != code {
		s.t.Errorf("%s: code %d, want %d\nstdout: %s\nstderr: %s", line, a.Code, code, a.Stdout, a.Stderr)
	}
	return a
}
