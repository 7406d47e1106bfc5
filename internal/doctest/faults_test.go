package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faults are the rows of the first table of docs/internals/faults.md, in order.
var faults = []string{
	"crash before commit", "crash after commit, before the reply", "relay crash after acknowledgement",
	"lost COMMIT request or reply, late commit", "server restarted; promoted standby, nothing lost", "promoted standby that lost a committed tail",
	"lock wait, deadlock, serialization failure", "disk full (data; WAL)", "transaction pooler in front", "broker or PostgreSQL away (minutes)",
	"rebalance in mid batch, eager and cooperative",
	"zombie worker, relay, view (SIGSTOP past the takeover; inside a COPY, holding the row lock, too)",
	"topic deleted and recreated, partitions added, history truncated, retention made finite",
	"aborted transactions, trailing markers, a transaction left open", "poison bytes, bombs, 100,000 in a row", "clock jumps",
	"SIGTERM in mid batch", "changed configuration, schema older or newer than the binary", "credentials rotated",
}

// reenacted are the rows of its second table, and named those of its third.
var (
	reenacted = []string{
		"a receipt written before the acknowledgement", "a client that acknowledges an unwritten record after a cancelled send",
		"a lease believed by two holders after its session was terminated", "a tombstone overtaken by an older insert",
		"a trailing abort marker that blocks completion for ever", "an outbox row skipped because a lower sequence committed later",
		"a recreated topic consumed with old offsets", "a deadlock between two repairs of the same key", "a notification sent and never retracted",
		"a repair that runs out of its time limit and starts again from zero for ever",
	}
	named = []string{
		"PostgreSQL's frontier 1 beats a group commit of 5", "cancelled while a claim waits for a row that another role's session holds",
		"cancelled inside a delayed offset-adjustment callback", "the broker sees a rebalance wait for a polled decision", "unknown claim, both outcomes",
		"the re-read is impossible, or contradicts", "a backend terminated after a correction's writes and before COMMIT",
		"receipt and view commit unknown, each committed, unchanged, contradictory, unreadable",
		"malformed outputs of every kind, NULs in member names too", "the loader's guard: busy until its connection's end is seen",
	}
)

var packageOf = regexp.MustCompile("^`([a-z/]+)` (.+)$")

// invariantOf finds the number of a row of its fourth table, which has one for each of so many invariants.
var invariantOf = regexp.MustCompile(`^I[0-9]+ `)

const invariants = 25

// Every fault, every bug, every case and every invariant has its row, and every test that a row names exists.
func TestFaultsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, line := range strings.Split(document(t, "docs/internals/faults.md"), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| shown by |") {
			continue
		}
		rows = append(rows, strings.TrimPrefix(cells[0], "| "))
		for _, part := range strings.Split(strings.TrimSuffix(cells[2], " |"), "; ") {
			m := packageOf.FindStringSubmatch(part)
			if m == nil {
				t.Errorf("%s: %q names no package and tests", rows[len(rows)-1], part)
				continue
			}
			tests := testsOf(t, m[1])
			for _, name := range strings.Split(m[2], ", ") {
				if !slices.Contains(tests, name) {
					t.Errorf("%s: internal/%s has no %s", rows[len(rows)-1], m[1], name)
				}
			}
		}
	}
	want := slices.Concat(faults, reenacted, named)
	for i := range invariants {
		want = append(want, fmt.Sprintf("I%d", i+1))
	}
	for i, row := range rows {
		if id := invariantOf.FindString(row); id != "" {
			rows[i] = strings.TrimSpace(id)
		}
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal", pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in internal/%s: %v", pkg, err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
