package doctest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits that the architecture lists are the constants of every limits.go, with what is said of them there.
func TestLimitsAreTheConstants(t *testing.T) {
	t.Parallel()
	var files []string
	for _, depth := range []string{"*", "*/*", "*/*/*"} {
		found, err := filepath.Glob(filepath.Join(root, "internal", depth, "limits.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	var b strings.Builder
	b.WriteString("| package | limit | is | for |\n|---|---|---|---|\n")
	for _, file := range files {
		rel, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		limits(t, &b, path.Clean(filepath.ToSlash(rel)), file)
	}
	if strings.Count(b.String(), "\n") < 30 {
		t.Errorf("limits found: %s", &b)
	}
	generated(t, "docs/internals/architecture.md", "limits", b.String())
}

func limits(t *testing.T, b *strings.Builder, name, file string) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			spec := spec.(*ast.ValueSpec)
			if len(spec.Values) != 1 || spec.Names[0].Name == "_" {
				continue
			}
			var value bytes.Buffer
			if err := printer.Fprint(&value, fset, spec.Values[0]); err != nil {
				t.Fatal(err)
			}
			about := spec.Comment.Text()
			if len(d.Specs) == 1 || about == "" && spec.Doc != nil {
				about = d.Doc.Text() + spec.Doc.Text()
			}
			fmt.Fprintf(b, "| `%s` | `%s` | `%s` | %s |\n", name, spec.Names[0].Name, &value, cell(strings.Join(strings.Fields(about), " ")))
		}
	}
}
