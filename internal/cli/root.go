package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// app builds and runs the commands of one invocation.
type app struct {
	Process
	common common
	typed  int // flags on the command line, before the environment's
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
		{"dev", (*app).dev},
		{"run", (*app).run},
		{"source create", (*app).sourceCreate},
		{"source load", (*app).sourceLoad},
		{"output create", (*app).outputCreate},
		{"view show", (*app).viewShow},
		{"verify", (*app).verify},
		{"generate", (*app).generate},
		{"migrate up", (*app).migrateUp},
		{"migrate status", (*app).migrateStatus},
		{"version", (*app).version},
	}
}

// groups says what the parents of nested names are for.
var groups = map[string]string{
	"source":  "Create a source topic, load records",
	"output":  "Create and bind the output topic",
	"view":    "Read the view",
	"migrate": "Database schema: apply migrations, show their state",
}

// name returns the program as people call it.
func (a *app) name() string { return filepath.Base(a.Program) }

// root builds the whole command tree.
func (a *app) root() *cobra.Command {
	root := a.bare()
	root.Use = a.name()
	root.SilenceErrors, root.SilenceUsage, root.DisableFlagsInUseLine = true, true, true
	root.Args = noCommand
	root.SuggestionsMinimumDistance = 2
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.typed = cmd.Flags().NFlag()
		return environment(cmd, a.Getenv)
	}
	parents := map[string]*cobra.Command{}
	for _, c := range table() {
		built := c.build(a)
		parent, leaf, nested := strings.Cut(c.name, " ")
		name := c.name
		if nested {
			name = leaf
		}
		if a.Names == Flat {
			name, nested = strings.ReplaceAll(c.name, " ", "-"), false
		}
		built.Use = strings.TrimSpace(name + " " + built.Use)
		built.DisableFlagsInUseLine = true
		built.Example = a.examples(built.Example)
		if !nested {
			root.AddCommand(built)
			continue
		}
		if parents[parent] == nil {
			parents[parent] = group(parent)
			root.AddCommand(parents[parent])
		}
		parents[parent].AddCommand(built)
	}
	root.Example = a.examples(root.Example)
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
		for _, c := range table() {
			if after, ok := strings.CutPrefix(rest, c.name); ok && a.Names == Flat {
				rest = strings.ReplaceAll(c.name, " ", "-") + after
			}
		}
		lines[i] = "  " + a.Program + " " + rest
	}
	return strings.Join(lines, "\n")
}

// group is the parent of nested names; alone it says what to type.
func group(name string) *cobra.Command {
	return &cobra.Command{Use: name, Short: groups[name], RunE: func(cmd *cobra.Command, args []string) error {
		var known []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				known = append(known, cmd.CommandPath()+" "+c.Name())
			}
		}
		slices.Sort(known)
		if len(args) > 0 {
			return usagef("unknown command %q; try: %s", cmd.CommandPath()+" "+args[0], strings.Join(known, ", "))
		}
		return usagef("%s needs a command; try: %s", cmd.CommandPath(), strings.Join(known, ", "))
	}}
}

// noArgs refuses arguments where flags are meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("%s takes no argument %q; try: %s -help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// noCommand says which command was meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q; did you mean: %s %s?", args[0], cmd.CommandPath(), strings.Join(near, ", "+cmd.CommandPath()+" "))
	}
	return usagef("unknown command %q; try: %s -help", args[0], cmd.CommandPath())
}

// flagError says which flag was meant.
func flagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return usagef("%v; try: %s -help", err, cmd.CommandPath())
	}
	name, best, at := missing.GetSpecifiedName(), "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < at {
			best, at = f.Name, d
		}
	})
	if best != "" {
		return usagef("unknown flag -%s; did you mean -%s?", name, best)
	}
	return usagef("unknown flag -%s; try: %s -help", name, cmd.CommandPath())
}

// distance is the number of single-byte edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

const helpTemplate = `{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}Usage:
{{if .Runnable}}  {{.UseLine}}{{if .HasAvailableFlags}} [flags]{{end}}
{{end}}{{if .HasAvailableSubCommands}}  {{.CommandPath}} COMMAND [flags]

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags (each also as AMENDS_<NAME>; single-dash long flags are accepted):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}`
