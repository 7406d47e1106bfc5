package operator

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/embedded"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// stackFolder is a folder for a stack of the test's own; the path of PostgreSQL's socket must stay short.
func stackFolder(t *testing.T) string {
	t.Helper()
	pgtest.Installed(t)
	dir, err := os.MkdirTemp("", "amends-operator-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may run under another uid
		t.Fatal(err)
	}
	return filepath.Join(dir, "stack")
}

// With nothing named, commands work on the running embedded stack, config print says so, and a stack whose data is another
// version's says how to begin anew.
func TestCommandsFindTheRunningStack(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"AMENDS_DIR": stackFolder(t)})
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var url string
	a := s.until(ctx, stop, "amends demo", func(out string) bool {
		if !strings.Contains(out, "Running. Ctrl-C stops it") {
			return false
		}
		url = s.askStack()
		return true
	})
	if a.Code != 0 {
		t.Fatalf("demo: code %d\n%s%s", a.Code, a.Stdout, a.Stderr)
	}
	if url == "" {
		return
	}
	if a := s.call(2, "amends sql -c 'SELECT 1'"); !strings.Contains(a.Cause(), "AMENDS_DATABASE_URL is not set") {
		t.Errorf("after the stack's end: %s", a.Stderr)
	}
	s.spoil()
	a = s.call(13, "amends demo -once")
	if want := "begins anew"; !strings.Contains(a.Cause(), "migration 2 (transport) has checksum") || !strings.Contains(a.Cause(), "amends demo -reset "+want) {
		t.Errorf("a stack of another version: %s", a.Stderr)
	}
	if a := s.call(0, "amends demo -once -reset -o json"); programtest.Conforms(t, "demo", a.Stdout) != 1 || !strings.Contains(a.Stdout, `"status":"PASS"`) {
		t.Errorf("after a reset: %s", a.Stdout)
	}
	ctx, stop = context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if a := s.until(ctx, stop, "amends dev -o json", func(out string) bool { return strings.HasSuffix(out, "\n") }); a.Code != 0 || programtest.Conforms(t, "dev", a.Stdout) != 1 {
		t.Errorf("dev: code %d\n%s%s", a.Code, a.Stdout, a.Stderr)
	}
}

// askStack asks the running stack without naming it, and returns its database.
func (s *shell) askStack() string {
	s.t.Helper()
	for line, first := range map[string]string{
		"amends sql -o csv -c 'SELECT close FROM balances WHERE present ORDER BY day'": "close",
		"amends balance widget berlin": "widget berlin: 50 (as of 2026-01-02; alert 70 -> 50 below 60)",
		"amends migrate plan":          "nothing to do: the schema is up to date",
		"amends config print":          "4 settings are not the default: 1 in the environment, no configuration file, 3 by the running embedded stack",
	} {
		if a := s.call(0, line); a.First() != first {
			s.t.Errorf("%s: %q, want %q", line, a.First(), first)
		}
	}
	var got printed
	if err := json.Unmarshal([]byte(s.call(0, "amends config print -o json").Stdout), &got); err != nil {
		s.t.Error(err)
		return ""
	}
	from := map[string]string{}
	for _, x := range got.Settings {
		if x.From == "embedded stack" {
			from[x.Name] = x.Value
		}
	}
	running, found, err := embedded.Running(s.Env["AMENDS_DIR"])
	if err != nil || !found {
		s.t.Errorf("no stack runs: %v", err)
		return ""
	}
	if value, ok := from["database_url"]; !ok || value != "" || from["manifest"] != running.Manifest || from["brokers"] != strings.Join(running.Brokers, ",") {
		s.t.Errorf("from the stack: %v", from)
	}
	return running.DatabaseURL
}

// spoil makes the data of a stopped stack that of another version.
func (s *shell) spoil() {
	s.t.Helper()
	stack, err := embedded.StartStack(s.t.Context(), embedded.StackOptions{Dir: s.Env["AMENDS_DIR"]})
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := pgx.Connect(s.t.Context(), stack.Endpoints().DatabaseURL)
	if err == nil {
		_, err = conn.Exec(s.t.Context(), "UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version = 2")
	}
	if err == nil {
		err = conn.Close(s.t.Context())
	}
	if err != nil {
		s.t.Error(err)
	}
	if err := stack.Stop(); err != nil {
		s.t.Error(err)
	}
}
