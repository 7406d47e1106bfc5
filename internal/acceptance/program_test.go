package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"amends/internal/programtest"
)

// shell runs command lines of the built programs.
type shell struct {
	*programtest.Shell
	t testing.TB
}

func newShell(t testing.TB) *shell {
	t.Helper()
	return &shell{Shell: programtest.Built(t, false), t: t}
}

// run runs a command line that must end with code 0 and returns what it printed.
func (s *shell) run(line string) string {
	s.t.Helper()
	return s.Must(0, "", line).Stdout
}

func readFile(t testing.TB, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
