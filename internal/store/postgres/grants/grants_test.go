package grants_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/pgtest"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/grants"
)

// allowed is what each role may do, by hand from what its job is: a worker decides, a relay publishes, a view
// materializes, an audit remembers. SELECT and schema usage go without saying.
var allowed = map[string]string{
	"worker": "journal:INSERT keys:INSERT partitions:UPDATE quarantine:INSERT snapshots:INSERT snapshots:UPDATE",
	"relay":  "leases:UPDATE receipts:INSERT relay_progress:UPDATE",
	"view":   "leases:UPDATE protocol_errors:INSERT view_keys:INSERT view_progress:UPDATE view_rows:INSERT view_rows:UPDATE",
	"audit":  "audit_chunks:DELETE audit_chunks:INSERT audit_state:INSERT audit_state:UPDATE verifications:DELETE verifications:INSERT",
	"reader": "",
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// refused reports whether the server refuses a statement for want of a privilege; it is rolled back in any case.
func refused(t *testing.T, conn *pgx.Conn, role, sql string) bool {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+role); err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), sql)
	var pg *pgconn.PgError
	if err != nil && (!errors.As(err, &pg) || pg.Code != "42501") {
		t.Fatalf("%s: %s: %v", role, sql, err)
	}
	return err != nil
}

// Every role and every table: what it may do it can, everything else is refused with 42501.
func TestEachRoleIsRefusedWhatItMustNotDo(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	prefix := fmt.Sprintf("grants_%d_", time.Now().UnixNano())
	sql, err := grants.SQL(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range grants.Roles() {
			_, _ = conn.Exec(context.WithoutCancel(t.Context()), fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", prefix+r.Name), pgx.QueryExecModeSimpleProtocol)
		}
	})
	execute(t, conn, sql)
	execute(t, conn, fmt.Sprintf("GRANT DELETE ON amends.journal TO %sworker", prefix)) // somebody's mistake
	execute(t, conn, sql)                                                               // again takes it back
	rows, err := conn.Query(t.Context(), `SELECT c.relname, (SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attidentity = '' LIMIT 1)
		FROM pg_class AS c WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind = 'r' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	var table, column string
	if _, err := pgx.ForEachRow(rows, []any{&table, &column}, func() error { columns[table] = column; return nil }); err != nil || len(columns) < 15 {
		t.Fatal(columns, err)
	}
	for _, r := range grants.Roles() {
		var may []string
		for table, column := range columns {
			for verb, statement := range map[string]string{
				"INSERT":   "INSERT INTO amends.%[1]s (%[2]s) SELECT %[2]s FROM amends.%[1]s WHERE false",
				"UPDATE":   "UPDATE amends.%[1]s SET %[2]s = %[2]s WHERE false",
				"DELETE":   "DELETE FROM amends.%[1]s WHERE false",
				"TRUNCATE": "TRUNCATE amends.%[1]s CASCADE",
				"ALTER":    "ALTER TABLE amends.%[1]s ADD COLUMN more int",
				"TRIGGER":  "CREATE INDEX ON amends.%[1]s (%[2]s)",
			} {
				if !refused(t, conn, prefix+r.Name, fmt.Sprintf(statement, table, column)) {
					may = append(may, table+":"+verb)
				}
			}
			if refused(t, conn, prefix+r.Name, "SELECT count(*) FROM amends."+table) {
				t.Errorf("%s may not read %s", r.Name, table)
			}
		}
		slices.Sort(may)
		if diff := cmp.Diff(allowed[r.Name], strings.Join(may, " ")); diff != "" {
			t.Errorf("%s (-by hand +server): %s", r.Name, diff)
		}
		for _, sql := range []string{"CREATE TABLE amends.more (n int)", "DROP SCHEMA amends CASCADE", "CREATE FUNCTION amends.more() RETURNS int LANGUAGE sql RETURN 1", "CREATE ROLE more"} {
			if !refused(t, conn, prefix+r.Name, sql) {
				t.Errorf("%s may: %s", r.Name, sql)
			}
		}
		if refused(t, conn, prefix+r.Name, "SELECT * FROM amends.balances, amends.alerts, amends.statuses, amends.outbox LIMIT 1") {
			t.Errorf("%s may not read the views", r.Name)
		}
	}
}

func TestPrefixesThatAreNoNames(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "A", "1a", "a-b", "a b", "a;DROP", `a"`, "a'", strings.Repeat("a", 41), "é"} {
		if _, err := grants.SQL(p); err == nil {
			t.Errorf("%q was taken", p)
		}
	}
	if sql, err := grants.SQL(strings.Repeat("a", 40)); err != nil || !strings.HasSuffix(sql, "COMMIT;\n") {
		t.Error(err)
	}
}
