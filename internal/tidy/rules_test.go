package tidy

import (
	"go/token"
	"strings"
	"testing"
)

// planted is a tree of files written here, to see that each rule finds what it is for.
func planted(t *testing.T, files map[string]string) *tree {
	t.Helper()
	tr := &tree{fset: token.NewFileSet(), folders: map[string]*folder{}}
	for name, text := range files {
		tr.add(t, name, []byte(text))
	}
	return tr
}

const goodDoc = "// Package p is good.\n//\n// Owns: a.\n//\n// Does not own: b.\n//\n// Fails with: c.\npackage p\n"

// Every rule on files and packages finds the fault that is planted for it, and finds none in a good package.
func TestRulesFindPlantedFaults(t *testing.T) {
	body := func(n int) string { return "package p\n\nfunc f() {\n" + strings.Repeat("\tg()\n", n-2) + "}\n" }
	for _, c := range []struct{ file, text, want string }{
		{"p/a.go", "package p\n\n// F is said.\nfunc F() {}\n\n// T is said.\ntype T struct{}\n\n// Error returns nothing.\nfunc (T) Error() string { return \"\" }\n\nfunc (t *t) F() {}\n\n// The codes.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
		{"p/a.go", body(maxFunction), ""},
		{"p/a.go", body(maxFunction + 1), "f has 71 lines"},
		{"p/a_test.go", body(maxFunction + 1), ""},
		{"p/a.go", "package p\n" + strings.Repeat("\n// a\n", maxFile/2), "501 lines, at most 500"},
		{"p/a_test.go", "package p\n" + strings.Repeat("\n// a\n", maxFile/2), ""},
		{"p/a_test.go", "package p\n" + strings.Repeat("\n// a\n", maxTestFile/2), "801 lines, at most 800"},
		{"p/a.go", "package p\nfunc  f() {}\n", "not formatted"},
		{"p/a.go", "package p\n\n// TO" + "DO: later\n", "says TO" + "DO"},
		{"p/a.go", "package p\n\nfunc f() {\n\t// (FIX" + "ME)\n}\n", "says FIX" + "ME"},
		{"p/a.go", "package p\n\nfunc init() {}\n", "func init"},
		{"p/a_test.go", "package p\n\nfunc init() {}\n", "func init"},
		{"p/a.go", "package p\n\nfunc F() {}\n", "F is exported"},
		{"p/a.go", "package p\n\nfunc (t *T[K]) F() {}\n", "F is exported"},
		{"p/a.go", "package p\n\ntype T struct{}\n", "T is exported"},
		{"p/a.go", "package p\n\nconst A = 1\n", "A is exported"},
		{"p/a.go", "package p\n\nvar A, b = 1, 2\n", "A is exported"},
		{"p/a.go", "package p\n\ntype i interface {\n\ta()\n\tb()\n\tc()\n\td()\n\te()\n}\n", ""},
		{"p/a.go", "package p\n\ntype i interface {\n\ta()\n\tb()\n\tc()\n\td()\n\te()\n\tf()\n}\n", "an interface of 6 methods"},
		{"p/a_test.go", "package p\n\nfunc f(t *testing.T) {\n\tt.Skip(\"no\")\n}\n", "skips a test"},
		{"p/a_test.go", "package p\n\nfunc f(t *testing.T) {\n\tabsent.Skip(t, \"no\")\n}\n", ""},
		{"internal/absent/a.go", "package p\n\nfunc f(t *testing.T) {\n\tt.Skip(\"no\")\n}\n", ""},
		{"p/a.go", "package p\n\nvar n = 1\n\nfunc f() { n++ }\n", "assigns to the package-level variable n"},
		{"p/a.go", "package p\n\nvar n = map[int]int{}\n\nfunc f() { n[1] = 2 }\n", "assigns to the package-level variable n"},
		{"p/a.go", "package p\n\nvar n = map[int]int{}\n\nfunc f() { delete(n, 1) }\n", "assigns to the package-level variable n"},
		{"p/a.go", "package p\n\nvar n struct{ m int }\n\nfunc f() { (&n).m, n.m = 1, 2 }\n", "assigns to the package-level variable n"},
		{"p/a.go", "package p\n\nvar n = 1\n\nfunc f(n int) { n++ }\n", ""},
		{"p/a.go", "package p\n\nvar n = 1\n\nfunc f() {\n\tfor n := range 3 {\n\t\tn++\n\t}\n}\n", ""},
		{"p/a.go", "// Package p again.\npackage p\n", "second package comment|belongs in doc.go"},
	} {
		tr := planted(t, map[string]string{c.file: c.text})
		if f := tr.folders["p"]; f != nil {
			tr.add(t, "p/doc.go", []byte(goodDoc))
		}
		var problems []string
		for _, f := range tr.sorted() {
			if f.name == "p" {
				problems = append(problems, folderProblems(f)...)
			}
			problems = append(problems, stateProblems(tr, f)...)
			for _, s := range f.files {
				problems = append(problems, fileProblems(tr, s)...)
			}
		}
		expect(t, c.text, problems, c.want)
	}
}

func TestRulesOnPackages(t *testing.T) {
	long := "package p\n" + strings.Repeat("\n", maxPackage)
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"p/doc.go": goodDoc}, ""},
		{map[string]string{"p/doc.go": goodDoc, "p/a_test.go": long}, ""},
		{map[string]string{"p/doc.go": goodDoc, "p/a.go": long}, "lines of code, at most 2000"},
		{map[string]string{"p/a.go": "package p\n"}, "no package comment"},
		{map[string]string{"p/a.go": goodDoc}, "belongs in doc.go"},
		{map[string]string{"p/doc.go": strings.Replace(goodDoc, "Fails with", "Fails", 1)}, `does not say "Fails with:"`},
		{map[string]string{"p/doc.go": strings.Replace(goodDoc, "Does not own", "Owns not", 1)}, `does not say "Does not own:"`},
		{map[string]string{"util/doc.go": goodDoc}, "not util"},
		{map[string]string{"cmd/p/main.go": "// Command p.\npackage main\n"}, ""},
	} {
		var problems []string
		for _, f := range planted(t, c.files).sorted() {
			problems = append(problems, folderProblems(f)...)
		}
		expect(t, c.want, problems, c.want)
	}
}

func TestRulesOnPurity(t *testing.T) {
	for text, want := range map[string]string{
		"import \"time\"\n\nvar d time.Duration":                    "",
		"import \"time\"\n\nvar d = time.Now()":                     "uses time.Now",
		"import \"time\"\n\nvar d = time.Now":                       "uses time.Now",
		"import \"context\"":                                        "imports context",
		"import \"net/http\"":                                       "imports net/http",
		"import \"math/rand/v2\"":                                   "imports math/rand/v2",
		"import \"math/bits\"":                                      "",
		"import \"sync/atomic\"":                                    "imports sync/atomic",
		"func f() { go f() }":                                       "starts a goroutine",
		"func f(c chan int) {}":                                     "uses a channel",
		"func f() { select {} }":                                    "selects",
		"import \"fmt\"\n\nfunc f() { fmt.Println() }":              "uses fmt.Println",
		"func f() { println() }":                                    "calls println",
		"import \"fmt\"\n\nfunc f() string { return fmt.Sprint() }": "",
	} {
		tr := planted(t, map[string]string{"p/a.go": "package p\n\n" + text + "\n"})
		expect(t, text, impurities(tr, tr.folders["p"].files[0]), want)
	}
}

func TestRulesOnImports(t *testing.T) {
	rows := map[string]rule{"a": {}, "b": {internal: "a", external: "example.org/x"}}
	files := func(b string) map[string]string {
		return map[string]string{"internal/a/a.go": "package a\n", "internal/b/b.go": "package b\n\nimport (\n" + b + ")\n"}
	}
	for text, want := range map[string]string{
		"\t\"amends/internal/a\"\n":     "",
		"\t\"example.org/x/y\"\n":       "",
		"\t\"example.org/xy\"\n":        "imports example.org/xy",
		"\t\"amends/internal/c\"\n":     "imports amends/internal/c",
		"\t\"os\"\n\t\"testing\"\n":     "",
		"\t_ \"amends/internal/a/d\"\n": "imports amends/internal/a/d",
	} {
		expect(t, text, importProblems(planted(t, files(text)), rows), want)
	}
	back := planted(t, map[string]string{"internal/a/a.go": "package a\n\nimport \"amends/internal/b\"\n", "internal/b/b.go": "package b\n\nimport \"amends/internal/a\"\n", "c/c.go": "package c\n"})
	expect(t, "unlisted and upward", importProblems(back, rows), "c: is not in the import table|internal/a/a.go: imports amends/internal/b")
	expect(t, "stale", importProblems(planted(t, map[string]string{"internal/a/a.go": "package a\n"}), rows), "internal/b: has a row")
	if way := back.closure("internal/a")["internal/b"]; way != "internal/a → internal/b" {
		t.Errorf("the way from a to b is %q", way)
	}
}

// expect checks that the problems are exactly those wanted, each by a part of its text, | between them.
func expect(t *testing.T, what string, problems []string, want string) {
	t.Helper()
	var parts []string
	if want != "" {
		parts = strings.Split(want, "|")
	}
	if len(problems) != len(parts) {
		t.Errorf("%s: problems %q, want %q", what, problems, parts)
		return
	}
	all := strings.Join(problems, "\n")
	for _, p := range parts {
		if !strings.Contains(all, p) {
			t.Errorf("%s: problems %q, want %q", what, problems, p)
		}
	}
}
