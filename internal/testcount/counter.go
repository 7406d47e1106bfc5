package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// name is a test of a package; an empty test is the package itself.
type name struct{ pkg, test string }

// counter sums the events up.
type counter struct {
	out     io.Writer
	printed map[name][]string // what is to be shown when the test fails
	open    map[name]bool     // begun and not ended
	tests   map[string]int    // a package's tests
	absent  map[string]int    // what was absent, and for how many tests
	failed  []string
	figures []string // of tests that passed

	passes, failures, skips int
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, printed: map[name][]string{}, open: map[name]bool{}, tests: map[string]int{}, absent: map[string]int{}}
}

// maxLine bounds a line of the input, in bytes.
const maxLine = 64 << 20

func (c *counter) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(c.out, lines.Text()) // go itself complains in plain text
			continue
		}
		c.take(e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}

func (c *counter) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "start", "run":
		c.open[n] = true
	case "output":
		c.printed[n] = append(c.printed[n], e.Output)
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "build-fail":
		c.failures++
		c.failed = append(c.failed, "build of "+e.ImportPath)
	case "pass", "fail", "skip":
		delete(c.open, n)
		c.end(n, e)
		delete(c.printed, n)
	}
}

// end counts a test or tells about a package.
func (c *counter) end(n name, e event) {
	if n.test == "" {
		c.endPackage(n, e)
		return
	}
	c.tests[n.pkg]++
	switch e.Action {
	case "pass":
		c.passes++
		c.figure(n)
	case "fail":
		c.failures++
		c.failed = append(c.failed, n.pkg+" "+n.test)
		fmt.Fprintf(c.out, "--- FAIL: %s %s\n%s", n.pkg, n.test, strings.Join(c.printed[n], ""))
	case "skip":
		c.skips++
		c.absent[absence(c.printed[n])]++
	}
}

// figure keeps what a test printed after "figure: ", with its package and name.
func (c *counter) figure(n name) {
	for _, p := range c.printed[n] {
		if _, what, found := strings.Cut(p, "figure: "); found {
			what = n.test + ": " + strings.TrimPrefix(strings.TrimSpace(what), n.test+": ")
			c.figures = append(c.figures, strings.TrimPrefix(n.pkg, "amends/internal/")+" "+what)
		}
	}
}

// absence is the text after "absent: ", in which a test says what it could not have.
func absence(printed []string) string {
	for _, p := range printed {
		if _, what, found := strings.Cut(p, "absent: "); found {
			return strings.TrimSpace(what)
		}
	}
	return "(a test that does not say)"
}

func (c *counter) endPackage(n name, e event) {
	explained := slices.ContainsFunc(c.failed, func(f string) bool {
		return strings.HasPrefix(f, n.pkg+" ") || strings.HasPrefix(f+" ", "build of "+n.pkg+" ")
	})
	switch {
	case e.Action == "fail" && !explained:
		c.failures++ // it died between its tests
		c.failed = append(c.failed, n.pkg+" (the package)")
		fmt.Fprint(c.out, strings.Join(c.printed[n], ""))
		fallthrough
	case e.Action == "fail":
		fmt.Fprintf(c.out, "FAIL  %-40s %7.1f s\n", n.pkg, e.Elapsed)
	case e.Action == "pass":
		fmt.Fprintf(c.out, "ok    %-40s %7.1f s  %d tests\n", n.pkg, e.Elapsed, c.tests[n.pkg])
	}
}

// close prints the sums. The last line is the counts.
func (c *counter) close() error {
	for n := range c.open { // a binary that was killed ends no test
		c.failures++
		c.failed = append(c.failed, strings.TrimSpace(n.pkg+" "+n.test)+" (never ended)")
	}
	for _, f := range c.figures {
		fmt.Fprintln(c.out, "figure:", f)
	}
	slices.Sort(c.failed)
	for _, f := range c.failed {
		fmt.Fprintln(c.out, "failed:", f)
	}
	for _, what := range sortedKeys(c.absent) {
		fmt.Fprintf(c.out, "absent, %d tests skipped: %s\n", c.absent[what], what)
	}
	fmt.Fprintf(c.out, "tests: %d passed, %d failed, %d skipped\n", c.passes, c.failures, c.skips)
	switch {
	case c.failures > 0:
		return errors.New("tests failed")
	case c.passes == 0:
		return errors.New("no test passed")
	}
	return nil
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
