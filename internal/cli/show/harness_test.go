package show_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"amends/internal/programtest"
	"amends/internal/showcase/account"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// site runs commands with one environment in a directory of its own.
type site struct {
	*programtest.Shell
	t *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Shell: programtest.New(t), t: t}
	s.Env["TMPDIR"] = s.Dir
	return s
}

// account reads a report.
func (s *site) account(text string) *account.Account {
	s.t.Helper()
	a := &account.Account{}
	if err := json.Unmarshal([]byte(text), a); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	return a
}

// ended checks that no process of a report runs any more.
func ended(t *testing.T, a *account.Account) {
	t.Helper()
	if len(a.Processes) == 0 {
		t.Error("no processes in the report")
	}
	for _, p := range a.Processes {
		if alive(p.PID) {
			t.Errorf("%s, process %d, still runs", p.Name, p.PID)
		}
	}
}

// alive reports whether a process runs; one that has ended and waits for its parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
