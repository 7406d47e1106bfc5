package postgres

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"amends/internal/pgtest"
	"amends/internal/store/postgres/reader"
	"amends/internal/store/postgres/upkeep"
)

func TestEveryStatementIsUsedAndPrepares(t *testing.T) {
	ctx := context.Background()
	db, err := Open(ctx, Options{URL: pgtest.New(t, pgtest.Fast), AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := db.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if made, err := s.Own(ctx, "create_view_stage"); err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	code := sources(t)
	for _, file := range slices.Concat(statementsIn(t, sqlFiles), statementsIn(t, reader.Statements), statementsIn(t, upkeep.Statements)) {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("%s is not used", file)
		}
		if err := s.Prepare(ctx, name); err != nil {
			t.Error(err)
		}
	}
}

func statementsIn(t *testing.T, files fs.FS) []string {
	t.Helper()
	names, err := fs.Glob(files, "sql/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal("no statements", err)
	}
	return names
}

// sources returns the code of the package and of those beneath it.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	beneath, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, beneath...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
