package operate

import (
	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/inspect"
	"amends/internal/usage"
)

// listed is how many blocked keys inspect lists.
const listed = 100

// Inspect shows progress and what it cost.
func Inspect(e *target.Env) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Short: "Show progress, lags and what commits cost, also as one static page",
		Long: `Positions of every stage, lags in records and by age, what waits in the outbox, and what the commits of each partition cost:
rewind depth, refolded days, changed outputs, lock and commit time, all together and the latest 32. One snapshot of the
database and no verification. Work that was not measured is unknown, never zero. -format html is one page that refers to
nothing outside itself.`,
		Example: `  amends inspect -manifest pipeline.json
  amends inspect -manifest pipeline.json -o json
  amends inspect -manifest pipeline.json -format html > progress.html`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	cmd.Flags().StringVarP(&format, "format", "o", format, "`form` of the answer on stdout: text, json or html")
	target.Complete(cmd, "format", "text", "json", "html")
	usage.Own(cmd, "format", "inspect-format") // that of source load is another
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		write := inspect.ProgressText
		switch format {
		case "text":
		case "json":
			write = inspect.ProgressJSON
		case "html":
			write = inspect.ProgressPage
		default:
			return usage.Errorf("-format %s: text, json or html", format)
		}
		p, err := progress(cmd.Context(), e, listed)
		if err != nil {
			return err
		}
		return write(e.Stdout, p)
	}
	return watch.Wrap(e, cmd)
}
