package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/absent"
	"amends/internal/pgtest"
	"amends/internal/pipelinetest"
	"amends/internal/roles"
	"amends/internal/worker"
)

// refusal is a way in which a server that answers refuses the worker's commits.
type refusal struct {
	code  string // SQLSTATE of the cause, which the error must name
	says  string // what else it must say
	begin func(w *world) (end func())
}

// SC32: lock timeout and statement timeout. No progress, a clear error, exit 1 after bounded attempts; once cleared the same
// start goes on.
// Shows F7.
func TestSC32TimeoutsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]refusal{
		"SC32 lock": {"55P03", "held by process", func(w *world) func() {
			conn, err := pgx.Connect(context.Background(), w.url)
			w.ok(err)
			_, err = conn.Exec(context.Background(), "BEGIN; SELECT FROM amends.partitions FOR UPDATE")
			w.ok(err)
			return func() { _ = conn.Close(context.Background()) }
		}},
		"SC32 statement": {"57014", "", func(w *world) func() {
			return w.slow("journal")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(newWorld(t, pgtest.New(t)), c)
		})
	}
}

// slow makes inserts into a table take longer than any statement may.
func (w *world) slow(table string) (end func()) {
	w.Helper()
	run(w.T, w.url, `CREATE FUNCTION amends.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_catalog.pg_sleep(60); RETURN NULL; END'`)
	run(w.T, w.url, "CREATE TRIGGER slow BEFORE INSERT ON amends."+table+" FOR EACH STATEMENT EXECUTE FUNCTION amends.slow()")
	return func() { run(w.T, w.url, "DROP FUNCTION amends.slow CASCADE") }
}

// SC32: the same for receipts and rows of the view.
// Shows F7.
func TestSC32StatementTimeoutOfDelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role  roles.Role
		other roles.Role
		table string
	}{"SC32 relay": {roles.Relay, roles.View, "receipts"}, "SC32 view": {roles.View, roles.Relay, "view_rows"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			others := w.start("others", roles.Source, c.other)
			end := w.slow(c.table)
			r := w.start("first", c.role)
			w.load(pipelinetest.Before...)
			var cause *pgconn.PgError
			if err := r.ends(); !errors.As(err, &cause) || cause.Code != "57014" {
				t.Errorf("the %s ended with %v", c.role, err)
			}
			if got, err := w.sql("SELECT count(*)::text FROM amends." + c.table); err != nil || got != "0" {
				t.Errorf("%s rows in %s, %v", got, c.table, err)
			}
			end()
			again := w.start("second", c.role)
			w.load(pipelinetest.Correction...)
			w.load(pipelinetest.CancelLastDay...)
			w.positions(5, 11)
			again.stops()
			others.stops()
			w.worked()
		})
	}
}

// refused runs the worked example with commits refused in the middle.
func refused(w *world, c refusal) {
	w.Helper()
	delivery := w.start("delivery", roles.Relay, roles.View)
	source := w.start("first", roles.Source)
	w.load(pipelinetest.Before...)
	w.positions(3, 5)
	before := w.tables()
	end := c.begin(w)
	w.load(pipelinetest.Correction...)
	err := source.ends()
	var cause *pgconn.PgError
	if !errors.Is(err, worker.ErrRetries) || !errors.As(err, &cause) || cause.Code != c.code || !strings.Contains(err.Error(), c.says) {
		w.Errorf("the worker ended with %v", err)
	}
	end()
	if got := w.tables(); got != before {
		w.Errorf("stored while commits were refused: %s, before: %s", got, before)
	}
	w.start("second", roles.Source)
	w.load(pipelinetest.CancelLastDay...)
	w.positions(5, 11)
	delivery.stops()
	w.worked()
}

// tables counts what the worker has stored.
func (w *world) tables() string {
	w.Helper()
	text, err := w.sql(`SELECT concat_ws(' ', (SELECT count(*) FROM amends.journal), (SELECT count(*) FROM amends.keys), (SELECT count(*) FROM amends.quarantine),
		(SELECT sum(frontier) FROM amends.partitions), (SELECT sum(commits) FROM amends.partitions))`)
	w.ok(err)
	return text
}

const megabyte = 1 << 20

// smallDisk mounts a file system in memory that the server can write to.
func smallDisk(t *testing.T, s *pgtest.Instance, size int) string {
	t.Helper()
	dir := t.TempDir()
	const how = "run the tests on Linux as root"
	if err := syscall.Mount("amends-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		absent.Skip(t, absent.All, "a disk that can be filled: mount tmpfs: "+err.Error(), how)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	info, err := os.Stat(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	inner := filepath.Join(dir, "data")
	for _, f := range []func() error{
		func() error { return os.Chmod(dir, 0o711) },
		func() error { return os.Mkdir(inner, 0o700) },
		func() error { return os.Chown(inner, int(owner.Uid), int(owner.Gid)) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	return inner
}

// fill writes to a disk until nothing fits any more and returns how to make room again.
func fill(t *testing.T, dir string) (clear func()) {
	t.Helper()
	path := filepath.Join(filepath.Dir(dir), "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := megabyte; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// padding makes records that need room: each key is new and as long as it may be.
func padding(first, n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprintf(`{"schema":1,"txn_id":"%s-%d","revision":%d,"state":"active","item":"widget","location":"berlin","day":"2026-02-01","kind":"receipt","quantity":1}`,
			strings.Repeat("x", 490), first+i, 1))
	}
	return values
}

// SC32: the disk of the data is full. No partial rows, a clear error, exit 1; the same start goes on when there is room.
// Shows F8.
func TestSC32FullDataDisk(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t)
	dir := smallDisk(t, s, 48*megabyte)
	run(t, s.URL(), "CREATE TABLESPACE small LOCATION '"+dir+"'")
	run(t, s.URL(), "CREATE DATABASE small TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' TABLESPACE small")
	w := newWorld(t, strings.Replace(s.URL(), "/postgres", "/small", 1))
	source := w.start("first", roles.Source)
	w.load(padding(0, 10)...)
	w.frontier("10")
	clear := fill(t, dir)
	before := w.tables()
	const many = 4_000
	w.load(padding(10, many)...)
	err := source.ends()
	var cause *pgconn.PgError
	if !errors.Is(err, worker.ErrRetries) || !errors.As(err, &cause) || cause.Code != "53100" || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("the worker ended with %v", err)
	}
	committed, now := frontierOf(before), frontierOf(w.tables())
	if now < committed || now > 10+many {
		t.Errorf("frontier %d", now)
	}
	w.whole()
	clear()
	w.start("second", roles.All()...)
	w.frontier(fmt.Sprint(10 + many))
	w.whole()
	w.shown()
	w.verified()
}

// shown waits until the view has everything that was decided.
func (w *world) shown() {
	w.Helper()
	w.await("outputs that the view lacks", "0", func() (string, error) {
		return w.sql("SELECT (p.next_sequence - v.next_sequence)::text FROM amends.partitions p JOIN amends.view_progress v USING (namespace_id, partition) WHERE partition = 0")
	})
}

func frontierOf(tables string) (n int) {
	_, _ = fmt.Sscan(strings.Fields(tables)[3], &n)
	return n
}

// whole checks that every offset below the frontier has its one row, and no other, at one moment: a worker may go on.
func (w *world) whole() {
	w.Helper()
	got, err := w.sql(`SELECT count(*) || ' ' || coalesce(max(source_offset) + 1, 0) || ' ' || (SELECT frontier FROM amends.partitions WHERE partition = 0) FROM amends.journal`)
	w.ok(err)
	if at := strings.Fields(got); at[0] != at[2] || at[1] != at[2] {
		w.Errorf("journal rows, their end and the frontier: %s", got)
	}
}

// SC32: the disk of the WAL is full. PostgreSQL ends itself; nothing partial is left, and the roles go on by themselves or by
// the same start when there is room and the server is back.
// Shows F8.
func TestSC32FullWALDisk(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t)
	dir := smallDisk(t, s, 96*megabyte)
	s.Stop()
	wal := filepath.Join(s.DataDir(), "pg_wal")
	moved := filepath.Join(dir, "wal")
	if err := copyTree(wal, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(wal); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, wal); err != nil {
		t.Fatal(err)
	}
	s.Start()
	w := newWorld(t, s.New())
	source := w.start("first", roles.Source)
	w.load(padding(0, 10)...)
	w.frontier("10")
	clear := fill(t, dir)
	const batches, each = 40, 1_000
	for i := range batches {
		w.load(padding(10+i*each, each)...)
	}
	gone := func() (string, error) {
		if _, err := w.sql("SELECT pg_current_wal_insert_lsn()::text"); err != nil {
			return "refuses", nil
		}
		return "answers", nil
	}
	w.await("the server", "refuses", gone)
	clear()
	s.Kill() // what is left of it
	s.Start()
	w.await("the server", "answers", gone)
	w.whole()
	w.await("frontier", fmt.Sprint(10+batches*each), func() (string, error) {
		select {
		case <-source.done: // an outcome that could not be read for 20 s: exit 12, and the next start goes on
			if !errors.Is(source.err, worker.ErrUnresolved) {
				return "", fmt.Errorf("the worker ended with %w", source.err)
			}
			source = w.start("second", roles.Source)
		default:
		}
		return w.sql("SELECT frontier::text FROM amends.partitions WHERE partition = 0")
	})
	source.stops()
	w.whole()
}

// copyTree copies a directory with its files' owners.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			err = os.Mkdir(target, 0o700)
		} else {
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(target, b, 0o600)
			}
		}
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		return os.Chown(target, int(owner.Uid), int(owner.Gid))
	})
}
