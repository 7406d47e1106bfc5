package migrate

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/phrase"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/usage"
)

// misfit is the code of a schema that this binary cannot work with (design section 8).
const misfit = 13

// Up builds the command that applies missing migrations.
func Up(e *target.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Apply missing migrations",
		Long:  "Applies what the database's amends schema lacks, one migration after the other, in one transaction under a lock, and says which. Applied ones are checked, never changed. migrate plan says what it would do.",
		Example: `  AMENDS_DATABASE_URL=postgres://… amends migrate up
  amends migrate up -o json`,
		Args: usage.NoArgs,
	}
	e.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		var before []store.Migration
		if err := with(cmd.Context(), e, target.Migrating, func(ctx context.Context, db *postgres.DB) error {
			if before, err = db.MigrationStatus(ctx); err != nil {
				return err
			}
			return db.Migrate(ctx)
		}); err != nil {
			return err
		}
		return raised(e, before, asJSON)
	}
	return cmd
}

// raised says what was missing and is applied now. Who migrates at the same time may have done it.
func raised(e *target.Env, before []store.Migration, asJSON bool) error {
	type jsonStep struct {
		Version int    `json:"version"`
		Name    string `json:"name"`
	}
	last, steps := 0, []jsonStep{}
	for _, m := range before {
		if last = m.Version; !m.Applied {
			steps = append(steps, jsonStep{m.Version, m.Name})
		}
	}
	if asJSON {
		return json.NewEncoder(e.Stdout).Encode(struct {
			Schema  int        `json:"schema"`
			Version int        `json:"version"`
			Applied []jsonStep `json:"applied"`
		}{1, last, steps})
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "up to date: version %d; %s applied\n", last, phrase.Counted(len(steps), "migration"))
	for _, m := range steps {
		fmt.Fprintf(w, "%d\t%s\n", m.Version, m.Name)
	}
	return w.Flush()
}

// Status builds the command that shows which migrations are applied.
func Status(e *target.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Show which migrations are applied",
		Long: `Lists every migration that this binary or the database has. Missing ones at the end are no failure: migrate up applies them.
The code is 13 where the schema does not fit: a migration that this binary does not know, one with another checksum, or a gap.`,
		Example: "  AMENDS_DATABASE_URL=postgres://… amends migrate status",
		Args:    usage.NoArgs,
	}
	e.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		var steps []store.Migration
		if err := with(cmd.Context(), e, target.GiveUp, func(ctx context.Context, db *postgres.DB) error {
			steps, err = db.MigrationStatus(ctx)
			return err
		}); err != nil {
			return err
		}
		head, fits := headline(steps)
		if err := show(e, steps, head, asJSON); err != nil || fits {
			return err
		}
		return &usage.Verdict{Text: "migrate status: " + head, Code: misfit}
	}
	return watch.Wrap(e, cmd)
}

// with opens the database for work on it within limit.
func with(ctx context.Context, e *target.Env, limit time.Duration, look func(context.Context, *postgres.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	db, err := e.Database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return look(ctx, db)
}

// headline is the answer of status in one line, and whether this binary can work with the schema or complete it.
func headline(steps []store.Migration) (text string, fits bool) {
	last, missing := 0, 0
	for _, s := range steps {
		if s.Applied {
			last = s.Version
		} else {
			missing++
		}
	}
	for _, s := range steps {
		if state := stateOf(s); s.Applied && state != applied || !s.Applied && s.Version < last {
			return fmt.Sprintf("does not fit this binary: migration %d (%s) is %s", s.Version, s.Name, state), false
		}
	}
	switch missing {
	case 0:
		return fmt.Sprintf("up to date: version %d", last), true
	case 1:
		return "1 migration is missing", true
	}
	return fmt.Sprintf("%d migrations are missing", missing), true
}

const applied = "applied"

func stateOf(s store.Migration) string {
	switch {
	case s.Applied && !s.Known:
		return "unknown to this binary"
	case s.Applied && s.Stored != s.Checksum:
		return "applied with another checksum"
	case s.Applied:
		return applied
	}
	return "missing"
}

type jsonMigration struct {
	Version  int    `json:"version"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Checksum string `json:"checksum"`
}

func show(e *target.Env, steps []store.Migration, head string, asJSON bool) error {
	list := make([]jsonMigration, 0, len(steps))
	for _, s := range steps {
		list = append(list, jsonMigration{Version: s.Version, Name: s.Name, State: stateOf(s), Checksum: hex.EncodeToString(s.Checksum[:])})
	}
	if asJSON {
		return json.NewEncoder(e.Stdout).Encode(struct {
			Schema     int             `json:"schema"`
			Migrations []jsonMigration `json:"migrations"`
		}{1, list})
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, m := range list {
		fmt.Fprintf(w, "%d\t%s\t%s\n", m.Version, m.Name, m.State)
	}
	return w.Flush()
}
