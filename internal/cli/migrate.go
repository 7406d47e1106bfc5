package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/store"
	"amends/internal/usage"
)

func (a *app) migrateUp() *cobra.Command {
	return &cobra.Command{
		Short:   "Apply missing migrations",
		Long:    "Applies what the database's amends schema lacks, one migration after the other, under a lock. Applied ones are checked, never changed.",
		Example: "  AMENDS_DATABASE_URL=postgres://… amends migrate up",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), target.Migrating)
			defer cancel()
			db, err := a.Database(ctx)
			if err != nil {
				return err
			}
			defer db.Close()
			if err := db.Migrate(ctx); err != nil {
				return err
			}
			fmt.Fprintln(a.Stderr, "the schema is up to date")
			return nil
		},
	}
}

func (a *app) migrateStatus() *cobra.Command {
	cmd := &cobra.Command{
		Short:   "Show which migrations are applied",
		Example: "  AMENDS_DATABASE_URL=postgres://… amends migrate status",
		Args:    usage.NoArgs,
	}
	a.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), target.GiveUp)
		defer cancel()
		db, err := a.Database(ctx)
		if err != nil {
			return err
		}
		defer db.Close()
		steps, err := db.MigrationStatus(ctx)
		if err != nil {
			return err
		}
		return a.printMigrations(steps, asJSON)
	}
	return cmd
}

type jsonMigration struct {
	Version  int    `json:"version"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Checksum string `json:"checksum"`
}

func (a *app) printMigrations(steps []store.Migration, asJSON bool) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 8, 2, ' ', 0)
	list := make([]jsonMigration, 0, len(steps))
	for _, s := range steps {
		m := jsonMigration{Version: s.Version, Name: s.Name, State: migrationState(s), Checksum: hex.EncodeToString(s.Checksum[:])}
		list = append(list, m)
		fmt.Fprintf(w, "%d\t%s\t%s\n", m.Version, m.Name, m.State)
	}
	if !asJSON {
		return w.Flush()
	}
	return json.NewEncoder(a.Stdout).Encode(struct {
		Schema     int             `json:"schema"`
		Migrations []jsonMigration `json:"migrations"`
	}{1, list})
}

func migrationState(s store.Migration) string {
	switch {
	case s.Applied && !s.Known:
		return "unknown to this binary"
	case s.Applied && s.Stored != s.Checksum:
		return "applied with another checksum"
	case s.Applied:
		return "applied"
	}
	return "missing"
}
