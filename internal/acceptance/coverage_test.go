package acceptance

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What has to be shown: scenarios of docs/reference/scenarios.md, and cases that others met. The real ones need a test with
// real services and processes.
const (
	scenarioIDs = "SC01 SC02 SC03 SC04 SC05 SC06 SC07 SC08 SC09 SC10 SC11 SC12 SC13 SC14 SC15 SC16 SC17 SC18 SC19 SC20 SC21 SC22 SC23 SC24 SC25 SC26 SC27 SC28 SC29 SC30 SC31 SC32 SC33 SC34 SC35 SC36 SC37 SC38 SC39 SC40 SC41 SC42 SC43"
	caseIDs     = "C1 C2 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 C16 C17 C18 C19 C20 C21 C22 C23 C24 C25 C26 C27 C28 C29 C30 C31 C32 C33 C34 C35 C36 C38 C39 C40"
	realIDs     = "SC17 SC20 SC21 SC28 SC29 SC34 SC36 SC37 SC41 SC42 C20 C34"
)

const (
	coverageFile = "../../docs/reference/coverage.md"
	coverageHead = `# What the tests cover

Which test shows which [scenario](scenarios.md) (SC) and which case that other projects met (C). A line names a package below ` + "`internal/`" + `, a test and where
there is one a subtest, as ` + "`go test -run`" + ` takes them. Expected values are derived by hand from [semantics.md](semantics.md). Package ` + "`acceptance`" + ` runs the built
programs with Apache Kafka and PostgreSQL. A test checks that each line exists and that nothing required is missing; with ` + "`AMENDS_UPDATE_DOCS=1`" + ` it writes this page anew.

| id | shown by |
|---|---|
`
)

// idPattern finds an id in the name of a test or of a script: SC01, C4, sc07-, c25-c04-.
var idPattern = regexp.MustCompile(`(?:SC|C|\bsc|\bc)[0-9]{1,2}`)

// idsOf returns the ids that a name carries, written as the contract does. A script's sc01-sc04 is a range.
func idsOf(name string) (ids []string) {
	last := 0
	for _, found := range idPattern.FindAllString(name, -1) {
		letters := strings.TrimRight(found, "0123456789")
		n, err := strconv.Atoi(found[len(letters):])
		switch {
		case err != nil:
		case letters == "SC" || letters == "sc":
			first := n
			if letters == "sc" && 0 < last && last < n {
				first = last + 1
			}
			for i := first; i <= n; i++ {
				ids = append(ids, fmt.Sprintf("SC%02d", i))
			}
			last = n
		default:
			ids = append(ids, fmt.Sprintf("C%d", n))
		}
	}
	return ids
}

// spacesToUnderscores writes the name of a subtest as go test does.
func spacesToUnderscores(s string) string { return strings.ReplaceAll(s, " ", "_") }

// shown reads every test of the tree and returns, by id, the tests and subtests whose names carry it.
func shown(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	add := func(name string) {
		test, sub, _ := strings.Cut(name[strings.LastIndex(name, "/Test")+1:], "/")
		of := idsOf(test)
		for _, id := range append(idsOf(sub), of...) {
			if sub != "" && slices.Contains(of, id) {
				continue // the whole test carries it
			}
			if found[id] == nil {
				found[id] = map[string]bool{}
			}
			found[id][name] = true
		}
	}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
		if !strings.HasSuffix(path, "_test.go") && folder != "store/storetest" {
			return nil
		}
		return namesIn(path, folder, add)
	})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("../engine/testdata/scripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		name := strings.TrimSuffix(filepath.Base(s), ".txt")
		add("engine/TestScripts/" + name)
		add("acceptance/TestScriptsOnTheWholePath/" + name)
	}
	out := map[string][]string{}
	for id, names := range found {
		out[id] = slices.SortedFunc(maps.Keys(names), byPackage)
	}
	return out
}

// byPackage puts the tests of this package last.
func byPackage(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "acceptance/"), strings.Count(b, "acceptance/")), strings.Compare(a, b))
}

// namesIn adds the tests of a file, and the subtests of those that run any: literals that begin with an id. The cases of the
// stores' suite are subtests of both stores.
func namesIn(path, folder string, add func(string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		fn, isFunc := d.(*ast.FuncDecl)
		test := isFunc && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
		if test {
			add(folder + "/" + fn.Name.Name)
		}
		literals, runs := literalsOf(d)
		for _, l := range literals {
			switch begins := idPattern.FindStringIndex(l[strings.LastIndexByte(l, '/')+1:]); {
			case begins == nil || begins[0] != 0 || strings.ContainsAny(l, "%") || strings.HasSuffix(l, " "):
			case folder == "store/storetest" && strings.Contains(l, "/"):
				add("store/memory/TestSuite/" + spacesToUnderscores(l))
				add("store/postgres/TestSuite/" + spacesToUnderscores(l))
			case test && runs && !strings.Contains(l, "/"):
				add(folder + "/" + fn.Name.Name + "/" + spacesToUnderscores(l))
			}
		}
	}
	return nil
}

// literalsOf returns the strings of a declaration, and whether it runs subtests.
func literalsOf(d ast.Decl) (literals []string, runs bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				literals = append(literals, s)
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			runs = runs || ok && x.Name == "t" && n.Sel.Name == "Run"
		}
		return true
	})
	return literals, runs
}

// Every id that must be shown is, the real ones by this package too; every line of the page names tests that exist and carry
// the id.
func TestCoverageOfScenariosAndCases(t *testing.T) {
	t.Parallel()
	found := shown(t)
	required := strings.Fields(scenarioIDs + " " + caseIDs)
	for _, id := range required {
		if len(found[id]) == 0 {
			t.Errorf("no test carries %s", id)
		}
	}
	for _, id := range strings.Fields(realIDs) {
		if !slices.ContainsFunc(found[id], func(name string) bool { return strings.HasPrefix(name, "acceptance/") }) {
			t.Errorf("no test with real processes carries %s", id)
		}
	}
	if os.Getenv("AMENDS_UPDATE_DOCS") == "1" {
		writeCoverage(t, found)
	}
	listed := map[string]bool{}
	for _, row := range strings.Split(readFile(t, coverageFile), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || !idPattern.MatchString(cells[1]) {
			continue
		}
		id := strings.TrimSpace(cells[1])
		listed[id] = true
		for _, name := range strings.Split(cells[2], "<br>") {
			if name = strings.Trim(name, " `"); !slices.Contains(found[id], name) {
				t.Errorf("coverage.md: %s: there is no test %s that carries the id", id, name)
			}
		}
	}
	for _, id := range required {
		if !listed[id] {
			t.Errorf("coverage.md does not list %s", id)
		}
	}
}

func writeCoverage(t *testing.T, found map[string][]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(coverageHead)
	order := func(id string) string { return strings.TrimRight(id, "0123456789") }
	number := func(id string) int { n, _ := strconv.Atoi(strings.TrimLeft(id, "SC")); return n }
	ids := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(-cmp.Compare(order(a), order(b)), cmp.Compare(number(a), number(b)))
	})
	for _, id := range ids {
		if n := number(id); n < 1 || order(id) == "SC" && n > 43 || order(id) == "C" && n > 40 {
			t.Errorf("tests carry %s, which nobody has defined: %v", id, found[id])
			continue
		}
		fmt.Fprintf(&b, "| %s | `%s` |\n", id, strings.Join(found[id], "`<br>`"))
	}
	if err := os.WriteFile(coverageFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
