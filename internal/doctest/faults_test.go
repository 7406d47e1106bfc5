package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faults are the rows of docs/internals/faults.md, in order.
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

// unshown is what faults.md says of a row without a test.
const unshown = "no test yet"

var packageOf = regexp.MustCompile("^`([a-z/]+)` (.+)$")

// Every fault has its row, and every test that a row names exists.
func TestFaultsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	var rows []string
	missing := 0
	for _, line := range strings.Split(document(t, "docs/internals/faults.md"), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault |") {
			continue
		}
		rows = append(rows, strings.TrimPrefix(cells[0], "| "))
		shown := strings.TrimSuffix(cells[2], " |")
		if shown == unshown {
			missing++
			continue
		}
		for _, part := range strings.Split(shown, "; ") {
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
	if !slices.Equal(rows, faults) {
		t.Errorf("rows %q, want %q", rows, faults)
	}
	if missing > 1 {
		t.Errorf("%d rows without a test, at most one", missing)
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
