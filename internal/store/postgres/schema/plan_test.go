package schema

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/store"
)

// files returns the file of every table and index of the schema by name: a rewritten one has another.
func files(t *testing.T, conn *pgx.Conn) (tables, indexes map[string]string) {
	t.Helper()
	rows, err := conn.Query(context.Background(), `SELECT c.relname, c.relkind = 'r', coalesce((SELECT t.relname FROM pg_class AS t WHERE t.oid = x.indrelid), ''), c.relfilenode::text
		FROM pg_class AS c LEFT JOIN pg_index AS x ON x.indexrelid = c.oid
		WHERE c.relnamespace = 'amends'::regnamespace AND c.relkind IN ('r', 'i')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, indexes = map[string]string{}, map[string]string{}
	var name, of, file string
	var table bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &table, &of, &file}, func() error {
		if table {
			tables[name] = file
		} else {
			indexes[name] = of
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tables, indexes
}

// What a plan says of each step is what the server does when the step is applied to a populated schema.
func TestSC36PlansSayWhatIsRewritten(t *testing.T) {
	ctx := context.Background()
	pool, conn := openEmpty(t)
	steps := migrations()
	for k := range steps {
		plan, err := Plan(ctx, pool)
		if err != nil || len(plan) != len(steps)-k || plan[0].Version != k+1 || plan[0].SQL != steps[k].sql {
			t.Fatalf("with %d applied: %d steps, %v", k, len(plan), err)
		}
		before, indexesBefore := map[string]string{}, map[string]string{}
		if k > 0 {
			before, indexesBefore = files(t, conn)
		}
		if err := migrate(ctx, pool, steps[:k+1]); err != nil {
			t.Fatal(err)
		}
		after, indexes := files(t, conn)
		rewritten, indexed := map[string]bool{}, map[string]bool{}
		for table, file := range before {
			if after[table] != file {
				rewritten[table] = true
			}
		}
		for name, of := range indexes {
			if _, old := before[of]; old && indexesBefore[name] == "" {
				indexed[of] = true
			}
		}
		said := map[store.MigrationCost]map[string]bool{store.MigrationRewrite: {}, store.MigrationIndex: {}}
		for _, e := range plan[0].Effects {
			if _, old := before[e.Table]; !old || e.Bytes <= 0 {
				t.Errorf("step %d is said to touch %s, which is not there: %+v", k+1, e.Table, e)
			}
			if said[e.What] != nil {
				said[e.What][e.Table] = true
			}
		}
		if d := cmp.Diff([]map[string]bool{rewritten, indexed}, []map[string]bool{said[store.MigrationRewrite], said[store.MigrationIndex]}); d != "" {
			t.Errorf("step %d: rewritten and indexed (-server +plan): %s", k+1, d)
		}
		if sql, ok := populate[k+1]; ok {
			run(t, conn, sql)
		}
	}
	if plan, err := Plan(ctx, pool); err != nil || len(plan) != 0 {
		t.Errorf("a complete schema: %v %v", plan, err)
	}
	run(t, conn, "UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version = 2")
	if _, err := Plan(ctx, pool); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a changed checksum: %v", err)
	}
}

// The same rule on statements that no migration has yet, judged by the server too.
func TestCostsAreTheServers(t *testing.T) {
	_, conn := openEmpty(t)
	run(t, conn, "CREATE SCHEMA amends")
	for sql, want := range map[string]store.MigrationCost{
		"ALTER TABLE amends.t ALTER COLUMN n TYPE bigint;":                                    store.MigrationRewrite,
		"ALTER TABLE amends.t\n    ADD COLUMN a bigint GENERATED ALWAYS AS (n * 2) STORED;":   store.MigrationRewrite,
		"ALTER TABLE amends.t ADD COLUMN b timestamptz NOT NULL DEFAULT clock_timestamp();":   store.MigrationRewrite,
		"ALTER TABLE amends.t ADD COLUMN c bigint NOT NULL DEFAULT 0;":                        store.MigrationMoment,
		"ALTER TABLE amends.t ADD COLUMN d bigint[] DEFAULT '{}',\n    ADD COLUMN e boolean;": store.MigrationMoment,
		"ALTER TABLE amends.t ADD CONSTRAINT positive CHECK (n > 0);":                         store.MigrationScan,
		"ALTER TABLE amends.t ADD CONSTRAINT later CHECK (n > 1) NOT VALID;":                  store.MigrationMoment,
		"ALTER TABLE amends.t ALTER COLUMN s SET NOT NULL;":                                   store.MigrationScan,
		"ALTER TABLE amends.t ALTER COLUMN s SET STORAGE EXTERNAL;":                           store.MigrationMoment,
		"CREATE UNIQUE INDEX t_n ON amends.t (n);":                                            store.MigrationIndex,
	} {
		run(t, conn, "DROP TABLE IF EXISTS amends.t; CREATE TABLE amends.t (n integer, s text)") // none bears on the next
		before, _ := files(t, conn)
		run(t, conn, sql)
		after, _ := files(t, conn)
		got := effects("-- a comment\n" + sql + "\n")
		if len(got) != 1 || got[0].Table != "t" || got[0].What != want || (before["t"] != after["t"]) != (want == store.MigrationRewrite) {
			t.Errorf("%s: %+v, want %q; rewritten: %v", sql, got, want, before["t"] != after["t"])
		}
	}
	two := effects("CREATE INDEX a ON amends.t (n);\nALTER TABLE amends.t ADD CHECK (n > 0);\nALTER TABLE amends.u ADD COLUMN x int;\nUPDATE amends.v SET x = 1;\n")
	got := map[string]store.MigrationCost{}
	for _, e := range two {
		got[e.Table] = e.What
	}
	want := map[string]store.MigrationCost{"t": store.MigrationScan, "u": store.MigrationMoment, "v": store.MigrationRewrite}
	if d := cmp.Diff(want, got); d != "" || !slices.Equal(slices.Sorted(maps.Keys(got)), []string{"t", "u", "v"}) {
		t.Error(d)
	}
}
