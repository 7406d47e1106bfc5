package cli_test

import (
	"maps"
	"testing"

	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// stopsWithin is how long a test waits for a role to end after SIGTERM (SC25); its own limits are shorter.
const stopsWithin = programtest.Deadline

// shell runs commands of one session with one environment.
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

// run runs a command line as a process; it must end with code 0.
func (s *shell) run(line string) string {
	s.t.Helper()
	return s.Must(0, "", line).Stdout
}
