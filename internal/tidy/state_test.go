package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
)

// stateProblems finds assignments to package-level variables: such a variable is a table or a sentinel, never state.
// Names are compared without types, so a function that declares the name itself is left alone.
func stateProblems(tr *tree, f *folder) []string {
	globals := map[string]bool{}
	for _, s := range f.code() {
		for _, d := range s.ast.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						globals[name.Name] = name.Name != "_"
					}
				}
			}
		}
	}
	var problems []string
	for _, s := range f.code() {
		for _, d := range s.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			local := declaredIn(fn)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				for _, target := range assigned(n) {
					if name := baseName(target); globals[name] && !local[name] {
						problems = append(problems, fmt.Sprintf("%v: assigns to the package-level variable %s", tr.fset.Position(n.Pos()), name))
					}
				}
				return true
			})
		}
	}
	return problems
}

// assigned returns what a statement assigns to.
func assigned(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// baseName returns the variable at the root of an expression, "" if there is none.
func baseName(x ast.Expr) string {
	for {
		switch y := x.(type) {
		case *ast.Ident:
			return y.Name
		case *ast.IndexExpr:
			x = y.X
		case *ast.SelectorExpr:
			x = y.X
		case *ast.StarExpr:
			x = y.X
		case *ast.ParenExpr:
			x = y.X
		default:
			return ""
		}
	}
}

// declaredIn returns the names that a function declares: parameters, results, variables, those of functions in it included.
func declaredIn(fn *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(x ast.Node) {
		if id, ok := x.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				add(name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				add(name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, x := range n.Lhs {
					add(x)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		}
		return true
	})
	return names
}
