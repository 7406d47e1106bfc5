package doctest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"amends/internal/ledger"
	"amends/internal/pgtest"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/verify"
)

const jsonReference = "docs/reference/json.md"

// The tables of the JSON reference name every member that is written, and no other. Of a member that is not in the
// answers below nothing can be said, so each answer holds as much as there can be.
func TestViewShowMembers(t *testing.T) {
	t.Parallel()
	seen := members{}
	for _, name := range []string{"worked-example.json", "stopped.json"} {
		seen.read(t, []byte(document(t, "internal/inspect/testdata/"+name)))
	}
	seen.drop("envelopes[].") // an envelope is S8's
	compareMembers(t, "view show", seen)
}

func TestVerifyMembers(t *testing.T) {
	t.Parallel()
	cause := store.Cause{TxnID: "T-1", Revision: 1}
	blocked := ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "T-1", Revision: 1}, {Code: ledger.CountsDisagree, Day: 1}}}
	side := &verify.Side{Present: true, Version: 1, Payload: &verify.Payload{Kind: ledger.Balance, Close: 1}, Cause: &cause, Sources: []store.Cause{cause}}
	var out bytes.Buffer
	err := report.WriteJSON(&out, &verify.Report{Status: verify.Drift, Boundary: []verify.Boundary{{}}, Differences: 1,
		Blocked: []verify.BlockedKey{{Key: ledger.StockKey{Item: "i", Location: "l"}, Status: blocked}},
		Reasons: []verify.Reason{{Code: verify.ViewBehind}},
		First:   &verify.Difference{What: verify.Value, ID: ledger.OutputID{Kind: ledger.Balance, Day: 1}, Expected: side, Actual: side}})
	if err != nil {
		t.Fatal(err)
	}
	seen := members{}
	seen.read(t, out.Bytes())
	seen.drop("drift.first.expected.payload.", "drift.first.actual.payload.")
	compareMembers(t, "verify", seen)
}

// The codes are those of package verify.
func TestVerifyCodes(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal", "verify", "report.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]members{"What": {}, "Code": {}}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			name, _ := spec.Type.(*ast.Ident)
			value, _ := slices.Concat(spec.Values, []ast.Expr{nil})[0].(*ast.BasicLit)
			if name != nil && value != nil && of[name.Name] != nil {
				of[name.Name][strings.Trim(value.Value, `"`)] = true
			}
		}
		return true
	})
	compareMembers(t, "Kinds of differences", of["What"])
	compareMembers(t, "Codes of reasons", of["Code"])
}

func TestDemoMembers(t *testing.T) {
	t.Parallel()
	pgtest.Installed(t)
	dir, err := os.MkdirTemp("", "amends-doc-") // short: PostgreSQL's socket lies below it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may run under another uid
		t.Fatal(err)
	}
	s := newSpace(t, map[string]string{"AMENDS_DIR": filepath.Join(dir, "stack")})
	seen := members{}
	seen.read(t, []byte(s.call("demo", "-once", "-o", "json")))
	seen.drop("verify.") // the same as of verify
	compareMembers(t, "demo", seen)
}

// members are the paths of what was written, such as boundary[].partition.
type members map[string]bool

func (m members) read(t *testing.T, text []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	m.walk("", v)
}

func (m members) walk(path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			at := name
			if path != "" {
				at = path + "." + name
			}
			m[at] = true
			m.walk(at, inner)
		}
	case []any:
		for _, inner := range v {
			m.walk(path+"[]", inner)
		}
	}
}

func (m members) drop(prefixes ...string) {
	maps.DeleteFunc(m, func(path string, _ bool) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
	})
}

// compareMembers compares what was written with the table under a heading.
func compareMembers(t *testing.T, heading string, seen members) {
	t.Helper()
	_, part, ok := strings.Cut(document(t, jsonReference), "# "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", jsonReference, heading)
	}
	listed := members{}
	for _, line := range strings.Split(part, "\n") {
		if strings.HasPrefix(line, "##") { // the next heading
			break
		}
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			listed[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if !listed[name] {
			t.Errorf("%s, %s: %s is written and not in the table", jsonReference, heading, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !seen[name] {
			t.Errorf("%s, %s: %s is in the table and not written", jsonReference, heading, name)
		}
	}
}
