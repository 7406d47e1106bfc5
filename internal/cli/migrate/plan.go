package migrate

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/usage"
)

// Plan builds the command that says what up would do.
func Plan(e *target.Env) *cobra.Command {
	var withSQL bool
	cmd := &cobra.Command{
		Short: "Show what migrate up would do, and what it costs",
		Long: `Lists the missing migrations with their checksums and what each does to the tables that are there: whether rows are rewritten
or only read, whether an index is built, and how large the table is. All of them are one transaction, so what waits, waits
until its end. Nothing is changed. Where up would refuse, so does plan, with the same code.`,
		Example: `  amends migrate plan
  amends migrate plan -sql`,
		Args: usage.NoArgs,
	}
	e.OutputFlag(cmd)
	cmd.Flags().BoolVar(&withSQL, "sql", false, "print the statements too (JSON has them always)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		var steps []store.MigrationStep
		if err := with(cmd.Context(), e, target.GiveUp, func(ctx context.Context, db *postgres.DB) error {
			steps, err = db.MigrationPlan(ctx)
			return err
		}); err != nil {
			return err
		}
		if asJSON {
			return planJSON(e.Stdout, steps)
		}
		return planText(e.Stdout, steps, withSQL)
	}
	return watch.Wrap(e, cmd)
}

type jsonStep struct {
	Version  int          `json:"version"`
	Name     string       `json:"name"`
	Checksum string       `json:"checksum"`
	SQL      string       `json:"sql"`
	Effects  []jsonEffect `json:"effects"`
}

type jsonEffect struct {
	Table  string              `json:"table"`
	Effect store.MigrationCost `json:"effect"`
	Rows   *int64              `json:"rows"` // null where the server has no estimate
	Bytes  int64               `json:"bytes"`
}

func planJSON(out io.Writer, steps []store.MigrationStep) error {
	list := make([]jsonStep, 0, len(steps))
	for _, s := range steps {
		j := jsonStep{Version: s.Version, Name: s.Name, Checksum: hex.EncodeToString(s.Checksum[:]), SQL: s.SQL, Effects: []jsonEffect{}}
		for _, x := range s.Effects {
			effect := jsonEffect{Table: x.Table, Effect: x.What, Bytes: x.Bytes}
			if x.Rows >= 0 {
				effect.Rows = &x.Rows
			}
			j.Effects = append(j.Effects, effect)
		}
		list = append(list, j)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Schema     int        `json:"schema"`
		Migrations []jsonStep `json:"migrations"`
	}{1, list})
}

// waiting says who waits for a cost.
func waiting(c store.MigrationCost) string {
	switch c {
	case store.MigrationIndex:
		return "who writes to it waits"
	case store.MigrationMoment:
		return "who uses it waits, for no work of its own"
	}
	return "who uses it waits"
}

func planText(out io.Writer, steps []store.MigrationStep, withSQL bool) error {
	w := bufio.NewWriter(out)
	switch len(steps) {
	case 0:
		fmt.Fprintln(w, "nothing to do: the schema is up to date")
	case 1:
		fmt.Fprintln(w, "1 migration to apply")
	default:
		fmt.Fprintf(w, "%d migrations to apply, in one transaction\n", len(steps))
	}
	for _, s := range steps {
		fmt.Fprintf(w, "%04d_%s  sha256 %x\n", s.Version, s.Name, s.Checksum)
		if len(s.Effects) == 0 {
			fmt.Fprintln(w, "  touches no table that is there")
		}
		for _, x := range s.Effects {
			rows := "rows not estimated"
			if x.Rows >= 0 {
				rows = fmt.Sprintf("about %d rows", x.Rows)
			}
			fmt.Fprintf(w, "  %s: %s; %s (%s, %.1f MB)\n", x.Table, x.What, waiting(x.What), rows, float64(x.Bytes)/1e6)
		}
		if withSQL {
			fmt.Fprintf(w, "\n%s\n", s.SQL)
		}
	}
	return w.Flush()
}
