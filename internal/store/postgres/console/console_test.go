package console_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres/console"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func open(t *testing.T, url string) *console.Console {
	t.Helper()
	c, err := console.Open(t.Context(), url, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask returns the rows of a statement, NULL as ∅.
func ask(ctx context.Context, c *console.Console, statement string) (text string, err error) {
	var b strings.Builder
	_, err = c.Query(ctx, statement, console.Sink{
		Columns: func(columns []console.Column) error {
			for _, x := range columns {
				fmt.Fprintf(&b, "%s|", x.Name)
			}
			return nil
		},
		Row: func(fields [][]byte) error {
			b.WriteString("\n")
			for _, f := range fields {
				if f == nil {
					f = []byte("∅")
				}
				fmt.Fprintf(&b, "%s|", f)
			}
			return nil
		}})
	return b.String(), err
}

func TestReadingStatements(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	execute(t, connect(t, url), "CREATE SCHEMA amends", "CREATE TABLE amends.stock (item text, close bigint)", "INSERT INTO amends.stock VALUES ('widget', 5), (NULL, -1)")
	c := open(t, url)
	for statement, want := range map[string]string{
		"SELECT * FROM stock ORDER BY close DESC;":                       "item|close|\nwidget|5|\n∅|-1|",
		"-- a comment\n/* another /* nested */ */ (TABLE stock) LIMIT 0": "item|close|",
		"with s as (select count(*) from stock) select * from s":         "count|\n2|",
		"VALUES (1, 'a;b')":            "column1|column2|\n1|a;b|",
		"SHOW transaction_read_only":   "transaction_read_only|\non|",
		"SELECT '\\x00ff'::bytea AS b": "b|\n\\x00ff|",
		"SELECT 1 WHERE false":         "?column?|",
		"EXPLAIN (COSTS off) SELECT 1": "QUERY PLAN|\nResult|",
		"SELECT count(*) FROM generate_series(1, 1000) AS g WHERE g = g;": "count|\n1000|",
	} {
		if got, err := ask(t.Context(), c, statement); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", statement, got, err, want)
		}
	}
}

// attacks are what people try, or do by mistake. Each is refused, or has no effect that outlives it.
var attacks = []string{
	"INSERT INTO amends.stock VALUES ('x', 1)",
	"UPDATE amends.stock SET close = 0", "DELETE FROM amends.stock", "TRUNCATE amends.stock", "DROP TABLE amends.stock",
	"CREATE TABLE amends.more (n int)", "SELECT * INTO amends.more FROM amends.stock", "CREATE TABLE more AS SELECT 1",
	"WITH x AS (DELETE FROM amends.stock RETURNING *) SELECT * FROM x",
	"EXPLAIN ANALYZE DELETE FROM amends.stock", "EXPLAIN (ANALYZE) INSERT INTO amends.stock VALUES ('x', 1)",
	"SELECT * FROM amends.stock FOR UPDATE",
	"SELECT 1; DELETE FROM amends.stock", "SELECT 1; COMMIT; DELETE FROM amends.stock", ";DELETE FROM amends.stock",
	"BEGIN", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "START TRANSACTION READ WRITE", "SET TRANSACTION READ WRITE",
	"SET default_transaction_read_only = off", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "RESET ALL", "DISCARD ALL",
	"SELECT set_config('transaction_read_only', 'off', true)",
	"SELECT set_config('transaction_read_only', 'off', true), amends.write()",
	"SELECT set_config('default_transaction_read_only', 'off', false)",
	"SELECT set_config('role', 'none', true), amends.write()",
	"SELECT amends.write()", "SELECT amends.escape()", "SELECT nextval('amends.numbers')", "SELECT setval('amends.numbers', 99)",
	"DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM amends.stock; END $$", "CALL amends.proceed()", "EXPLAIN ANALYZE EXECUTE p",
	"PREPARE p AS DELETE FROM amends.stock", "EXECUTE p",
	"COPY amends.stock FROM PROGRAM 'echo x,1'", "COPY amends.stock TO PROGRAM 'cat > FILE'", "COPY (SELECT 1) TO 'FILE'",
	"SELECT query_to_xml('COPY (SELECT 1) TO PROGRAM ''cat > FILE''', true, true, '')",
	"SELECT set_config('role', 'none', true), query_to_xml('COPY (SELECT 1) TO ''FILE''', true, true, '')",
	"SELECT query_to_xml('DELETE FROM amends.stock RETURNING 1', true, true, '')",
	"SELECT pg_read_file('/etc/passwd')", "SELECT lo_export(lo_from_bytea(0, 'x'), 'FILE')", "SELECT lo_from_bytea(4711, 'x')",
	"SELECT pg_reload_conf()", "LISTEN x", "NOTIFY x", "LOCK TABLE amends.stock", "VACUUM", "CHECKPOINT", "ALTER SYSTEM SET work_mem = '1MB'",
	"GRANT ALL ON amends.stock TO PUBLIC", "ALTER ROLE CURRENT_USER SET default_transaction_read_only = off", "SECURITY LABEL ON TABLE amends.stock IS 'x'",
	"SELECT 1\x00; DELETE FROM amends.stock", "", "--", "/* DELETE", "\\copy x", "FETCH ALL FROM c", "DECLARE c CURSOR FOR SELECT 1",
}

func TestNothingIsChangedByAnyStatement(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	owner := connect(t, url)
	execute(t, owner, "CREATE SCHEMA amends", "CREATE TABLE amends.stock (item text, close bigint)", "INSERT INTO amends.stock VALUES ('widget', 5)",
		"CREATE SEQUENCE amends.numbers",
		"CREATE FUNCTION amends.write() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ UPDATE amends.stock SET close = 0 RETURNING 1 $$",
		`CREATE FUNCTION amends.escape() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			PERFORM set_config('transaction_read_only', 'off', false);
			DELETE FROM amends.stock; RETURN 1; END $$`,
		"CREATE PROCEDURE amends.proceed() LANGUAGE plpgsql AS $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; DELETE FROM amends.stock; COMMIT; END $$")
	state := func() (s string) {
		t.Helper()
		if err := owner.QueryRow(t.Context(), `SELECT concat((SELECT string_agg(stock::text, ' ') FROM amends.stock), ' ', (SELECT last_value FROM amends.numbers),
			' ', (SELECT count(*) FROM pg_class), ' ', (SELECT count(*) FROM pg_largeobject_metadata), ' ', (SELECT count(*) FROM pg_db_role_setting),
			' ', (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())))`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := state()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil { // the server may run under another uid
		t.Fatal(err)
	}
	file := filepath.Join(folder, "written")
	c := open(t, url)
	for _, attack := range attacks {
		attack = strings.ReplaceAll(attack, "FILE", file)
		text, err := ask(t.Context(), c, attack)
		gone := strings.HasPrefix(attack, "SELECT set_config('default") || strings.HasPrefix(attack, "SELECT lo_from_bytea") // with its transaction
		if err == nil && !gone {
			t.Errorf("%s was taken: %s", attack, text)
		}
		var refused *console.Refused
		var pg *pgconn.PgError
		if err != nil && !errors.As(err, &refused) && !errors.As(err, &pg) {
			t.Fatalf("%s: %v", attack, err)
		}
		if got := state(); got != before {
			t.Fatalf("%s changed the database: %s, before %s", attack, got, before)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%s wrote a file", attack)
		}
		if got, err := ask(t.Context(), c, "SELECT current_setting('transaction_read_only'), current_setting('role') <> 'none'"); err != nil || got != "current_setting|?column?|\non|t|" {
			t.Fatalf("after %s: %q %v", attack, got, err)
		}
	}
}

// A role that is no superuser stays what it is, and writes as little.
func TestAnOrdinaryRoleReadsAsItself(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	owner := connect(t, url)
	role := fmt.Sprintf("console_%d", time.Now().UnixNano())
	execute(t, owner, "CREATE SCHEMA amends", "CREATE TABLE amends.stock (item text)", "CREATE TABLE amends.hidden (item text)", "CREATE ROLE "+role+" LOGIN PASSWORD 'p'",
		"GRANT USAGE ON SCHEMA amends TO "+role, "GRANT SELECT, INSERT ON amends.stock TO "+role)
	t.Cleanup(func() {
		_, _ = owner.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role+"; DROP ROLE "+role)
	})
	config := owner.Config()
	c := open(t, fmt.Sprintf("postgres://%s:p@%s:%d/%s", role, config.Host, config.Port, config.Database))
	if got, err := ask(t.Context(), c, "SELECT current_user = session_user AS itself, count(*) FROM stock"); err != nil || got != "itself|count|\nt|0|" {
		t.Errorf("%q %v", got, err)
	}
	for statement, code := range map[string]string{"SELECT * FROM hidden": "42501", "WITH x AS (INSERT INTO stock VALUES ('x') RETURNING 1) SELECT * FROM x": "25006"} {
		var pg *pgconn.PgError
		if _, err := ask(t.Context(), c, statement); !errors.As(err, &pg) || pg.Code != code {
			t.Errorf("%s: %v, want %s", statement, err, code)
		}
	}
}

func TestSessionLocksAreGivenUp(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	c := open(t, url)
	if _, err := ask(t.Context(), c, "SELECT pg_advisory_lock(4711)"); err != nil {
		t.Fatal(err)
	}
	var free bool
	if err := connect(t, url).QueryRow(t.Context(), "SELECT pg_try_advisory_lock(4711)").Scan(&free); err != nil || !free {
		t.Error(free, err)
	}
}

// A huge answer is handed on as it comes, and a reader that has enough ends it.
func TestRowsAreStreamed(t *testing.T) {
	t.Parallel()
	c, err := console.Open(t.Context(), pgtest.New(t, pgtest.Fast), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	enough := errors.New("enough")
	n := 0
	_, err = c.Query(t.Context(), "SELECT generate_series(1, 100000000), repeat('x', 1000)", console.Sink{Columns: func([]console.Column) error { return nil },
		Row: func([][]byte) error {
			if n++; n == 100_000 {
				return enough
			}
			return nil
		}})
	if !errors.Is(err, enough) { // all of it takes longer than a statement may
		t.Errorf("%v after %d rows", err, n)
	}
}

func TestAStatementHasItsTime(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, pgtest.Fast)
	c, err := console.Open(t.Context(), url, time.Second) // in which a busy machine answers what takes no time
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range []string{"SELECT pg_sleep(30)", "SELECT set_config('statement_timeout', '0', false), pg_sleep(30)"} {
		var pg *pgconn.PgError
		if _, err := ask(t.Context(), c, s); !errors.As(err, &pg) || pg.Code != "57014" {
			t.Errorf("%s: %v", s, err)
		}
	}
	if got, err := ask(t.Context(), c, "SHOW statement_timeout"); got != "statement_timeout|\n1s|" {
		t.Error(got, err)
	}
	if _, err := console.Open(t.Context(), "postgres://x@127.0.0.1:1/none", time.Second); !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		statements []string
		rest       string
	}{
		"SELECT 1; SELECT 2;":                    {[]string{"SELECT 1", "SELECT 2"}, ""},
		"SELECT 1":                               {nil, "SELECT 1"},
		";; -- only; a comment\n;":               {nil, ""},
		"SELECT ';', \"a;b\", 'it''s;';x":        {[]string{`SELECT ';', "a;b", 'it''s;'`}, "x"},
		`SELECT E'\';', e'\\'; y`:                {[]string{`SELECT E'\';', e'\\'`}, "y"},
		`SELECT 'name\'; z`:                      {[]string{`SELECT 'name\'`}, "z"},
		"SELECT $$;$$, $a$ ; $$ $a$, a$1$;":      {[]string{"SELECT $$;$$, $a$ ; $$ $a$, a$1$"}, ""},
		"SELECT /* ; /* ; */ ; */ 1 -- ;\n, 2;z": {[]string{"SELECT /* ; /* ; */ ; */ 1 -- ;\n, 2"}, "z"},
		"SELECT 'open; SELECT 1;":                {nil, "SELECT 'open; SELECT 1;"},
		"SELECT (1;2); x":                        {[]string{"SELECT (1;2)"}, "x"},
		"SELECT $1; é;":                          {[]string{"SELECT $1", "é"}, ""},
		"/* open ; ":                             {nil, ""},
		"x;\\d\n\\d a ;\r\n/* c */ \\q\ny":       {[]string{"x", `\d`, `\d a`, `\q`}, "y"},
		"SELECT 1\n\\d\n;":                       {[]string{"SELECT 1\n\\d"}, ""},
	} {
		statements, rest := console.Split(text)
		if diff := cmp.Diff(want.statements, statements); diff != "" || rest != want.rest {
			t.Errorf("%q: rest %q, %s", text, rest, diff)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, text string) {
		statements, rest := console.Split(text)
		kept := strings.Join(statements, ";") + rest
		if len(kept) > len(text) {
			t.Errorf("%q became %q", text, kept)
		}
		_ = console.Check(text)
	})
}
