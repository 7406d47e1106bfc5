package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/embedded"

	"github.com/jackc/pgx/v5"
)

func binaries(t *testing.T) embedded.Binaries {
	t.Helper()
	b, err := embedded.Find(limited(t), embedded.FindOptions{})
	if err != nil {
		absent.Skip(t, absent.KindPostgreSQL, err.Error(), "install PostgreSQL 15 or newer, or npm")
	}
	return b
}

func startPostgres(t *testing.T, dir string) *embedded.Postgres {
	t.Helper()
	p, err := embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: dir, AnyPort: true, BinDir: binaries(t).Dir})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func exec1(t *testing.T, url, sql string, result any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if result == nil {
		_, err = conn.Exec(ctx, sql)
	} else {
		err = conn.QueryRow(ctx, sql).Scan(result)
	}
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestPostgresIsDurablePrivateAndOnLoopback(t *testing.T) {
	dir := shortDir(t)
	p := startPostgres(t, dir)
	defer p.Stop()
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "127.0.0.1",
		"unix_socket_directories": "", "data_checksums": "on", "password_encryption": "scram-sha-256", "server_encoding": "UTF8",
	} {
		var got string
		if exec1(t, p.URL(), "SHOW "+setting, &got); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "password"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v %v", info, err)
	}
	if conn, err := pgx.Connect(limited(t), strings.Replace(p.URL(), "amends:", "amends:x", 1)); err == nil {
		conn.Close(limited(t))
		t.Error("another password than the server's was taken")
	}
}

func TestPostgresGoesOnAfterAStop(t *testing.T) {
	dir := shortDir(t)
	p := startPostgres(t, dir)
	exec1(t, p.URL(), "CREATE TABLE kept AS SELECT 7 AS n", nil)
	url := p.URL()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	p, err := embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: dir, BinDir: binaries(t).Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	var n int
	if exec1(t, p.URL(), "SELECT n FROM kept", &n); n != 7 || p.URL() != url {
		t.Errorf("after a stop: n = %d, address %s, before %s", n, p.URL(), url)
	}
}

// TestPostgresDiesWithItsParent kills the process that holds the server: nothing of it stays, and the next start has every
// acknowledged row.
func TestPostgresDiesWithItsParent(t *testing.T) {
	binaries(t)
	dir := shortDir(t)
	for round := range 3 {
		v := start(t, "postgres", dir)
		var pid int
		var url string
		if _, err := fmt.Sscan(v.line(t), &pid, &url); err != nil {
			t.Fatal(err)
		}
		exec1(t, url, "CREATE TABLE IF NOT EXISTS kept (n int)", nil)
		exec1(t, url, "INSERT INTO kept VALUES ("+strconv.Itoa(round)+")", nil)
		conn, err := pgx.Connect(limited(t), url) // a busy backend, too
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Exec(context.WithoutCancel(t.Context()), "SELECT pg_sleep(60)") }()
		v.kill()
		p := startPostgres(t, dir) // at once: the old server may linger
		if runs(pid) {
			t.Errorf("round %d: the server %d outlived its parent and a new start", round, pid)
		}
		var n int
		if exec1(t, p.URL(), "SELECT count(*) FROM kept", &n); n != round+1 {
			t.Errorf("round %d: %d rows", round, n)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// runs reports whether a process does more than wait to be waited for.
func runs(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

func TestPostgresHasOneHolder(t *testing.T) {
	dir := shortDir(t)
	p := startPostgres(t, dir)
	defer p.Stop()
	_, err := embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: dir, AnyPort: true, BinDir: binaries(t).Dir})
	var held *embedded.HeldError
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second start: %v", err)
	}
}

func TestPostgresNamedPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: shortDir(t), Port: port, BinDir: binaries(t).Dir})
	var busy *embedded.PortError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "-postgres-port") {
		t.Errorf("port in use: %v", err)
	}
}

// TestInterruptedInitdbLeavesNoData kills the process while initdb works, at many points of time.
func TestInterruptedInitdbLeavesNoData(t *testing.T) {
	bins := binaries(t)
	dir := shortDir(t)
	for _, after := range []time.Duration{20, 80, 200, 350} {
		v := start(t, "postgres", dir)
		time.Sleep(after * time.Millisecond)
		v.kill()
		if _, err := os.Stat(filepath.Join(dir, "pgdata")); err == nil {
			break // initdb was quicker: the rest of the cases would not interrupt it
		}
	}
	p := startPostgres(t, dir)
	defer p.Stop()
	var one int
	if exec1(t, p.URL(), "SELECT 1", &one); one != 1 {
		t.Error("no answer")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "pgdata.new-*")); left != nil {
		t.Errorf("left over: %v (PostgreSQL %s)", left, bins.Version)
	}
}

// TestPostgresUnderAnotherUID runs the server as an unprivileged user, the way for root without user namespaces.
func TestPostgresUnderAnotherUID(t *testing.T) {
	if os.Geteuid() != 0 {
		absent.Skip(t, "root", "root's rights", "run the tests as root")
	}
	dir := shortDir(t)
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time on data that the uid owns
		p, err := embedded.StartPostgres(limited(t), embedded.WithoutNamespace(embedded.PostgresOptions{Dir: dir, AnyPort: true,
			BinDir: binaries(t).Dir}))
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		if err != nil || !bytes.Contains(status, []byte("\nUid:\t")) || bytes.Contains(status, []byte("\nUid:\t0\t")) {
			t.Errorf("the server does not run under another uid: %v\n%s", err, status)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindSaysWhereItLookedAndTheWaysOut(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	t.Setenv("AMENDS_POSTGRES_BIN", "")
	empty := t.TempDir()
	_, err := embedded.Find(limited(t), embedded.FindOptions{BinDir: empty})
	var none *embedded.NotFoundError
	if !errors.As(err, &none) || !strings.Contains(none.Guide(), empty) || !strings.Contains(none.Guide(), "AMENDS_POSTGRES_BIN=") || strings.Contains(err.Error(), "\n") {
		t.Errorf("named directory without PostgreSQL: %v", err)
	}
	t.Setenv("AMENDS_POSTGRES_BIN", empty)
	if _, err := embedded.Find(limited(t), embedded.FindOptions{}); !errors.As(err, &none) {
		t.Errorf("AMENDS_POSTGRES_BIN without PostgreSQL: %v", err)
	}
	t.Setenv("AMENDS_POSTGRES_BIN", "")
	_, err = embedded.Find(limited(t), embedded.FindOptions{CacheDir: empty, Major: 99})
	if !errors.As(err, &none) {
		t.Fatalf("a version that does not exist: %v", err)
	}
	for _, word := range []string{"PATH", "npm", "apt-get", "AMENDS_POSTGRES_BIN=", "data is of 99"} {
		if !strings.Contains(none.Guide(), word) {
			t.Errorf("the guide does not tell %q: %s", word, none.Guide())
		}
	}
}

// TestPostgresByNPM installs PostgreSQL through npm, runs it, and finds it again without npm.
func TestPostgresByNPM(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		absent.Skip(t, "npm", "npm", "install Node.js")
	}
	cache, err := os.MkdirTemp("", "amends-npm-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(cache)
	bins, err := embedded.InstallByNPM(limited(t), cache)
	if err != nil {
		t.Fatal(err)
	}
	if bins.Version != "18.4" || bins.Major != 18 {
		t.Errorf("installed %+v", bins)
	}
	p, err := embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: shortDir(t), AnyPort: true, BinDir: bins.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	var version, provider string
	exec1(t, p.URL(), "SHOW server_version", &version)
	exec1(t, p.URL(), "SELECT datlocprovider::text FROM pg_database WHERE datname = current_database()", &provider)
	if version != "18.4" || provider != "b" {
		t.Errorf("server %s, locale provider %s", version, provider)
	}
	again, err := embedded.Find(limited(t), embedded.FindOptions{CacheDir: cache, Major: 18})
	if err != nil || again.Major != 18 {
		t.Errorf("found %+v, %v", again, err)
	}
}
