package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What schedules drive are the step machines of production, and nothing in their way: their constructors are called, no
// type of the simulation has a Step or Run of its own, and no schedule starts a goroutine or reads the machine's clock.
func TestProductionStepMachinesAreDriven(t *testing.T) {
	imported, called := map[string]bool{}, map[string]bool{}
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			imported[path] = true
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a goroutine", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					called[x.Name+"."+n.Sel.Name] = true
				}
			}
			return true
		})
	}
	for _, want := range []string{"amends/internal/worker", "amends/internal/delivery", "amends/internal/verify", "amends/internal/store/memory"} {
		if !imported[want] {
			t.Errorf("%s is not imported", want)
		}
	}
	for _, want := range []string{"worker.NewLifecycle", "delivery.NewRelayStepper", "delivery.NewViewStepper", "verify.Job", "memory.NewWithClock"} {
		if !called[want] {
			t.Errorf("%s is not used", want)
		}
	}
	for _, no := range []string{"time.Now", "time.Sleep", "time.After", "time.NewTimer", "engine.Step"} {
		if called[no] {
			t.Errorf("%s is used", no)
		}
	}
	for _, no := range []string{"math/rand", "math/rand/v2", "sync"} {
		if imported[no] {
			t.Errorf("%s is imported", no)
		}
	}
}
