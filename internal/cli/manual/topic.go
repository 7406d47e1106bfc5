package manual

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/invariant"
	"amends/internal/usage"
)

//go:embed topics/*.md
var topicFiles embed.FS

// Topic is a page of the reference that help shows too.
type Topic struct {
	Name     string // as in amends help NAME and docs/reference/NAME.md
	Short    string // one line
	Markdown string // the page
}

// Topics returns the help topics in the order of help.
func Topics() []Topic {
	list := []Topic{
		{Name: "exit-codes", Short: "What a command's code means, and what to do"},
		{Name: "statuses", Short: "The words for keys, records, verifications and pipelines"},
		{Name: "time", Short: "Business days, times and offsets: which is which, and how they are written"},
	}
	for i := range list {
		b, err := topicFiles.ReadFile("topics/" + list[i].Name + ".md")
		invariant.That(err == nil, "every topic is a file: "+list[i].Name)
		list[i].Markdown = string(b)
	}
	return list
}

// Add gives root its help topics, and a help command that refuses what is neither a command nor a topic.
func Add(root *cobra.Command) {
	var names []string
	for _, t := range Topics() {
		names = append(names, t.Name)
		root.AddCommand(&cobra.Command{Use: t.Name, Short: t.Short, Long: Text(t.Markdown), DisableFlagsInUseLine: true})
	}
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about a command or a topic",
		RunE: func(_ *cobra.Command, words []string) error {
			found, rest, err := root.Find(words)
			if err == nil && found != nil && len(rest) == 0 {
				found.InitDefaultHelpFlag()
				return found.Help()
			}
			if near := usage.Nearest(words[0], names); near != "" && len(words) == 1 {
				return usage.Errorf("no help on %q; did you mean: %s help %s?", words[0], root.Name(), near)
			}
			if found != nil && found != root {
				return usage.NoCommand(found, rest)
			}
			return usage.NoCommand(root, words)
		},
		ValidArgsFunction: func(_ *cobra.Command, words []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completions(root, words, begun), cobra.ShellCompDirectiveNoFileComp
		},
	})
}

// completions returns the commands and topics that go on after words and begin as the last one does.
func completions(root *cobra.Command, words []string, begun string) []cobra.Completion {
	at, _, err := root.Find(words)
	if err != nil || at == nil {
		return nil
	}
	var all []cobra.Completion
	for _, c := range at.Commands() {
		if (c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()) && strings.HasPrefix(c.Name(), begun) {
			all = append(all, cobra.CompletionWithDesc(c.Name(), c.Short))
		}
	}
	return all
}
