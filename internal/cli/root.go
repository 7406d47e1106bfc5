package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/cli/console"
	"amends/internal/cli/importing"
	"amends/internal/cli/manual"
	"amends/internal/cli/migrate"
	"amends/internal/cli/operate"
	"amends/internal/cli/proof"
	"amends/internal/cli/query"
	"amends/internal/cli/restore"
	"amends/internal/cli/target"
	"amends/internal/usage"
)

// app builds and runs the commands of one invocation.
type app struct {
	*target.Env
	names Names
	typed int // flags on the command line, before the environment's
}

// command is one row of the table: its nested name and what builds it. The built command's Use holds the arguments only.
type command struct {
	name  string
	build func(*app) *cobra.Command
}

// table lists every command, in the order of help.
func table() []command {
	return []command{
		{"demo", (*app).demo},
		{"showcase", (*app).showcase},
		{"dev", (*app).dev},
		{"run", (*app).run},
		{"source create", (*app).sourceCreate},
		{"source load", (*app).sourceLoad},
		{"import", func(a *app) *cobra.Command { return importing.Import(a.Env) }},
		{"output create", (*app).outputCreate},
		{"view show", (*app).viewShow},
		{"verify", (*app).verify},
		{"audit", func(a *app) *cobra.Command { return proof.Audit(a.Env) }},
		{"explain", func(a *app) *cobra.Command { return query.Explain(a.Env) }},
		{"balance", func(a *app) *cobra.Command { return query.Balance(a.Env) }},
		{"history", func(a *app) *cobra.Command { return query.History(a.Env) }},
		{"diff", func(a *app) *cobra.Command { return query.Diff(a.Env) }},
		{"tail", func(a *app) *cobra.Command { return query.Tail(a.Env) }},
		{"status", func(a *app) *cobra.Command { return operate.Status(a.Env) }},
		{"doctor", func(a *app) *cobra.Command { return operate.Doctor(a.Env) }},
		{"inspect", func(a *app) *cobra.Command { return operate.Inspect(a.Env) }},
		{"diagnostics", func(a *app) *cobra.Command { return operate.Diagnostics(a.Env) }},
		{"replay", func(a *app) *cobra.Command { return restore.Replay(a.Env) }},
		{"rebuild", func(a *app) *cobra.Command { return restore.Rebuild(a.Env) }},
		{"compare", func(a *app) *cobra.Command { return restore.Compare(a.Env) }},
		{"generate", (*app).generate},
		{"bench", (*app).bench},
		{"sim", (*app).sim},
		{"migrate up", func(a *app) *cobra.Command { return migrate.Up(a.Env) }},
		{"migrate plan", func(a *app) *cobra.Command { return migrate.Plan(a.Env) }},
		{"grants", func(a *app) *cobra.Command { return migrate.Grants(a.Env) }},
		{"migrate status", func(a *app) *cobra.Command { return migrate.Status(a.Env) }},
		{"sql", func(a *app) *cobra.Command { return console.SQL(a.Env) }},
		{"config print", func(a *app) *cobra.Command { return manual.Config(a.Env) }},
		{"man", func(a *app) *cobra.Command { return manual.Man(a.Env) }},
		{"version", (*app).version},
	}
}

// groups says what the parents of nested names are for.
var groups = map[string]string{
	"source":  "Create a source topic, load records",
	"output":  "Create and bind the output topic",
	"view":    "Read the view",
	"migrate": "Database schema: what is applied, what would be, and applying it",
	"config":  "Settings and where they come from",
}

// name returns the program as people call it.
func (a *app) name() string { return filepath.Base(a.Program) }

// root builds the whole command tree.
func (a *app) root() *cobra.Command {
	root := a.bare()
	root.Use = a.name()
	root.SilenceErrors, root.SilenceUsage, root.DisableFlagsInUseLine = true, true, true
	root.Args = usage.NoCommand
	root.SuggestionsMinimumDistance = 2
	root.SetHelpTemplate(usage.Help)
	root.SetUsageTemplate(usage.Help)
	root.SetFlagErrorFunc(usage.FlagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.typed = cmd.Flags().NFlag()
		settings, err := usage.Layered(root, a.Getenv, target.DatabaseName, target.PasswordName, target.TokenName, operate.TokenName)
		if err != nil {
			return err
		}
		a.Getenv, a.Settings = settings.Lookup, settings
		return settings.Apply(cmd)
	}
	parents := map[string]*cobra.Command{}
	for _, c := range table() {
		built := c.build(a)
		parent, leaf, nested := strings.Cut(c.name, " ")
		name := c.name
		if nested {
			name = leaf
		}
		if a.names == Flat {
			name, nested = strings.ReplaceAll(c.name, " ", "-"), false
		}
		built.Use = strings.TrimSpace(name + " " + built.Use)
		built.DisableFlagsInUseLine = true
		if built.ValidArgsFunction == nil {
			built.ValidArgsFunction = cobra.NoFileCompletions
		}
		built.Example = a.examples(built.Example)
		if !nested {
			root.AddCommand(built)
			continue
		}
		if parents[parent] == nil {
			parents[parent] = usage.Group(parent, groups[parent])
			root.AddCommand(parents[parent])
		}
		parents[parent].AddCommand(built)
	}
	root.Example = a.examples(root.Example)
	manual.Add(root)
	return root
}

// examples writes the program's own path and naming into examples that say "amends source create".
func (a *app) examples(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "amends ")
		if !ok {
			continue
		}
		lines[i] = "  " + a.Program + " " + a.named(rest)
	}
	return strings.Join(lines, "\n")
}
