package embedded_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"amends/internal/embedded"

	"github.com/twmb/franz-go/pkg/kgo"
)

func startStack(t *testing.T, o embedded.StackOptions) *embedded.Stack {
	t.Helper()
	o.BinDir = binaries(t).Dir
	s, err := embedded.StartStack(limited(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stopStack(t *testing.T, s *embedded.Stack) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestStackWritesItsEndpointsPrivately(t *testing.T) {
	dir := shortDir(t)
	s := startStack(t, embedded.StackOptions{Dir: dir, PostgresPort: ownPort(t), BrokerPort: ownPort(t)})
	path := filepath.Join(dir, "endpoints.json")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("endpoints: %v %v", info, err)
	}
	if err := s.SetManifest("/some/manifest.json"); err != nil {
		t.Fatal(err)
	}
	e, running, err := embedded.Running(dir)
	if err != nil || !running || e.Manifest != "/some/manifest.json" || e.PID != os.Getpid() || e.DatabaseURL != s.Endpoints().DatabaseURL {
		t.Errorf("running stack: %+v %v %v", e, running, err)
	}
	stopStack(t, s)
	if _, running, err := embedded.Running(dir); err != nil || running {
		t.Errorf("stopped stack: %v %v", running, err)
	}
	s = startStack(t, embedded.StackOptions{Dir: dir})
	if got := s.Endpoints(); got.Manifest != "/some/manifest.json" || got.DatabaseURL != e.DatabaseURL || got.Brokers[0] != e.Brokers[0] {
		t.Errorf("after a stop: %+v, before %+v", got, e)
	}
	stopStack(t, s)
}

// TestKilledStackGoesOnAndASecondStartAttaches kills the process that holds the data.
func TestKilledStackGoesOnAndASecondStartAttaches(t *testing.T) {
	binaries(t)
	dir := shortDir(t)
	v := start(t, "stack", dir)
	var theirs embedded.Endpoints
	if err := json.Unmarshal([]byte(v.line(t)), &theirs); err != nil {
		t.Fatal(err)
	}
	second := startStack(t, embedded.StackOptions{Dir: dir})
	if got := second.Endpoints(); !second.Attached() || got.DatabaseURL != theirs.DatabaseURL || got.PID != v.cmd.Process.Pid {
		t.Errorf("second start: attached %v, %+v; the first has %+v", second.Attached(), got, theirs)
	}
	if err := second.SetManifest("x"); err == nil {
		t.Error("an attached stack let its manifest be set")
	}
	exec1(t, theirs.DatabaseURL, "CREATE TABLE kept AS SELECT 7 AS n", nil)
	stopStack(t, second)
	var n int
	if exec1(t, theirs.DatabaseURL, "SELECT n FROM kept", &n); n != 7 {
		t.Error("the end of the attached stack ended the services")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(theirs.Brokers...), kgo.DefaultProduceTopic("kept"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := ensureTopic(limited(t), client, "kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ProduceSync(limited(t), kgo.StringRecord("7")).First(); err != nil {
		t.Fatal(err)
	}
	if err := embedded.Reset(dir); err == nil || !strings.Contains(err.Error(), "kill ") {
		t.Errorf("reset of a held directory: %v", err)
	}
	v.kill()
	third := startStack(t, embedded.StackOptions{Dir: dir})
	defer stopStack(t, third)
	if third.Attached() {
		t.Fatal("attached to a dead process")
	}
	if exec1(t, third.Endpoints().DatabaseURL, "SELECT n FROM kept", &n); n != 7 {
		t.Error("a row is lost")
	}
	if got := readAll(limited(t), t, third.Endpoints().Brokers[0], "kept"); len(got) != 1 || got[0] != "7" {
		t.Errorf("records %q", got)
	}
}

func TestHeldStackThatDoesNotAnswerSaysWhoHoldsIt(t *testing.T) {
	dir := shortDir(t)
	s := startStack(t, embedded.StackOptions{Dir: dir})
	defer stopStack(t, s)
	if err := os.Remove(filepath.Join(dir, "endpoints.json")); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.StartStack(limited(t), embedded.StackOptions{Dir: dir})
	var held *embedded.HeldError
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || held.Holder.Since.IsZero() {
		t.Errorf("second start: %v", err)
	}
}

func TestResetBeginsAnewAndRemovesOnlyItsOwn(t *testing.T) {
	dir := shortDir(t)
	s := startStack(t, embedded.StackOptions{Dir: dir})
	exec1(t, s.Endpoints().DatabaseURL, "CREATE TABLE gone (n int)", nil)
	path, err := s.File("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "notes.txt")
	for _, p := range []string{path, foreign} {
		if err := os.WriteFile(p, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stopStack(t, s)
	s = startStack(t, embedded.StackOptions{Dir: dir, Reset: true})
	defer stopStack(t, s)
	var exists bool
	if exec1(t, s.Endpoints().DatabaseURL, "SELECT to_regclass('gone') IS NOT NULL", &exists); exists {
		t.Error("a table outlived the reset")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the stack's file outlived the reset")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a foreign file: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".removed-*")); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	dir := shortDir(t)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(dir, "postgresql")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.StartStack(limited(t), embedded.StackOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "-dir") {
		t.Errorf("start in a foreign directory: %v", err)
	}
	if err := embedded.Reset(dir); err == nil {
		t.Error("reset of a foreign directory was done")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if err := embedded.Reset(filepath.Join(dir, "nothing")); err != nil {
		t.Errorf("reset of nothing: %v", err)
	}
}

func TestDefaultDirIsUnderTheDataHome(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/some/where")
	if got, err := embedded.DefaultDir(); err != nil || got != "/some/where/amends/stack" {
		t.Errorf("%s %v", got, err)
	}
	t.Setenv("XDG_DATA_HOME", "")
	if got, err := embedded.DefaultDir(); err != nil || !filepath.IsAbs(got) {
		t.Errorf("%s %v", got, err)
	}
}
