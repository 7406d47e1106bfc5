package main

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// verdict is what became of a mutant.
type verdict string

// Only a killed mutant is right. The others are failures of the campaign.
const (
	killed     verdict = "killed"
	survived   verdict = "SURVIVED"
	otherwise  verdict = "FAILED OTHERWISE" // a test failed, not with the named words
	timedOut   verdict = "TIMEOUT"
	noCompile  verdict = "NO COMPILE"
	notApplied verdict = "NOT APPLIED"
	notRun     verdict = "NOT RUN"      // no test has the name, or it was skipped
	redBefore  verdict = "RED BASELINE" // the test fails without any mutant
)

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

// outcome is what one run of go test told.
type outcome struct {
	passed   []string // tests
	skipped  []string
	failed   []string
	said     map[string][]string
	rest     []string // what no test said: builds, panics
	noBuild  bool
	timedOut bool
}

// readOutcome reads the events of go test -json, and whatever else it prints.
func readOutcome(in io.Reader) (*outcome, error) {
	o := &outcome{said: map[string][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			o.rest = append(o.rest, lines.Text()+"\n")
			continue
		}
		o.take(e)
	}
	return o, lines.Err()
}

func (o *outcome) take(e event) {
	if strings.Contains(e.Output, "panic: test timed out") {
		o.timedOut = true
	}
	switch e.Action {
	case "build-fail":
		o.noBuild = true
	case "build-output":
		o.rest = append(o.rest, e.Output)
	case "output":
		if e.Test == "" {
			o.rest = append(o.rest, e.Output)
		} else {
			o.said[e.Test] = append(o.said[e.Test], e.Output)
		}
	case "pass":
		if e.Test != "" {
			o.passed = append(o.passed, e.Test)
		}
	case "skip":
		if e.Test != "" {
			o.skipped = append(o.skipped, e.Test)
		}
	case "fail":
		if e.Test != "" {
			o.failed = append(o.failed, e.Test)
		}
	}
}

// judge says what became of a mutant whose test must fail with the words says, and which test killed it.
func (o *outcome) judge(says string) (verdict, string) {
	switch {
	case o.noBuild:
		return noCompile, ""
	case o.timedOut:
		return timedOut, ""
	case len(o.failed) == 0 && (len(o.passed) == 0 || len(o.skipped) > 0):
		return notRun, ""
	case len(o.failed) == 0:
		return survived, ""
	}
	for _, test := range o.failed {
		if strings.Contains(strings.Join(o.said[test], ""), says) {
			return killed, test
		}
	}
	return otherwise, o.failed[0]
}

// green says why the tests of a pattern do not show that they pass without a mutant; "" where they do.
func (o *outcome) green(run string) string {
	switch {
	case o.noBuild:
		return "it does not build"
	case o.timedOut:
		return "it hangs"
	}
	for what, tests := range map[string][]string{"fails": o.failed, "is skipped": o.skipped} {
		for _, test := range tests {
			if matches(run, test) {
				return test + " " + what
			}
		}
	}
	for _, test := range o.passed {
		if matches(run, test) {
			return ""
		}
	}
	return "no test has the name"
}

// matches reports whether go test -run takes a test, or a subtest, for one that a pattern names.
func matches(run, test string) bool {
	patterns, names := strings.Split(run, "/"), strings.Split(test, "/")
	if len(names) < len(patterns) {
		return false
	}
	for i, pattern := range patterns {
		if ok, err := regexp.MatchString(pattern, names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// words returns what failed tests and builds printed, for people.
func (o *outcome) words() string {
	var b strings.Builder
	for _, test := range o.failed {
		b.WriteString(strings.Join(o.said[test], ""))
	}
	b.WriteString(strings.Join(o.rest, ""))
	return b.String()
}
