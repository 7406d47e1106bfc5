package pgtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/scratch"

	"github.com/jackc/pgx/v5"
)

// Standby makes a base backup of the server and starts it as a streaming standby with the same users and databases. Where
// there is no pg_basebackup the test ends through absent.Skip.
func (s *Instance) Standby() *Instance {
	s.t.Helper()
	program := filepath.Join(s.BinDir(), "pg_basebackup")
	if _, err := os.Stat(program); err != nil {
		absent.Skip(s.t, absent.KindPostgreSQL, "pg_basebackup beside the server's programs", "install a whole PostgreSQL, not only initdb and postgres")
	}
	dir, err := scratch.Dir("amends-pgtest-")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	copied := filepath.Join(dir, filepath.Base(s.DataDir()))
	backup := exec.CommandContext(ctx, program, "--dbname="+s.URL(), "--pgdata="+copied, "--checkpoint=fast", "--write-recovery-conf", "--no-sync")
	if out, err := backup.CombinedOutput(); err != nil {
		s.t.Fatalf("make base backup: %v %s", err, out)
	}
	password, err := os.ReadFile(filepath.Join(filepath.Dir(s.DataDir()), passwordName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, passwordName), password, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	standby := &Instance{t: s.t, dir: dir, more: s.more}
	if standby.pg, err = startIn(dir, 0, false, s.more); err != nil {
		s.t.Fatalf("start standby: %v", err)
	}
	standby.live, standby.port = true, standby.pg.Port()
	s.t.Cleanup(func() {
		standby.Stop()
		if err := os.RemoveAll(dir); err != nil {
			s.t.Logf("remove standby: %v", err)
		}
	})
	return standby
}

// passwordName is the file of the superuser's password, which package embedded keeps beside the cluster.
const passwordName = "password"

// CatchUp waits until a standby has replayed what the server has written so far.
func (s *Instance) CatchUp(standby *Instance) {
	s.t.Helper()
	await(s.t, "the standby", func(ctx context.Context) (done bool, err error) {
		var written string
		if written, err = one[string](ctx, s.URL(), "SELECT pg_current_wal_flush_lsn()::text"); err != nil {
			return false, err
		}
		return one[bool](ctx, standby.URL(), "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)", written)
	})
}

// Detach makes a standby receive nothing more: what the server commits from now on is lost with it.
func (s *Instance) Detach() {
	s.t.Helper()
	for _, sql := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		s.exec(sql)
	}
	await(s.t, "the end of replication", func(ctx context.Context) (bool, error) {
		return one[bool](ctx, s.URL(), "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
	})
}

// Promote makes a standby a server of its own, on the next timeline.
func (s *Instance) Promote() {
	s.t.Helper()
	s.exec("SELECT pg_promote(true, 60)")
}

func (s *Instance) exec(sql string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// await asks until the answer is yes.
func await(t testing.TB, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		done, err := holds(ctx)
		if done {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("wait for %s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func one[T any](ctx context.Context, url, sql string, args ...any) (value T, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return value, err
	}
	defer conn.Close(ctx)
	return value, conn.QueryRow(ctx, sql, args...).Scan(&value)
}
