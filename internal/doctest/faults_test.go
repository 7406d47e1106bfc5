package doctest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// faults are the rows of the first table of docs/internals/faults.md, in order, after their ids: F1, F2 and so on.
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

// reenacted are the rows of its second table, of ids B1 and so on, and named those of its third, of ids N1 and so on.
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

const (
	faultsPage = "docs/internals/faults.md"
	invariants = 25 // rows of its fourth table
)

// shows finds what a test says of itself in its comment: // Shows F1, I7.
var shows = regexp.MustCompile(`(?m)^(?:Test\w+ s|S)hows ([A-Z][0-9]+(?:, [A-Z][0-9]+)*)\.$`)

// Every fault, every bug, every case and every invariant has its row and a test that says that it shows it; a row names the
// tests that do. With AMENDS_UPDATE_DOCS=1 the last column is written anew.
func TestFaultsNameWhatShowsThem(t *testing.T) {
	t.Parallel()
	var want []string // the rows, without the words that follow the number of an invariant
	for letter, names := range map[string][]string{"F": faults, "B": reenacted, "N": named} {
		for i, name := range names {
			want = append(want, fmt.Sprintf("%s%d %s", letter, i+1, name))
		}
	}
	for i := range invariants {
		want = append(want, fmt.Sprintf("I%d", i+1))
	}
	found := shown(t)
	lines := strings.Split(document(t, faultsPage), "\n")
	var rows []string
	for i, line := range lines {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| shown by |") {
			continue
		}
		row := strings.TrimPrefix(cells[0], "| ")
		id, _, _ := strings.Cut(row, " ")
		if strings.HasPrefix(id, "I") {
			row = id
		}
		rows = append(rows, row)
		if len(found[id]) == 0 {
			t.Errorf("no test says that it shows %s", row)
		}
		lines[i] = strings.Join([]string{cells[0], cells[1], column(found[id]) + " |"}, " | ")
		if lines[i] != line && os.Getenv("AMENDS_UPDATE_DOCS") != "1" {
			t.Errorf("%s: the row names %s, and what shows it is %s", row, cells[2], column(found[id]))
		}
		delete(found, id)
	}
	slices.Sort(want)
	if slices.Sort(rows); !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	for id, tests := range found {
		t.Errorf("%v: there is no row %s", tests, id)
	}
	if os.Getenv("AMENDS_UPDATE_DOCS") == "1" {
		if err := os.WriteFile(filepath.Join(root, faultsPage), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shower is a test that shows something.
type shower struct{ pkg, test string }

// column writes the tests of a row, each package once.
func column(tests []shower) string {
	var text strings.Builder
	for i, s := range tests {
		switch {
		case i > 0 && tests[i-1].pkg == s.pkg:
			text.WriteString(", " + s.test)
		case i > 0:
			text.WriteString("; ")
			fallthrough
		default:
			fmt.Fprintf(&text, "`%s` %s", s.pkg, s.test)
		}
	}
	return text.String()
}

// shown returns, by id, the tests of the tree that say that they show it, in the order of their packages and names.
func shown(t *testing.T) map[string][]shower {
	t.Helper()
	found := map[string][]shower{}
	internal := filepath.Join(root, "internal")
	err := filepath.WalkDir(internal, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		pkg, err := filepath.Rel(internal, filepath.Dir(path))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			if m := shows.FindStringSubmatch(fn.Doc.Text()); m != nil {
				for _, id := range strings.Split(m[1], ", ") {
					found[id] = append(found[id], shower{filepath.ToSlash(pkg), fn.Name.Name})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tests := range found {
		slices.SortFunc(tests, func(a, b shower) int { return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.test, b.test)) })
	}
	return found
}
