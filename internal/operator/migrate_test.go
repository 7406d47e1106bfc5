package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// plan is what migrate plan answers.
type plan struct {
	Migrations []struct {
		Version int
		Name    string
		SQL     string
		Effects []struct {
			Table, Effect string
			Rows          *int64
			Bytes         int64
		}
	}
}

func (s *shell) plan() plan {
	s.t.Helper()
	out := s.call(0, "amends migrate plan -o json").Stdout
	programtest.Conforms(s.t, "migrate-plan", out)
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// An empty database is planned from the first step on and left empty; a populated older one says what is built over what is there.
func TestMigratePlanOfEmptyAndOlderDatabases(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": url})
	empty := s.plan().Migrations
	if len(empty) < 10 || empty[0].Name != "processing" || !strings.Contains(empty[0].SQL, "CREATE TABLE amends.journal") {
		t.Fatalf("an empty database: %v", empty)
	}
	for _, m := range empty {
		if len(m.Effects) != 0 {
			t.Errorf("%s has effects on an empty database: %v", m.Name, m.Effects)
		}
	}
	a := s.call(0, "amends migrate plan -sql")
	if want := fmt.Sprintf("%d migrations to apply, in one transaction", len(empty)); a.First() != want || !strings.Contains(a.Stdout, "\nCREATE TABLE amends.journal (") {
		t.Errorf("%q, want %q", a.First(), want)
	}
	if a := s.call(0, "amends migrate status"); a.First() != fmt.Sprintf("%d migrations are missing", len(empty)) {
		t.Errorf("nothing may be applied by a plan: %q", a.First())
	}
	up := s.call(0, "amends migrate up")
	if last := len(empty); up.First() != fmt.Sprintf("up to date: version %d; %[1]d migrations applied", last) || strings.Count(up.Stdout, "\n") != last+1 {
		t.Errorf("an empty database: %s", up.Stdout)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.PgConn().Exec(t.Context(), `DELETE FROM amends.schema_migrations WHERE version > 7; DROP INDEX amends.view_rows_blocked; DROP INDEX amends.journal_conflicts;
		DROP TABLE amends.audit_state, amends.audit_chunks, amends.rebuilds CASCADE; ANALYZE amends.journal`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	older := s.plan().Migrations
	if len(older) != len(empty)-7 || older[0].Version != 8 || len(older[0].Effects) != 2 {
		t.Fatalf("an older database: %v", older)
	}
	for _, e := range older[0].Effects {
		if e.Effect != "builds an index" || e.Table != "journal" && e.Table != "view_rows" || e.Bytes <= 0 {
			t.Errorf("%+v", e)
		}
	}
	text := s.call(0, "amends migrate plan").Stdout
	if !strings.Contains(text, "  journal: builds an index; who writes to it waits (") {
		t.Error(text)
	}
}

// -watch shows an outage once and goes on by itself when the service is back.
func TestWatchOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": server.URL()})
	s.call(0, "amends migrate up")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	answers := func(out string) int { return strings.Count(out, "up to date: version") }
	before, down := 0, false
	a := s.until(ctx, stop, "amends migrate status -watch 200ms", func(out string) bool {
		switch n := answers(out); {
		case !down && n >= 2:
			server.Kill()
			before, down = answers(out), true
			time.Sleep(time.Second)
			server.Start()
		case down && n > before+2:
			return true
		}
		return false
	})
	if a.Code != 0 || answers(a.Stdout) <= before+2 || strings.Count(a.Stderr, "waiting for PostgreSQL") > 3 {
		t.Errorf("code %d\n%s\n%s", a.Code, a.Stdout, a.Stderr)
	}
}
