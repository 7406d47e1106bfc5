package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Error is a wrong invocation: what is wrong and what to type.
type Error struct{ text string }

// Error returns one line.
func (e *Error) Error() string { return e.text }

// Errorf returns a formatted *Error.
func Errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Group returns the parent of nested names, about which about says something; alone it says what to type.
func Group(name, about string) *cobra.Command {
	return &cobra.Command{Use: name, Short: about, DisableFlagsInUseLine: true, RunE: parent}
}

// Completion adds the command completion to a root whose output is set. Alone, and with what is no shell, it says what to type.
func Completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = nil, parent
		}
	}
}

// parent says what to type instead of a parent alone or with a name that is none of its commands.
func parent(cmd *cobra.Command, args []string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, cmd.CommandPath()+" "+c.Name())
		}
	}
	slices.Sort(known)
	if len(args) > 0 {
		return Errorf("unknown command %q; try: %s", cmd.CommandPath()+" "+args[0], strings.Join(known, ", "))
	}
	return Errorf("%s needs a command; try: %s", cmd.CommandPath(), strings.Join(known, ", "))
}

// NoArgs refuses arguments where flags are meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Errorf("%s takes no argument %q; try: %s -help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// NoCommand says which command was meant.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return Errorf("unknown command %q; did you mean: %s %s?", args[0], cmd.CommandPath(), strings.Join(near, ", "+cmd.CommandPath()+" "))
	}
	return Errorf("unknown command %q; try: %s -help", args[0], cmd.CommandPath())
}

// FlagError says which flag was meant.
func FlagError(cmd *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) {
		return Errorf("%v; try: %s -help", err, cmd.CommandPath())
	}
	name := missing.GetSpecifiedName()
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if best := Nearest(name, known); best != "" {
		return Errorf("unknown flag -%s; did you mean -%s?", name, best)
	}
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return Errorf("unknown flag -%s; did you mean: %s %s?", name, cmd.CommandPath(), name)
		}
	}
	return Errorf("unknown flag -%s; try: %s -help", name, cmd.CommandPath())
}

// Nearest returns the first of the known names that is at most two edits away and none nearer, "" if none is.
func Nearest(name string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if d := distance(name, k); d < at {
			best, at = k, d
		}
	}
	return best
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

// Help is the template of help and usage: examples first.
const Help = `{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if not .IsAdditionalHelpTopicCommand}}Usage:
{{end}}{{if .Runnable}}  {{.UseLine}}{{if .HasAvailableFlags}} [flags]{{end}}
{{end}}{{if .HasAvailableSubCommands}}  {{.CommandPath}} COMMAND [flags]

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}{{if .HasHelpSubCommands}}
Topics ({{.CommandPath}} help TOPIC):{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}
{{end}}{{if and .HasAvailableLocalFlags (not .IsAdditionalHelpTopicCommand)}}
Flags (each also as AMENDS_<NAME>, or in the YAML file of AMENDS_CONFIG_FILE; single-dash long flags are accepted):
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}`
