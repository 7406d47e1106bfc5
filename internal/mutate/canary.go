package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A module of two lines and mutants of which each must be judged in its own way: what the campaign says of the real ones is
// worth as much as what it says of these.
const (
	canaryCode = "package canary\n\n// Sum adds.\nfunc Sum(a, b int) int { return a + b }\n"
	canaryTest = `package canary

import (
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	if Sum(2, 3) != 5 {
		t.Fatal("the sum of 2 and 3 is wrong")
	}
}

func TestHangs(t *testing.T) {
	if Sum(2, 3) != 5 {
		panic("test timed out after " + time.Minute.String())
	}
}

func TestRed(t *testing.T) { t.Fatal("fails by itself") }
`
)

// canaries are the mutants of the canary module with the verdicts that are right.
func canaries() (mutants []*mutant, want []verdict) {
	add := func(id, old, new, test, says string, v verdict) {
		mutants = append(mutants, &mutant{guard: "canary", id: id, says: says, test: target{"./canary", "^" + test + "$"},
			edits: []edit{{file: "canary/canary.go", old: old, new: new}}})
		want = append(want, v)
	}
	add("canary-is-killed", "a + b", "a - b", "TestSum", "the sum of 2 and 3", killed)
	add("canary-changes-nothing", "a + b", "b + a", "TestSum", "the sum of 2 and 3", survived)
	add("canary-does-not-compile", "a + b", "a + c", "TestSum", "the sum of 2 and 3", noCompile)
	add("canary-was-red-before", "a + b", "a - b", "TestRed", "fails by itself", redBefore)
	add("canary-is-not-there", "a * b", "a - b", "TestSum", "the sum of 2 and 3", notApplied)
	add("canary-fails-otherwise", "a + b", "a - b", "TestSum", "the product", otherwise)
	add("canary-hangs", "a + b", "a - b", "TestHangs", "timed out", timedOut)
	add("canary-has-no-test", "a + b", "a - b", "TestNone", "the sum of 2 and 3", redBefore)
	return mutants, want
}

// runCanaries judges them in a module under dir and returns how each differs from what is right.
func runCanaries(ctx context.Context, dir string, out io.Writer) (wrong []string, err error) {
	for name, text := range map[string]string{"go.mod": "module canary\n\ngo 1.26\n", "canary/canary.go": canaryCode, "canary/canary_test.go": canaryTest} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return nil, fmt.Errorf("write canary: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write canary: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, "git", "init", "-q")
	cmd.Dir = dir
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("write canary: git init: %w", err)
	}
	mutants, want := canaries()
	c := &campaign{root: dir, workers: 2, out: io.Discard}
	results, err := c.run(ctx, mutants)
	if err != nil {
		return nil, fmt.Errorf("run canaries: %w", err)
	}
	for i, r := range results {
		fmt.Fprintf(out, "canary: %-26s %s\n", r.mutant.id, r.verdict)
		if r.verdict != want[i] {
			wrong = append(wrong, fmt.Sprintf("%s is %s, right is %s: %s", r.mutant.id, r.verdict, want[i], r.words))
		}
	}
	return wrong, nil
}
