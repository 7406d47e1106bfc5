package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/absent"
)

const module = "../.."

func list(t *testing.T) []guard {
	t.Helper()
	guards, err := parseList(listText)
	if err != nil {
		t.Fatal(err)
	}
	return guards
}

// Mutants of which each must be judged in its own way: one that changes nothing survives, one that does not compile, whose
// test was red before, that is not in the tree, whose test fails with other words, hangs or is not there is a failure too.
func TestCanariesAreJudgedRight(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	wrong, err := runCanaries(ctx, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// One that is not killed makes the campaign fail, and so does an empty one.
func TestScoreBelowAllFails(t *testing.T) {
	kill, miss := result{mutant: &mutant{}, verdict: killed}, result{mutant: &mutant{}, verdict: survived}
	for _, c := range []struct {
		results []result
		want    bool
	}{{[]result{kill, kill}, true}, {[]result{kill, miss}, false}, {nil, false}} {
		if got := matrix(t.Output(), c.results, 0); got != c.want {
			t.Errorf("%d rows: %v", len(c.results), got)
		}
	}
}

// Every name of the contract's list has mutants, in its order.
func TestEveryNamedGuardIsListed(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(module, "../shared/reliability.md"))
	if err != nil {
		absent.Skip(t, absent.KindData, "the list of named guards", "put reliability.md into ../shared")
	}
	_, section, _ := strings.Cut(string(raw), "## 3. Named guards")
	_, section, found := strings.Cut(section, "\n")
	names, _, ended := strings.Cut(section, ".\n\n")
	if !found || !ended {
		t.Fatal("section 3 of reliability.md is not as this test reads it")
	}
	var want, got []string
	for name := range strings.SplitSeq(strings.ReplaceAll(names, "\n", " "), ";") {
		want = append(want, strings.TrimSpace(name))
	}
	for _, g := range list(t) {
		got = append(got, g.name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The text that each mutant takes out stands in the tree, the test that must fail is there, and a short run has a few of each kind.
func TestMutantsFitTheTree(t *testing.T) {
	tests := map[string]string{}
	short := 0
	for _, g := range list(t) {
		for _, m := range g.mutants {
			if m.smoke {
				short++
			}
			texts := map[string][]byte{}
			for _, e := range m.edits {
				if texts[e.file] == nil {
					text, err := os.ReadFile(filepath.Join(module, e.file))
					if err != nil {
						t.Errorf("%s: %v", m.id, err)
						continue
					}
					texts[e.file] = text
				}
				var err error
				if texts[e.file], err = e.apply(texts[e.file]); err != nil {
					t.Errorf("%s: %v", m.id, err)
				}
			}
			if tests[m.test.pkg] == "" {
				tests[m.test.pkg] = functions(t, m.test.pkg)
			}
			name, _, _ := strings.Cut(m.test.run, "/")
			if !strings.Contains(tests[m.test.pkg], "func "+strings.Trim(name, "^$")+"(") {
				t.Errorf("%s: %s has no such test", m.id, m.test)
			}
			for part := range strings.SplitSeq(m.test.run, "/") {
				if _, err := regexp.Compile(part); err != nil {
					t.Errorf("%s: %v", m.id, err)
				}
			}
		}
	}
	if short < 8 {
		t.Errorf("%d mutants in the short run", short)
	}
}

// functions returns the test files of a package.
func functions(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(module, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	return all.String()
}

func TestDocumentIsOfTheList(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(module, "docs/internals/guards.md"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(document(list(t)), string(raw)); d != "" {
		t.Errorf("write it again: go run ./internal/mutate -docs > docs/internals/guards.md\n%s", d)
	}
}

func TestListRefusesWhatIsIncomplete(t *testing.T) {
	const whole = "guard g\nmutant m: w\nfile f\n-a\n+b\ntest ./p ^TestA$\nsays s\n"
	if guards, err := parseList([]byte(whole)); err != nil || len(guards) != 1 || len(guards[0].mutants) != 1 {
		t.Fatalf("%v %v", guards, err)
	}
	for what, text := range map[string]string{
		"nothing":              "# words\n",
		"a guard of none":      "guard g\n",
		"no guard":             strings.Replace(whole, "guard g\n", "", 1),
		"no words":             strings.Replace(whole, "m: w", "m", 1),
		"an id twice":          whole + strings.Replace(whole, "guard g\n", "", 1),
		"no edit":              strings.Replace(whole, "file f\n-a\n+b\n", "", 1),
		"an edit of nothing":   strings.Replace(whole, "-a\n", "", 1),
		"an edit that is none": strings.Replace(whole, "+b", "+a", 1),
		"no test":              strings.Replace(whole, "test ./p ^TestA$\n", "", 1),
		"no pattern":           strings.Replace(whole, " ^TestA$", "", 1),
		"no words of the test": strings.Replace(whole, "says s\n", "", 1),
		"another word":         whole + "kills it\n",
	} {
		if _, err := parseList([]byte(text)); err == nil {
			t.Errorf("%s: read", what)
		}
	}
}
