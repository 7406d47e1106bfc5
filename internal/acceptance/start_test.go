package acceptance

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"amends/internal/programtest"
)

// Processes that start at the same time on an empty database: each looks, finds no schema and waits for its turn; the first
// makes the schema, the others find it.
func TestFirstStartsAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := newUnbound(t, openKeys)
	ctx := context.Background()
	other, err := pgx.Connect(ctx, s.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	first, err := other.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('amends.migrations', 0))"); err != nil {
		t.Fatal(err)
	}
	s.Write("first.jsonl", widget("T-1", 1, "receipt", 1, 1)+"\n")
	var starting []*programtest.Process
	for _, line := range []string{"amends -role source -manifest source.json", "amends -role source -manifest source.json", "amendsctl migrate-up",
		"amendsctl source-load -manifest source.json -file first.jsonl", "amendsctl output-create -manifest source.json -topic " + s.output} {
		starting = append(starting, s.Start(line))
	}
	programtest.Await(t, "all of them wait", func() bool {
		return s.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == "5"
	})
	// Another one was quicker, so far that there is a ledger. It is so little that no backend is told before it asks.
	if _, err := other.PgConn().Exec(ctx, readFile(t, migrationFiles(t, "/create_ledger")[0])).ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, p := range starting {
		if !strings.Contains(p.Line, "-role") {
			p.Ends(0, "")
		}
	}
	for _, p := range starting[:2] {
		select {
		case <-p.Done():
			t.Fatalf("%s ended:\n%s", p.Line, p.Stderr)
		default:
		}
	}
	s.frontier(0, 1)
	starting[0].Stop(programtest.Deadline)
	starting[1].Stop(programtest.Deadline)
	if got := s.one("SELECT count(*), max(version) - count(*) FROM amends.schema_migrations"); !strings.HasSuffix(got, "|0") {
		t.Errorf("migrations: %s", got)
	}
}
