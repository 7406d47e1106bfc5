package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// matrix prints the kill matrix and the score; true at 100%.
func matrix(out io.Writer, results []result, took time.Duration) bool {
	fmt.Fprintf(out, "\n%-44s %-38s %-17s %7s  %s\n", "guard", "mutant", "verdict", "seconds", "test")
	kills := 0
	guards, unguarded := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		by := r.by
		if by == "" {
			by = r.mutant.test.run
		}
		fmt.Fprintf(out, "%-44.44s %-38s %-17s %7.1f  %s %s\n", r.mutant.guard, r.mutant.id, r.verdict, r.took.Seconds(), r.mutant.test.pkg, by)
		guards[r.mutant.guard] = true
		if r.verdict == killed {
			kills++
		} else {
			unguarded[r.mutant.guard] = true
		}
	}
	fmt.Fprintf(out, "mutants killed: %d of %d (%d%%), guards: %d of %d, %.0f s\n", kills, len(results), 100*kills/max(len(results), 1),
		len(guards)-len(unguarded), len(guards), took.Seconds())
	return kills == len(results) && kills > 0
}

// document writes docs/internals/guards.md.
func document(guards []guard) string {
	var b strings.Builder
	mutants := 0
	for _, g := range guards {
		mutants += len(g.mutants)
	}
	fmt.Fprintf(&b, `# Guards, and the tests that miss them

Written by %[1]sgo run ./internal/mutate -docs%[1]s from %[1]sinternal/mutate/guards.txt%[1]s; a test compares the two.

A guard is what keeps a fault from becoming a wrong number. %[1]smake mutate%[1]s removes each, one at a time, in a copy of the tree, and runs the test named here: it must fail, with the words
named in the list. A hanging test, a mutant that does not compile, text that is no longer in the tree and a test that fails without a mutant are failures of the campaign.
Canaries, judged first, show that it tells these apart. %[2]d guards, %[3]d mutants.

A row is a mutant: what was taken away, where, and who noticed.

| guard | where | mutant | test |
|---|---|---|---|
`, "`", len(guards), mutants)
	for _, g := range guards {
		for i, m := range g.mutants {
			name := g.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, places(m), cell(m.what), test(m))
		}
	}
	return b.String()
}

// places names the files of a mutant, each by package and name.
func places(m *mutant) string {
	var all []string
	for _, e := range m.edits {
		if name := "`" + strings.TrimPrefix(e.file, "internal/") + "`"; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}

// test names the test function; a pattern's subtests are in the list.
func test(m *mutant) string {
	name, _, _ := strings.Cut(m.test.run, "/")
	return fmt.Sprintf("`%s` %s", path.Base(m.test.pkg), strings.Trim(name, "^$"))
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
