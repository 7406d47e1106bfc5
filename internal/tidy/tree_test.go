package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the module's path, which every internal import begins with.
const module = "amends"

// source is one parsed Go file. Files of every platform are read, whatever their build constraints.
type source struct {
	path string // relative to the module root
	text []byte
	ast  *ast.File
	test bool // its name ends in _test.go
}

// folder is one package with its tests.
type folder struct {
	name  string // relative to the module root, such as internal/wire
	files []*source
}

// tree is the module as it stands on disk.
type tree struct {
	fset    *token.FileSet
	folders map[string]*folder
}

// readTree parses every Go file of the module.
func readTree(t *testing.T) *tree {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	tr := &tree{fset: token.NewFileSet(), folders: map[string]*folder{}}
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && p != root && (strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") || e.Name() == "testdata"):
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(p) != ".go":
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		tr.add(t, filepath.ToSlash(rel), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.folders) < 10 {
		t.Fatalf("%d packages under %s: this is not the tree", len(tr.folders), root)
	}
	return tr
}

func (tr *tree) add(t *testing.T, rel string, text []byte) {
	t.Helper()
	file, err := parser.ParseFile(tr.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	name := path.Dir(rel)
	if tr.folders[name] == nil {
		tr.folders[name] = &folder{name: name}
	}
	tr.folders[name].files = append(tr.folders[name].files, &source{path: rel, text: text, ast: file, test: strings.HasSuffix(rel, "_test.go")})
}

// sorted returns the folders by name.
func (tr *tree) sorted() []*folder {
	var all []*folder
	for _, name := range slices.Sorted(maps.Keys(tr.folders)) {
		all = append(all, tr.folders[name])
	}
	return all
}

// code returns the files that are no tests.
func (f *folder) code() []*source {
	return slices.DeleteFunc(slices.Clone(f.files), func(s *source) bool { return s.test })
}

// imports returns the paths that a file imports.
func (s *source) imports() []string {
	var paths []string
	for _, spec := range s.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// internal returns the folder of a path of this module, "" for others.
func internal(importPath string) string {
	if rest, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return rest
	}
	return ""
}

// external reports whether a path is neither of this module nor of the standard library.
func external(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

// closure returns the folders that the code of one reaches, itself left out, with a way there.
func (tr *tree) closure(from string) map[string]string {
	ways := map[string]string{}
	var visit func(name, way string)
	visit = func(name, way string) {
		f := tr.folders[name]
		if f == nil {
			return
		}
		for _, s := range f.code() {
			for _, p := range s.imports() {
				if to := internal(p); to != "" && ways[to] == "" && to != from {
					ways[to] = way + " → " + to
					visit(to, ways[to])
				}
			}
		}
	}
	visit(from, from)
	return ways
}

// report fails the test with every problem, in order.
func report(t *testing.T, problems []string) {
	t.Helper()
	slices.Sort(problems)
	for _, p := range slices.Compact(problems) {
		t.Error(p)
	}
}
