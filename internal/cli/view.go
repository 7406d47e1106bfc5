package cli

import (
	"context"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/inspect"
	"amends/internal/provision"
	"amends/internal/usage"
)

func (a *app) viewShow() *cobra.Command {
	cmd := &cobra.Command{
		Short: "Show rows, tombstones, positions and protocol errors from one snapshot",
		Long: `Shows what the view holds now. It is a live snapshot and proves nothing: verify does. Only the database is read; -brokers
is there so that all commands of a session take the same flags. The code is 0 also when protocol errors are shown.`,
		Example: `  amends view show -manifest pipeline.json
  amends view show -manifest pipeline.json -o json | jq .balances`,
		Args: usage.NoArgs,
	}
	a.ManifestFlag(cmd)
	a.BrokersFlag(cmd)
	a.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
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
		if asJSON {
			return inspect.ShowJSON(cmd.Context(), a.Stdout, t.Manifest.Config.Namespace, s.Namespace)
		}
		return inspect.ShowText(cmd.Context(), a.Stdout, t.Manifest.Config.Namespace, s.Namespace)
	}
	return cmd
}
