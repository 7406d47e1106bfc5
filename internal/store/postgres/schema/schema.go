package schema

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"amends/internal/invariant"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// Numbered steps from 1 without gaps. A released file never changes.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

//go:embed sql/*.sql
var sqlFiles embed.FS

func statement(name string) string {
	b, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	invariant.That(err == nil, "every statement named in the code is a file: "+name)
	return string(b)
}

type migration struct {
	name     string
	sql      string
	version  int
	checksum [32]byte
}

// migrations returns this binary's steps in order.
func migrations() []migration {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	invariant.That(err == nil, "the pattern of migrations is valid")
	all := make([]migration, len(files))
	for i, file := range files {
		b, err := migrationFiles.ReadFile(file)
		number, name, named := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
		version, numbered := strconv.Atoi(number)
		invariant.That(err == nil && named && numbered == nil && version == i+1, "migrations are numbered from 1 without gaps: "+file)
		all[i] = migration{name: name, sql: string(b), version: version, checksum: sha256.Sum256(b)}
	}
	return all
}

// Migrate applies the missing migrations in one transaction, one process at a time. ErrSchema, naming each difference, if
// what is applied is not a prefix of this binary's migrations with the same checksums; nothing changes then.
func Migrate(ctx context.Context, p *session.Pool) error { return migrate(ctx, p, migrations()) }

func migrate(ctx context.Context, p *session.Pool, steps []migration) error {
	ctx, cancel := context.WithTimeout(ctx, session.MigrateTimeout)
	defer cancel()
	s, err := p.Acquire(ctx)
	if err != nil {
		return session.Before("migrate", err)
	}
	defer s.Release()
	return session.Before("migrate", applyMissing(ctx, s, steps))
}

func applyMissing(ctx context.Context, s *session.Session, steps []migration) error {
	if err := s.Begin(ctx); err != nil {
		return err
	}
	if err := s.Run(ctx, statement("lock_migrations")); err != nil {
		return err
	}
	stored, err := readMigrations(ctx, s)
	if err != nil && !errors.Is(err, store.ErrNoSchema) {
		return err
	}
	if d := differencesOf(compareMigrations(steps, stored), true); len(d) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(d, "; "), store.ErrSchema)
	}
	if errors.Is(err, store.ErrNoSchema) {
		if err := s.Run(ctx, statement("create_ledger")); err != nil {
			return fmt.Errorf("create ledger of migrations: %w", err)
		}
	}
	for _, m := range steps[min(len(stored), len(steps)):] {
		if err := s.Run(ctx, m.sql); err != nil {
			return fmt.Errorf("apply %04d_%s: %w", m.version, m.name, err)
		}
		rows, err := s.RunWith(ctx, statement("insert_migration"), m.version, m.name, m.checksum[:])
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			return fmt.Errorf("record %04d_%s: %w", m.version, m.name, err)
		}
	}
	return s.Commit(ctx)
}

// Status returns every migration that this binary or the database has, in order. It writes nothing; a database without
// the schema has none applied.
func Status(ctx context.Context, p *session.Pool) (status []store.Migration, err error) {
	err = p.Read(ctx, "read migrations", func(ctx context.Context, s *session.Session) error {
		stored, err := readMigrations(ctx, s)
		if err != nil && !errors.Is(err, store.ErrNoSchema) {
			return err
		}
		status = compareMigrations(migrations(), stored)
		return nil
	})
	return status, err
}

// Check succeeds if exactly this binary's migrations are applied: ErrNoSchema, or ErrSchema naming each difference. It
// writes nothing.
func Check(ctx context.Context, p *session.Pool) error {
	return p.Read(ctx, "check schema", func(ctx context.Context, s *session.Session) error {
		stored, err := readMigrations(ctx, s)
		if err != nil {
			return err
		}
		if d := differencesOf(compareMigrations(migrations(), stored), false); len(d) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(d, "; "), store.ErrSchema)
		}
		return nil
	})
}

// readMigrations reads the ledger: ErrNoSchema where there is none.
func readMigrations(ctx context.Context, s *session.Session) ([]store.Migration, error) {
	rows, err := s.RunWith(ctx, statement("ledger_exists"))
	if err != nil {
		return nil, err
	}
	exists, err := pgx.CollectOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, store.ErrNoSchema
	}
	if rows, err = s.RunWith(ctx, statement("read_migrations")); err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (m store.Migration, err error) {
		var checksum []byte
		err = row.Scan(&m.Version, &m.Name, &checksum)
		copy(m.Stored[:], checksum)
		m.Applied = true
		return m, err
	})
}

// compareMigrations joins the binary's steps with the stored ones by version.
func compareMigrations(steps []migration, stored []store.Migration) []store.Migration {
	var all []store.Migration
	at := 0
	for _, m := range steps {
		for ; at < len(stored) && stored[at].Version < m.version; at++ {
			all = append(all, stored[at])
		}
		joined := store.Migration{Name: m.name, Version: m.version, Checksum: m.checksum, Known: true}
		if at < len(stored) && stored[at].Version == m.version {
			joined.Applied, joined.Stored = true, stored[at].Stored
			at++
		}
		all = append(all, joined)
	}
	return append(all, stored[at:]...)
}

// differencesOf names what keeps a schema from fitting this binary; missing migrations at the end are none where they
// are about to be applied.
func differencesOf(status []store.Migration, applying bool) []string {
	var d []string
	last := 0
	for _, m := range status {
		if m.Applied {
			last = m.Version
		}
	}
	for _, m := range status {
		switch {
		case !m.Known:
			d = append(d, fmt.Sprintf("migration %d (%s) is unknown to this binary", m.Version, m.Name))
		case m.Applied && m.Stored != m.Checksum:
			d = append(d, fmt.Sprintf("migration %d (%s) has checksum %x, this binary's has %x", m.Version, m.Name, m.Stored[:6], m.Checksum[:6]))
		case !m.Applied && m.Version < last:
			d = append(d, fmt.Sprintf("migration %d (%s) is missing below %d", m.Version, m.Name, last))
		case !m.Applied && !applying:
			d = append(d, fmt.Sprintf("migration %d (%s) is not applied", m.Version, m.Name))
		}
	}
	return d
}
