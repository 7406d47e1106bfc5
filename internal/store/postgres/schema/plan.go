package schema

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Plan returns the missing steps in the order in which Migrate applies them, with what each does to the tables that are
// there. ErrSchema where Migrate would refuse. It writes nothing.
func Plan(ctx context.Context, p *session.Pool) (steps []store.MigrationStep, err error) {
	err = p.Read(ctx, "plan migrations", func(ctx context.Context, s *session.Session) error {
		stored, err := readMigrations(ctx, s)
		if err != nil && !errors.Is(err, store.ErrNoSchema) {
			return err
		}
		status := compareMigrations(migrations(), stored)
		if d := differencesOf(status, true); len(d) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(d, "; "), store.ErrSchema)
		}
		sizes, err := readSizes(ctx, s)
		if err != nil {
			return err
		}
		steps = missing(migrations(), status, sizes)
		return nil
	})
	return steps, err
}

// missing returns the steps that are not applied. A table that an earlier one of them creates is empty: what happens to
// it costs nothing.
func missing(known []migration, status []store.Migration, sizes map[string]store.MigrationEffect) []store.MigrationStep {
	var steps []store.MigrationStep
	for i, m := range status {
		if m.Applied {
			continue
		}
		step := store.MigrationStep{Migration: m, SQL: known[i].sql}
		for _, e := range effects(known[i].sql) {
			if size, ok := sizes[e.Table]; ok {
				e.Rows, e.Bytes = size.Rows, size.Bytes
				step.Effects = append(step.Effects, e)
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// readSizes returns the tables of the schema.
func readSizes(ctx context.Context, s *session.Session) (map[string]store.MigrationEffect, error) {
	rows, err := s.RunWith(ctx, statement("table_sizes"))
	if err != nil {
		return nil, err
	}
	sizes := map[string]store.MigrationEffect{}
	var e store.MigrationEffect
	_, err = pgx.ForEachRow(rows, []any{&e.Table, &e.Rows, &e.Bytes}, func() error {
		sizes[e.Table] = e
		return nil
	})
	return sizes, err
}

// A statement begins a line and ends one with its semicolon; functions have no line of the kind. A test compares what
// is found here with what the server does.
var (
	statementOf = regexp.MustCompile(`(?ms)^(ALTER TABLE|CREATE (?:UNIQUE )?INDEX|UPDATE|DELETE FROM|INSERT INTO)\b(.*?);$`)
	tableOf     = regexp.MustCompile(`\bamends\.([a-z_]+)`)
	rewriting   = regexp.MustCompile(`(?is)\bALTER COLUMN \S+ (SET DATA )?TYPE\b|\bSTORED\b|\bGENERATED\b.*\bIDENTITY\b|\bSET (LOGGED|UNLOGGED|ACCESS METHOD|TABLESPACE)\b|\bDEFAULT [a-z_.]+\(`)
	scanning    = regexp.MustCompile(`(?is)\b(ADD CONSTRAINT|ADD CHECK|ADD FOREIGN KEY|SET NOT NULL|CHECK \()`)
)

// effects finds what a step does to tables, those that it creates itself included; the costliest effect of each counts.
func effects(sql string) []store.MigrationEffect {
	var all []store.MigrationEffect
	for _, m := range statementOf.FindAllStringSubmatch(sql, -1) {
		table := tableOf.FindStringSubmatch(m[2])
		if table == nil {
			continue
		}
		e := store.MigrationEffect{Table: table[1], What: costOf(m[1], m[2])}
		same := func(x store.MigrationEffect) bool { return x.Table == e.Table }
		if at := slices.IndexFunc(all, same); at < 0 {
			all = append(all, e)
		} else if weight(e.What) > weight(all[at].What) {
			all[at] = e
		}
	}
	return all
}

func costOf(verb, text string) store.MigrationCost {
	switch {
	case verb == "UPDATE" || verb == "DELETE FROM" || verb == "INSERT INTO":
		return store.MigrationRewrite
	case strings.HasPrefix(verb, "CREATE"):
		return store.MigrationIndex
	case rewriting.MatchString(text):
		return store.MigrationRewrite
	case scanning.MatchString(text) && !strings.Contains(strings.ToUpper(text), "NOT VALID"):
		return store.MigrationScan
	}
	return store.MigrationMoment
}

// weight orders costs.
func weight(c store.MigrationCost) int {
	return slices.Index([]store.MigrationCost{store.MigrationMoment, store.MigrationIndex, store.MigrationScan, store.MigrationRewrite}, c)
}
