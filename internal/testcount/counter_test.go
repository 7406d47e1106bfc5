package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		fails          bool
	}{
		{"passes and absences", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: absent: a broker; to have it: start one\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.5}
{"Action":"start","Package":"q"}
{"Action":"skip","Package":"q"}
`, `ok    p                                            1.5 s  2 tests
absent, 1 tests skipped: a broker; to have it: start one
tests: 1 passed, 0 failed, 1 skipped
`, false},
		{"figures", `{"Action":"start","Package":"amends/internal/p"}
{"Action":"run","Package":"amends/internal/p","Test":"TestA"}
{"Action":"output","Package":"amends/internal/p","Test":"TestA","Output":"    a_test.go:1: figure: 3 kills\n"}
{"Action":"run","Package":"amends/internal/p","Test":"TestA/b"}
{"Action":"output","Package":"amends/internal/p","Test":"TestA/b","Output":"    a_test.go:2: figure: TestA/b: 4 kills\n"}
{"Action":"pass","Package":"amends/internal/p","Test":"TestA/b"}
{"Action":"pass","Package":"amends/internal/p","Test":"TestA"}
{"Action":"pass","Package":"amends/internal/p","Elapsed":1}
`, `ok    amends/internal/p                            1.0 s  2 tests
figure: p TestA/b: 4 kills
figure: p TestA: 3 kills
tests: 2 passed, 0 failed, 0 skipped
`, false},
		{"failure", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Elapsed":1}
`, `--- FAIL: p TestA
why
FAIL  p                                            1.0 s
failed: p TestA
tests: 0 passed, 1 failed, 0 skipped
`, true},
		{"build failure", `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:1: nonsense\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","Elapsed":0}
`, `p/a.go:1: nonsense
FAIL  p                                            0.0 s
failed: build of p [p.test]
tests: 0 passed, 1 failed, 0 skipped
`, true},
		{"killed", `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
`, `failed: p (never ended)
failed: p TestA (never ended)
tests: 0 passed, 2 failed, 0 skipped
`, true},
		{"nothing", "", "tests: 0 passed, 0 failed, 0 skipped\n", true},
		{"words of go itself", "go: no such tool\n", "go: no such tool\ntests: 0 passed, 0 failed, 0 skipped\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			kept := filepath.Join(t.TempDir(), "events.json")
			err := run(strings.NewReader(c.in), &out, kept)
			if (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(c.want, out.String()); d != "" {
				t.Error(d)
			}
			if raw, err := os.ReadFile(kept); err != nil || string(raw) != c.in {
				t.Errorf("kept %q %v", raw, err)
			}
		})
	}
}
