package migrate

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/store/postgres/grants"
	"amends/internal/usage"
)

// Grants builds the command that writes the database roles.
func Grants(e *target.Env) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Short: "Write the database roles: one for each job, with what it needs and no more",
		Long: `Prints statements that create the database roles worker, relay, view, audit and reader and give each what its job needs: a
worker cannot touch the view, a view cannot touch the journal, and none can change history, the schema or a binding. Run
them as the owner of schema amends after migrate up, and again after each upgrade. The roles have no password: make login
roles members of them. The owner alone migrates, creates namespaces, binds outputs and rebuilds. No database is needed.`,
		Example: `  amends grants | psql "$AMENDS_DATABASE_URL"
  amends grants -prefix shop_ -o json`,
		Args: usage.NoArgs,
	}
	e.OutputFlag(cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "amends_", "`beginning` of the roles' names")
	cmd.RunE = func(*cobra.Command, []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		sql, err := grants.SQL(prefix)
		if err != nil {
			return usage.Errorf("-prefix: %v", err)
		}
		if !asJSON {
			_, err := io.WriteString(e.Stdout, sql)
			return err
		}
		return grantsJSON(e.Stdout, prefix, sql)
	}
	return cmd
}

type jsonRole struct {
	Name   string      `json:"name"`
	Does   string      `json:"does"`
	Tables []jsonGrant `json:"tables"` // beside reading all of them
}

type jsonGrant struct {
	Table string   `json:"table"`
	May   []string `json:"may"`
}

func grantsJSON(out io.Writer, prefix, sql string) error {
	var list []jsonRole
	for _, r := range grants.Roles() {
		j := jsonRole{Name: prefix + r.Name, Does: r.Does, Tables: []jsonGrant{}}
		for _, t := range r.Tables {
			j.Tables = append(j.Tables, jsonGrant{t.Table, t.May})
		}
		list = append(list, j)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		Schema int        `json:"schema"`
		Roles  []jsonRole `json:"roles"`
		SQL    string     `json:"sql"`
	}{1, list, sql})
}
