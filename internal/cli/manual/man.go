package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"amends/internal/cli/target"
	"amends/internal/usage"
)

// Man builds the command that writes the manual pages.
func Man(e *target.Env) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Short: "Write the manual pages of every command and topic",
		Long: `Writes one page in section 1 for each command of this program, named as in amends-source-create.1, and one in section 7 for
each help topic. Existing pages are written over.`,
		Example: `  amends man -dir /usr/local/share/man
  man ` + filepath.Base(e.Program),
		Args: usage.NoArgs,
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`directory` that gets man1 and man7")
	usage.Own(cmd, "dir", "man-dir") // elsewhere it is the directory of the embedded stack
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if dir == "" {
			return usage.Errorf("-dir is missing: the directory that gets man1 and man7")
		}
		n := 0
		for path, page := range Pages(cmd.Root(), e.Program) {
			path = filepath.Join(dir, path)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err == nil {
				err = os.WriteFile(path, []byte(page), 0o644)
			}
			if err != nil {
				return fmt.Errorf("write manual: %w", err)
			}
			n++
		}
		fmt.Fprintf(e.Stderr, "%d pages written\n", n)
		return nil
	}
	return cmd
}

// Pages returns the manual pages of a tree of commands by their path, such as man1/amends-verify.1. Program is what the
// examples begin with.
func Pages(root *cobra.Command, program string) map[string]string {
	all := map[string]string{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		switch {
		case cmd.IsAdditionalHelpTopicCommand():
			return
		case cmd.IsAvailableCommand() || cmd == root:
			all["man1/"+name+".1"] = page(root, cmd, program)
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
	for _, t := range Topics() {
		all["man7/"+root.Name()+"-"+t.Name+".7"] = topicPage(root.Name(), t)
	}
	return all
}

// page writes one command.
func page(root, cmd *cobra.Command, program string) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	short := cmd.Short
	if cmd == root {
		short = "published balances and alerts, kept right"
	}
	head(&b, name, "1", root.Name())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", escape(name), escape(short))
	if cmd.Runnable() {
		words := strings.TrimPrefix(cmd.Use, cmd.Name())
		words = strings.TrimSpace(words + onlyIf(cmd.HasAvailableLocalFlags(), " [flags]"))
		fmt.Fprintf(&b, ".B %s\n%s\n", escape(cmd.CommandPath()), escape(words))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".br\n.B %s\nCOMMAND [flags]\n", escape(cmd.CommandPath()))
	}
	if cmd.Long != "" || cmd.Short != "" {
		b.WriteString(".SH DESCRIPTION\n")
		prose(&b, orElse(cmd.Long, cmd.Short))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escape(c.Name()), escape(c.Short))
			}
		}
	}
	flags(&b, cmd)
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		for _, line := range strings.Split(strings.ReplaceAll(cmd.Example, program+" ", root.Name()+" "), "\n") {
			b.WriteString(escape(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\nSee\n.BR %s (7).\n", escape(root.Name()+"-exit-codes"))
	related(&b, root, cmd)
	return b.String()
}

// flags writes the options of a command.
func flags(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableLocalFlags() {
		return
	}
	b.WriteString(".SH OPTIONS\nEach is also read from the environment as AMENDS_ and its name in capitals, and from the YAML file that AMENDS_CONFIG_FILE names.\n")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, about := pflag.UnquoteUsage(f)
		names := `\-` + escape(f.Name)
		if f.Shorthand != "" {
			names = `\-` + escape(f.Shorthand) + ", " + names
		}
		fmt.Fprintf(b, ".TP\n.B %s%s\n%s%s\n", names, onlyIf(value != "", ` \fI`+escape(value)+`\fR`), escape(about),
			onlyIf(!plainDefault(f), " (default "+escape(f.DefValue)+")"))
	})
}

// plainDefault: a default that says nothing.
func plainDefault(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "0", "false", "0s", "[]":
		return true
	}
	return strings.Contains(f.Usage, "default")
}

// related names the pages of the parent and of the commands beside this one.
func related(b *strings.Builder, root, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-")+" (1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, strings.ReplaceAll(c.CommandPath(), " ", "-")+" (1)")
		}
	}
	for _, t := range Topics() {
		names = append(names, root.Name()+"-"+t.Name+" (7)")
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, n := range names {
		fmt.Fprintf(b, ".BR %s%s\n", escape(n), onlyIf(i < len(names)-1, ","))
	}
}

// topicPage writes a help topic.
func topicPage(program string, t Topic) string {
	var b strings.Builder
	head(&b, program+"-"+t.Name, "7", program)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", escape(program+"-"+t.Name), escape(t.Short))
	first := true
	for _, x := range blocks(t.Markdown) {
		switch {
		case x.kind == heading && x.level == 1: // the page's own title
		case x.kind == heading:
			fmt.Fprintf(&b, ".SH %s\n", escape(plain(x.lines[0])))
			first = true
		case x.kind == paragraph:
			b.WriteString(onlyIf(!first, ".PP\n") + escape(plain(strings.Join(x.lines, " "))) + "\n")
			first = false
		default:
			rows(&b, x)
			first = false
		}
	}
	return b.String()
}

// rows writes a table or a list as terms with their text, a fenced block as it is.
func rows(b *strings.Builder, x block) {
	switch x.kind {
	case table:
		table := x.rows()
		for _, r := range table[1:] {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escape(plain(r[0])), escape(plain(r[1])))
			for i := 2; i < len(r); i++ {
				fmt.Fprintf(b, ".br\n.I %s:\n%s\n", escape(plain(table[0][i])), escape(plain(r[i])))
			}
		}
	case list:
		for _, item := range x.lines {
			fmt.Fprintf(b, ".IP \\(bu 2\n%s\n", escape(plain(item)))
		}
	default:
		b.WriteString(".nf\n.RS 4\n")
		for _, l := range x.lines {
			b.WriteString(escape(l) + "\n")
		}
		b.WriteString(".RE\n.fi\n")
	}
	b.WriteString(".PP\n")
}

// head begins a page. It bears no date, so that the same commands make the same pages.
func head(b *strings.Builder, name, section, program string) {
	fmt.Fprintf(b, ".TH \"%s\" \"%s\" \"\" \"%s\"\n.nh\n.ad l\n", escape(strings.ToUpper(name)), section, escape(program))
}

// prose writes paragraphs, one to each line of the text that ends one.
func prose(b *strings.Builder, text string) {
	for i, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		b.WriteString(onlyIf(i > 0, ".PP\n") + escape(part) + "\n")
	}
}

// escape writes a text so that roff shows it as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

func onlyIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
