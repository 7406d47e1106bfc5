package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/inspect"
	"amends/internal/provision"
	"amends/internal/report"
	"amends/internal/usage"
)

func (a *app) viewShow() *cobra.Command {
	cmd := &cobra.Command{
		Short: "Show rows, tombstones, positions and protocol errors from one snapshot",
		Long: `Shows what the view holds now. It is a live snapshot and proves nothing: verify does. Only the database is read. The code is
0 also when protocol errors are shown; -o csv has the rows alone.`,
		Example: `  amends view show -manifest pipeline.json
  amends view show -manifest pipeline.json -o json | jq .balances`,
		Args: usage.NoArgs,
	}
	a.ManifestFlag(cmd)
	a.SpareBrokersFlag(cmd)
	a.RowsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		form, err := a.Form()
		if err != nil {
			return err
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		opening, cancel := context.WithTimeout(cmd.Context(), target.GiveUp)
		defer cancel()
		s, err := a.Open(opening, t, target.ReadOnly)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
			return err
		}
		switch form {
		case target.FormJSON:
			return inspect.ShowJSON(cmd.Context(), a.Stdout, t.Manifest.Config.Namespace, s.Namespace)
		case target.FormCSV:
			rows := report.NewCSV(a.Stdout, inspect.Columns()...)
			err := inspect.ShowRows(cmd.Context(), t.Manifest.Config.Namespace, t.Manifest.Config.QuantityScale, s.Namespace, rows.Row)
			return errors.Join(err, rows.Flush())
		}
		return inspect.ShowText(cmd.Context(), a.Stdout, t.Manifest.Config.Namespace, t.Manifest.Config.QuantityScale, s.Namespace)
	}
	return watch.Wrap(a.Env, cmd)
}
