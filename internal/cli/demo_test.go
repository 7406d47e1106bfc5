package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// stackDir is a directory for a stack of the test's own; PostgreSQL's socket path must stay short.
func stackDir(t *testing.T) string {
	t.Helper()
	pgtest.Installed(t)
	dir, err := os.MkdirTemp("", "amends-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may run under another uid
		t.Fatal(err)
	}
	return filepath.Join(dir, "stack")
}

type demoAnswer struct {
	SourceFrontiers []int64            `json:"source_frontiers"`
	NextSequences   []int64            `json:"next_sequences"`
	Timings         map[string]float64 `json:"timings"`
	Verify          verified           `json:"verify"`
	Balances        []struct {
		Day     string `json:"day"`
		Close   int64  `json:"close"`
		Version int64  `json:"version"`
	} `json:"balances"`
	Alerts []struct {
		Day      string `json:"day"`
		Previous int64  `json:"previous"`
	} `json:"alerts"`
	Endpoints struct {
		DatabaseURL string   `json:"database_url"`
		Brokers     []string `json:"brokers"`
		Manifest    string   `json:"manifest"`
	} `json:"endpoints"`
	Schema int `json:"schema"`
}

func TestDemoOnceTellsTheSameTwice(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DIR": stackDir(t)})
	for range 2 {
		var d demoAnswer
		if err := json.Unmarshal([]byte(s.run("amends demo --once -o json")), &d); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]int64{{5, 0}, {11, 0}}, [][]int64{d.SourceFrontiers, d.NextSequences}); diff != "" {
			t.Error(diff)
		}
		if d.Schema != 1 || d.Verify.Status != "PASS" || len(d.Balances) != 2 || d.Balances[0].Close != 70 || d.Balances[1].Close != 50 ||
			len(d.Alerts) != 1 || d.Alerts[0].Day != "2026-01-02" || d.Endpoints.DatabaseURL == "" || len(d.Endpoints.Brokers) != 1 {
			t.Errorf("%+v", d)
		}
	}
}

// Every printed command works when pasted, while the demo runs and keeps its stack for others.
func TestDemoPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DIR": stackDir(t)})
	p := s.Start("amends demo")
	for deadline := time.Now().Add(programtest.Deadline); !strings.Contains(p.Stdout.String(), "Running."); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the demo did not get there:\n%s\n%s", p.Stdout, p.Stderr)
		}
	}
	for _, line := range []string{"01-01 100 → 70   01-02 80 → 50 alert   01-03 50 → 20", "01-03 20 → withdrawn", "✓ verify PASS"} {
		if !strings.Contains(p.Stdout.String(), line) {
			t.Errorf("no %q in\n%s", line, p.Stdout)
		}
	}
	pasted := 0
	for _, line := range strings.Split(p.Stdout.String(), "\n") {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "Try"))
		if after, ok := strings.CutPrefix(text, "SQL"); ok {
			if text = strings.TrimSpace(after); !has("psql") {
				continue
			}
			text += " -c 'TABLE amends.Namespaces'"
		}
		if !strings.HasPrefix(text, "AMENDS_DIR=") && !strings.HasPrefix(text, "psql") {
			continue
		}
		text = strings.Replace(text, "demo retail", "demo retail -once", 1) // beside the running demo, on its stack
		pasted++
		c := exec.Command("sh", "-c", text)
		c.Env = append(os.Environ(), programtest.StandIn+"=amends")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	if pasted < 4 {
		t.Errorf("%d commands found in\n%s", pasted, p.Stdout)
	}
	p.Stop(stopsWithin)
}

func has(program string) bool { _, err := exec.LookPath(program); return err == nil }

func TestDevPrintsEndpointsAndAttaches(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DIR": stackDir(t)})
	p := s.Start("amends dev")
	for deadline := time.Now().Add(programtest.Deadline); !strings.Contains(p.Stdout.String(), "AMENDS_BROKERS="); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no endpoints:\n%s\n%s", p.Stdout, p.Stderr)
		}
	}
	if second := s.run("amends dev"); second != p.Stdout.String() {
		t.Errorf("a second start printed\n%s, the first\n%s", second, p.Stdout)
	}
	if a := s.Want(0, "", "amends dev -broker-port 29999"); a.Stdout != p.Stdout.String() || a.Cause() != "-postgres-port, -broker-port and -postgres-bin change nothing of a stack that runs" {
		t.Errorf("another port for a stack that runs: %s%s", a.Stdout, a.Stderr)
	}
	for _, line := range strings.Split(p.Stdout.String(), "\n") {
		if name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "="); ok {
			s.Env[name] = strings.Trim(value, "'")
		}
	}
	s.Write("source.json", s.run("amendsctl source-create -namespace dev -topic dev-source"))
	s.Write("pipeline.json", s.run("amendsctl output-create -manifest @source.json -topic dev-output"))
	s.run("amendsctl verify -manifest @pipeline.json")
	s.Want(2, "no manifest", "amends verify") // a stack without a demo has none
	p.Stop(stopsWithin)
}
