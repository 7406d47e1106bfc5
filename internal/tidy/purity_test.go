package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// pure are the packages that decide: equal arguments give equal results, and nothing else happens.
var pure = strings.Fields("invariant ledger manifest wire journal authority fold diff engine view workload oracle")

// impure are the imports, with all below them, that a pure package has no use for.
var impure = strings.Fields("context os net sync log testing syscall unsafe plugin embed io/fs io/ioutil math/rand crypto/rand runtime database path/filepath")

// impureCalls are functions of packages that are pure otherwise.
var impureCalls = map[string]string{
	"time": "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker Local LoadLocation",
	"fmt":  "Print Printf Println Fprint Fprintf Fprintln Scan Scanf Scanln",
}

// TestDecisionLayerIsPure shows F16.
func TestDecisionLayerIsPure(t *testing.T) {
	tr := readTree(t)
	var problems []string
	for _, name := range pure {
		f := tr.folders[folderOf(name)]
		if f == nil {
			continue // the import table reports it
		}
		for _, s := range f.code() {
			problems = append(problems, impurities(tr, s)...)
		}
	}
	report(t, problems)
}

// impurities returns what a file of a pure package does that it must not.
func impurities(tr *tree, s *source) []string {
	var problems []string
	say := func(n ast.Node, what string) {
		problems = append(problems, fmt.Sprintf("%v: %s, in a pure package", tr.fset.Position(n.Pos()), what))
	}
	for _, spec := range s.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		if slices.ContainsFunc(impure, func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") }) {
			say(spec, "imports "+p)
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n, "starts a goroutine")
		case *ast.SelectStmt:
			say(n, "selects")
		case *ast.ChanType:
			say(n, "uses a channel")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(strings.Fields(impureCalls[x.Name]), n.Sel.Name) {
				say(n, "uses "+x.Name+"."+n.Sel.Name)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
				say(n, "calls "+f.Name)
			}
		}
		return true
	})
	return problems
}
