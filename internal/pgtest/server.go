package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"amends/internal/embedded"
	"amends/internal/embedded/process"
	"amends/internal/pause"
	"amends/internal/scratch"
)

// startTimeout bounds a start, an installation of PostgreSQL and an initdb included.
const startTimeout = 5 * time.Minute

// A port that another process has is asked for again every portWait, for portPatience in all.
const (
	portPatience = time.Minute
	portWait     = 100 * time.Millisecond
)

// settings keep a test server small: as many run as packages are tested at a time. What a drill needs otherwise is given as
// name=value.
func settings(more []string) map[string]string {
	all := map[string]string{
		"shared_buffers": "16MB", "max_connections": "60", "max_worker_processes": "4", "max_wal_size": "256MB",
		"autovacuum_naptime": "10s",
	}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		all[name] = value
	}
	return all
}

// start starts a server of this process on a copy of the template cluster.
func start(noSync bool) (*embedded.Postgres, error) {
	dir, err := scratch.Dir("amends-pgtest-")
	if err != nil {
		return nil, err
	}
	return startIn(dir, 0, noSync, nil)
}

// startIn starts a server in dir on the given port, or on a free one when that is 0.
func startIn(dir string, port int, noSync bool, more []string) (*embedded.Postgres, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	bins, err := embedded.Find(ctx, embedded.FindOptions{})
	if err != nil {
		return nil, err
	}
	template, err := templateOf(ctx, bins)
	if err != nil {
		return nil, err
	}
	return embedded.StartPostgres(ctx, embedded.PostgresOptions{
		Dir: dir, TemplateDir: template, BinDir: bins.Dir, Settings: settings(more), Port: port, AnyPort: port == 0,
		NoSync: noSync, Database: "postgres",
	})
}

// templateFormat changes when the way the template is made does.
const templateFormat = 1

// templateOf is the cached result of an initdb with this installation. It is made under a temporary name and renamed,
// so that test binaries that start at the same time do not disturb each other.
func templateOf(ctx context.Context, bins embedded.Binaries) (string, error) {
	cache, err := process.UserCache()
	if err != nil {
		return "", err
	}
	name := "pgtest-" + strconv.Itoa(templateFormat) + "-" + bins.Version + "-" + strconv.Itoa(os.Geteuid())
	template := filepath.Join(cache, name)
	if _, err := os.Stat(template); err == nil {
		return template, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", fmt.Errorf("make cache directory: %w", err)
	}
	temp, err := os.MkdirTemp(cache, "pgtest-making-")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := embedded.MakeCluster(ctx, bins, temp); err != nil {
		return "", err
	}
	if err := os.Rename(temp, template); err != nil {
		if _, made := os.Stat(template); made == nil {
			return template, nil // another test binary was quicker
		}
		return "", fmt.Errorf("keep template: %w", err)
	}
	return template, nil
}

// Instance is a server of one test's own.
type Instance struct {
	t    testing.TB
	pg   *embedded.Postgres
	dir  string
	more []string // settings
	port int
	live bool
}

// Server starts a server for this test alone, also where AMENDS_TEST_DATABASE_URL names another: drills stop and kill
// it. It keeps its port, data and settings (name=value, beside the tests' own) over its starts and ends with the test.
func Server(t testing.TB, settings ...string) *Instance {
	t.Helper()
	dir, err := scratch.Dir("amends-pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Instance{t: t, dir: dir, more: settings}
	s.pg, err = startIn(dir, 0, false, settings)
	if err != nil {
		refuse(t, err)
	}
	s.live = true
	s.port = s.pg.Port()
	t.Cleanup(func() {
		s.Stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("remove server: %v", err)
		}
	})
	return s
}

// URL is the connection string of the server's database postgres, as its superuser.
func (s *Instance) URL() string { return s.pg.URL() }

// New returns the connection string of a new database of this server, closed when the test ends if the server is up.
func (s *Instance) New() string {
	s.t.Helper()
	return newDatabase(s.t, s.pg.URL(), shut)
}

// BinDir holds the server's programs.
func (s *Instance) BinDir() string { return s.pg.Binaries().Dir }

// DataDir is the cluster's directory.
func (s *Instance) DataDir() string { return s.pg.DataDir() }

// PID is the server's main process, for signals such as SIGSTOP.
func (s *Instance) PID() int { return s.pg.PID() }

// Stop ends the server by a fast shutdown. A stopped one stays stopped.
func (s *Instance) Stop() { s.end((*embedded.Postgres).Stop) }

// Kill ends the server's main process by SIGKILL.
func (s *Instance) Kill() { s.end((*embedded.Postgres).Kill) }

func (s *Instance) end(how func(*embedded.Postgres) error) {
	s.t.Helper()
	if !s.live {
		return
	}
	s.live = false
	if err := how(s.pg); err != nil {
		s.t.Errorf("end server: %v", err)
	}
}

// Start starts the server again, on the same port and data.
func (s *Instance) Start() {
	s.t.Helper()
	if s.live {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), portPatience)
	defer cancel()
	var taken *process.PortError
	if err := pause.While(ctx, portWait, portWait, func(err error) bool { return errors.As(err, &taken) }, func() error {
		pg, err := startIn(s.dir, s.port, false, s.more)
		if err == nil {
			s.pg, s.live = pg, true
		}
		return err
	}); err != nil {
		s.t.Fatalf("start server again: %v", err)
	}
}
