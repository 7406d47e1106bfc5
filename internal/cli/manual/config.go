package manual

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"amends/internal/cli/target"
	"amends/internal/embedded"
	"amends/internal/usage"
)

// Config builds the command that prints every setting and where its value comes from.
func Config(e *target.Env) *cobra.Command {
	cmd := &cobra.Command{
		Short: "Print every setting, its value and where it comes from",
		Long: `Lists every flag of every command with the value that a command would take when nothing is typed: from the environment, from
the configuration file with its line, from the running embedded stack, or the default. Secrets are never shown, only whether
and where they are set. Variables that begin with AMENDS_ and are no setting are named on stderr.`,
		Example: `  amends config print
  amends config print -o json | jq '.settings[] | select(.from != "default")'`,
		Args: usage.NoArgs,
	}
	e.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		c, err := settingsOf(e, cmd.Root())
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(e.Stdout).Encode(c)
		}
		for _, u := range c.Unknown {
			fmt.Fprintln(e.Stderr, u.sentence())
		}
		return c.text(e.Stdout)
	}
	return cmd
}

// configuration is the documented answer of config print; members are only ever added.
type configuration struct {
	Schema   int       `json:"schema"`
	File     *string   `json:"file"`
	Settings []setting `json:"settings"`
	Unknown  []unknown `json:"unknown"`
}

// setting is one name, with the commands that take it where they differ in their default.
type setting struct {
	Name     string   `json:"name"`
	Variable string   `json:"variable"`
	Value    string   `json:"value"` // of a secret: "" always
	Secret   bool     `json:"secret"`
	Set      bool     `json:"set"` // whether there is a value other than the default
	From     string   `json:"from"`
	Line     int      `json:"line"`
	Commands []string `json:"commands"`
}

// fromStack is where a value comes from that the running embedded stack gives.
const fromStack = "embedded stack"

// unknown is a variable of the environment that is no setting.
type unknown struct {
	Variable string `json:"variable"`
	Nearest  string `json:"nearest"`
}

func (u unknown) sentence() string {
	if u.Nearest == "" {
		return u.Variable + " is no setting and has no effect"
	}
	return u.Variable + " is no setting and has no effect; did you mean " + u.Nearest + "?"
}

// settingsOf collects the settings of every command under root.
func settingsOf(e *target.Env, root *cobra.Command) (*configuration, error) {
	running, found, err := embedded.Running(e.Getenv("AMENDS_DIR"))
	if err != nil {
		return nil, err
	}
	stack := map[string]string{}
	if found {
		stack["manifest"], stack["brokers"], stack["database_url"] = running.Manifest, strings.Join(running.Brokers, ","), running.DatabaseURL
	}
	c := &configuration{Schema: 1, Settings: []setting{}, Unknown: []unknown{}}
	if path := e.Settings.Path(); path != "" {
		c.File = &path
	}
	collect(root, root.Name(), func(command string, f *pflag.Flag) { c.add(e.Settings, stack, command, f) })
	for _, name := range e.Settings.Secrets() {
		c.Settings = append(c.Settings, secret(e.Settings, stack, name))
	}
	slices.SortStableFunc(c.Settings, func(a, b setting) int { return strings.Compare(a.Name, b.Name) })
	c.findUnknown(e)
	return c, nil
}

// collect calls each for every flag of every command, the path without the program's name.
func collect(cmd *cobra.Command, program string, each func(command string, f *pflag.Flag)) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			each(orElse(strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), program)), "(no command)"), f)
		}
	})
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" {
			collect(c, program, each)
		}
	}
}

// add notes a flag of a command: a given value once, a default once for each that there is.
func (c *configuration) add(settings *usage.Settings, stack map[string]string, command string, f *pflag.Flag) {
	s := setting{Name: usage.Setting(f), Variable: usage.Variable(usage.Setting(f)), Value: f.DefValue, From: string(usage.Nobody)}
	switch g := settings.Find(s.Variable); {
	case g.From != usage.Nobody:
		s.Value, s.From, s.Line, s.Set = g.Text, string(g.From), g.Line, true
	case stack[f.Name] != "":
		s.Value, s.From, s.Set = stack[f.Name], fromStack, true
	}
	at := slices.IndexFunc(c.Settings, func(x setting) bool { return x.Name == s.Name && x.Value == s.Value })
	if at < 0 {
		at = len(c.Settings)
		c.Settings = append(c.Settings, s)
	}
	c.Settings[at].Commands = append(c.Settings[at].Commands, command)
}

// secret says whether and where a secret is set, never what it is.
func secret(settings *usage.Settings, stack map[string]string, variable string) setting {
	s := setting{Name: strings.ToLower(strings.TrimPrefix(variable, "AMENDS_")), Variable: variable, Secret: true, From: string(usage.Nobody), Commands: []string{}}
	for _, name := range []string{variable, variable + "_FILE"} {
		if g := settings.Find(name); g.From != usage.Nobody && !s.Set {
			s.Variable, s.From, s.Line, s.Set = name, string(g.From), g.Line, true
		}
	}
	if !s.Set && stack[s.Name] != "" {
		s.From, s.Set = fromStack, true
	}
	return s
}

// foreign are the beginnings of variables that tests of a checkout read.
const foreign = "AMENDS_TEST_ AMENDS_DRILL_ AMENDS_SIM_ AMENDS_EMBEDDED_TEST_ AMENDS_REQUIRE AMENDS_UPDATE_DOCS"

// findUnknown notes what looks like a setting in the environment and is none.
func (c *configuration) findUnknown(e *target.Env) {
	if e.Environ == nil {
		return
	}
	known := []string{usage.FileName, "AMENDS_DIR"}
	for _, s := range c.Settings {
		known = append(known, s.Variable)
		if plain, ok := strings.CutSuffix(s.Variable, "_FILE"); s.Secret && ok {
			known = append(known, plain)
		} else if s.Secret {
			known = append(known, s.Variable+"_FILE")
		}
	}
	for _, pair := range e.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		tests := slices.ContainsFunc(strings.Fields(foreign), func(p string) bool { return strings.HasPrefix(name, p) })
		if strings.HasPrefix(name, "AMENDS_") && !tests && !slices.Contains(known, name) {
			c.Unknown = append(c.Unknown, unknown{Variable: name, Nearest: usage.Nearest(name, known)})
		}
	}
	slices.SortFunc(c.Unknown, func(a, b unknown) int { return strings.Compare(a.Variable, b.Variable) })
}

// text writes the settings for people; the first line is the answer.
func (c *configuration) text(out io.Writer) error {
	counts := map[string]int{}
	names := map[string]int{}
	for _, s := range c.Settings {
		counts[s.From]++
		names[s.Name]++
	}
	file := "no configuration file"
	if c.File != nil {
		file = fmt.Sprintf("%d in %s", counts[string(usage.File)], *c.File)
	}
	given, verb := len(c.Settings)-counts[string(usage.Nobody)], "settings are"
	if given == 1 {
		verb = "setting is"
	}
	fmt.Fprintf(out, "%d %s not the default: %d in the environment, %s, %d by the running embedded stack\n", given, verb,
		counts[string(usage.Environment)], file, counts[fromStack])
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tvalue\tfrom")
	for _, s := range c.Settings {
		value, from := quoteUnlessPlain(s.Value), s.From
		switch {
		case s.Secret && s.Set:
			value = "(set, not shown)"
		case s.Secret:
			value = "(not set)"
		}
		switch s.From {
		case string(usage.Environment):
			from += " " + s.Variable
		case string(usage.File):
			from += fmt.Sprintf(" line %d", s.Line)
		}
		if names[s.Name] > 1 {
			from += " of " + strings.Join(s.Commands, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, value, from)
	}
	return w.Flush()
}

// quoteUnlessPlain makes empty values and values with unusual characters visible.
func quoteUnlessPlain(s string) string {
	if q := fmt.Sprintf("%q", s); s == "" || len(q) != len(s)+2 {
		return q
	}
	return s
}
