package doctest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The component table and the file map of the architecture are the packages' own comments and files.
func TestArchitectureIsTheTree(t *testing.T) {
	t.Parallel()
	all := components(t)
	if len(all) < 30 {
		t.Fatalf("%d packages: these are not all", len(all))
	}
	var table, files strings.Builder
	table.WriteString("| package | owns | does not own | fails with |\n|---|---|---|---|\n")
	files.WriteString("| package | is for | files |\n|---|---|---|\n")
	for _, c := range all {
		if c.owns != "" {
			table.WriteString("| `" + c.path + "` | " + cell(c.owns) + " | " + cell(c.not) + " | " + cell(c.fails) + " |\n")
		}
		files.WriteString("| `" + c.path + "` | " + cell(c.is) + " | " + strings.Join(c.files, ", ") + " |\n")
	}
	generated(t, "docs/internals/architecture.md", "components", table.String())
	generated(t, "docs/internals/architecture.md", "files", files.String())
}

// component is one package.
type component struct {
	path, is, owns, not, fails string
	files                      []string // without tests and doc.go
}

func components(t *testing.T) []component {
	t.Helper()
	var all []component
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case p != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "artifacts" || e.Name() == "bin"):
			return fs.SkipDir
		}
		if c, ok := readComponent(t, p); ok {
			all = append(all, c)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.path, b.path) })
	return all
}

func readComponent(t *testing.T, dir string) (component, bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	c := component{path: filepath.ToSlash(rel)}
	for _, f := range files {
		name := filepath.Base(f)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if name != "doc.go" {
			c.files = append(c.files, name)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Doc != nil {
			c.read(parsed.Doc.Text())
		}
	}
	return c, c.is != ""
}

// read takes a package comment apart: its first sentence and the three paragraphs that every package has.
func (c *component) read(doc string) {
	for i, paragraph := range strings.Split(doc, "\n\n") {
		text := strings.Join(strings.Fields(paragraph), " ")
		for label, to := range map[string]*string{"Owns: ": &c.owns, "Does not own: ": &c.not, "Fails with: ": &c.fails} {
			if rest, ok := strings.CutPrefix(text, label); ok {
				*to = rest
			}
		}
		if i == 0 {
			sentence, _, _ := strings.Cut(text, ". ")
			_, sentence, _ = strings.Cut(sentence, " ") // Package, Command
			_, c.is, _ = strings.Cut(sentence, " ")     // its name
			c.is = strings.TrimSuffix(c.is, ".")
		}
	}
}

// cell writes text into a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*").Replace(strings.TrimSuffix(text, "."))
}
