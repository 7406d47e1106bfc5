package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"path"
	"slices"
	"strings"
	"testing"
)

// Limits of style section 1, in lines, and of interfaces in methods.
const (
	maxFunction  = 70
	maxFile      = 500
	maxTestFile  = 800
	maxPackage   = 2_000
	maxInterface = 5
)

// badNames are no names for a package: they say nothing about its job.
var badNames = strings.Fields("util utils common types helper helpers base misc shared")

func TestSizesAndHabits(t *testing.T) {
	tr := readTree(t)
	var problems []string
	for _, f := range tr.sorted() {
		problems = append(problems, folderProblems(f)...)
		if !slices.Contains(foldersOf(testOnly), f.name) { // they share a server among the tests of a binary
			problems = append(problems, stateProblems(tr, f)...)
		}
		for _, s := range f.files {
			problems = append(problems, fileProblems(tr, s)...)
		}
	}
	report(t, problems)
}

// folderProblems judges a package as a whole.
func folderProblems(f *folder) []string {
	var problems []string
	if slices.Contains(badNames, path.Base(f.name)) {
		problems = append(problems, f.name+": a package is named by its job, not "+path.Base(f.name))
	}
	lines, doc := 0, ""
	for _, s := range f.code() {
		lines += bytes.Count(s.text, []byte{'\n'})
		if s.ast.Doc == nil {
			continue
		}
		if doc != "" {
			problems = append(problems, s.path+": a second package comment")
		}
		if doc = s.ast.Doc.Text(); path.Base(s.path) != "doc.go" && s.ast.Name.Name != "main" {
			problems = append(problems, s.path+": the package comment belongs in doc.go")
		}
	}
	if lines > maxPackage {
		problems = append(problems, fmt.Sprintf("%s: %d lines of code, at most %d", f.name, lines, maxPackage))
	}
	switch {
	case doc == "":
		problems = append(problems, f.name+": no package comment")
	case f.files[0].ast.Name.Name != "main":
		for _, part := range []string{"Owns:", "Does not own:", "Fails with:"} {
			if !strings.Contains(doc, "\n"+part) {
				problems = append(problems, fmt.Sprintf("%s: doc.go does not say %q", f.name, part))
			}
		}
	}
	return problems
}

// fileProblems judges one file by itself.
func fileProblems(tr *tree, s *source) []string {
	var problems []string
	say := func(n ast.Node, what string) {
		problems = append(problems, fmt.Sprintf("%v: %s", tr.fset.Position(n.Pos()), what))
	}
	limit := maxFile
	if s.test {
		limit = maxTestFile
	}
	if n := bytes.Count(s.text, []byte{'\n'}); n > limit {
		problems = append(problems, fmt.Sprintf("%s: %d lines, at most %d", s.path, n, limit))
	}
	if pretty, err := format.Source(s.text); err != nil || !bytes.Equal(pretty, s.text) {
		problems = append(problems, s.path+": not formatted by gofmt")
	}
	for _, group := range s.ast.Comments {
		for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"} {
			if slices.Contains(strings.FieldsFunc(group.Text(), notLetter), word) {
				say(group, "says "+word)
			}
		}
	}
	for _, d := range s.ast.Decls {
		declProblems(tr, s, d, say)
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.InterfaceType:
			if m := n.Methods.NumFields(); m > maxInterface && !s.test && !slices.Contains(foldersOf(testOnly), path.Dir(s.path)) { // a suite takes the whole store
				say(n, fmt.Sprintf("an interface of %d methods, at most %d", m, maxInterface))
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, n.Sel.Name) && x.Name != "absent" && path.Dir(s.path) != "internal/absent" {
				say(n, "skips a test otherwise than by absent.Skip")
			}
		}
		return true
	})
	return problems
}

func notLetter(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' }

// declProblems judges one declaration: its length, its comment, its name.
func declProblems(tr *tree, s *source, d ast.Decl, say func(ast.Node, string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.Name == "init" && d.Recv == nil {
			say(d, "func init")
		}
		if s.test {
			return
		}
		if n := tr.fset.Position(d.End()).Line - tr.fset.Position(d.Pos()).Line + 1; n > maxFunction {
			say(d, fmt.Sprintf("%s has %d lines, at most %d", d.Name.Name, n, maxFunction))
		}
		if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil && !ofError(d) {
			say(d, d.Name.Name+" is exported and has no comment")
		}
	case *ast.GenDecl:
		if s.test || d.Doc != nil {
			return
		}
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && spec.Doc == nil {
					say(spec, spec.Name.Name+" is exported and has no comment")
				}
			case *ast.ValueSpec:
				if slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) && spec.Doc == nil && spec.Comment == nil {
					say(spec, spec.Names[0].Name+" is exported and has no comment")
				}
			}
		}
	}
}

// ofError reports whether a method is one of the error interface, which the type's own comment covers.
func ofError(d *ast.FuncDecl) bool {
	return d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")
}

// exportedReceiver reports whether a function has no receiver or one of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return true
		}
	}
}
