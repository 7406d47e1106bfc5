package doctest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"amends/internal/cli"
)

// help returns what a program prints for -help of a command.
func help(t *testing.T, names cli.Names, words ...string) string {
	t.Helper()
	program := "amends"
	if names == cli.Flat {
		program = "amendsctl"
	}
	var stdout, stderr bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{Program: program, Names: names, Args: append(slices.Clone(words), "-help"),
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }})
	if code != 0 {
		t.Fatalf("%s %v -help: code %d, %s", program, words, code, &stderr)
	}
	return stdout.String()
}

// subcommands returns the names and sentences under Commands of a help text.
func subcommands(text string) [][2]string {
	var all [][2]string
	_, list, _ := strings.Cut(text, "\nCommands:\n")
	for _, line := range strings.Split(list, "\n") {
		name, about, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			break
		}
		all = append(all, [2]string{name, strings.TrimSpace(about)})
	}
	return all
}

// leaves returns every command that does something, with its sentence. Completion is cobra's own.
func leaves(t *testing.T, names cli.Names, words ...string) [][2]string {
	t.Helper()
	var all [][2]string
	for _, c := range subcommands(help(t, names, words...)) {
		if c[0] == "completion" {
			continue
		}
		path := append(slices.Clone(words), c[0])
		if deeper := leaves(t, names, path...); len(deeper) > 0 {
			all = append(all, deeper...)
			continue
		}
		all = append(all, [2]string{strings.Join(path, " "), c[1]})
	}
	return all
}

// The reference of the command line is what the programs say of themselves.
func TestCommandLineReference(t *testing.T) {
	t.Parallel()
	nested, flat := leaves(t, cli.Nested), leaves(t, cli.Flat)
	if len(nested) < 12 || len(nested) != len(flat) {
		t.Fatalf("%d commands of amends, %d of amendsctl", len(nested), len(flat))
	}
	var list, details strings.Builder
	list.WriteString("| `amends …` | `amendsctl …` | does |\n|---|---|---|\n")
	list.WriteString("| (no command) | (no command) | runs the roles that `-role` names, source unless told; help without any flag |\n")
	for _, c := range nested {
		also := strings.ReplaceAll(c[0], " ", "-")
		if !slices.ContainsFunc(flat, func(f [2]string) bool { return f == [2]string{also, c[1]} }) {
			t.Errorf("amendsctl has no %s with the same sentence", also)
		}
		fmt.Fprintf(&list, "| [`%s`](#amends-%s) | `%s` | %s |\n", c[0], also, also, c[1])
	}
	fmt.Fprintf(&details, "### amends\n\n```text\n%s```\n", help(t, cli.Nested))
	for _, c := range nested {
		fmt.Fprintf(&details, "\n### amends %s\n\n```text\n%s```\n", c[0], help(t, cli.Nested, strings.Fields(c[0])...))
	}
	generated(t, "docs/reference/cli.md", "commands", list.String())
	generated(t, "docs/reference/cli.md", "help", details.String())
}
