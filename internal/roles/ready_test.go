package roles

import (
	"slices"
	"strings"
	"testing"
)

// A process is ready when every worker in it is, whichever of them spoke last; one that has not spoken yet is not.
func TestBoardWaitsForEveryWorker(t *testing.T) {
	t.Parallel()
	var told []string
	b := &board{report: func(ready bool, reason string) {
		if ready {
			reason = "ready"
		}
		told = append(told, reason)
	}}
	first, second := b.worker(), b.worker()
	want := func(reasons ...string) {
		t.Helper()
		if got := b.waits(); !slices.Equal(got, reasons) {
			t.Errorf("waits for %q, want %q", got, reasons)
		}
	}
	want("source: starting")
	first(true, "")
	want("source: starting")
	second(false, "database: away")
	first(false, "group: joining")
	want("source: group: joining", "source: database: away")
	second(true, "")
	want("source: group: joining")
	first(true, "")
	want()
	if got := strings.Join(told, ", "); got != "ready, database: away, group: joining, ready, ready" {
		t.Errorf("told %s", got)
	}
	(&board{}).worker()(true, "") // with nobody to tell
}

// Every role has its name, and nothing else has one.
func TestParseKnowsEveryRole(t *testing.T) {
	t.Parallel()
	got, err := Parse([]string{"source", " relay", "view", "audit", "web", "web"})
	if err != nil || !slices.Equal(got, []Role{Source, Relay, View, Audit, Web}) {
		t.Errorf("%v, %v", got, err)
	}
	if slices.Contains(All(), Web) {
		t.Error("web moves no data")
	}
	for _, name := range []string{"", "worker", "Web"} {
		if _, err := Parse([]string{name}); err == nil || !strings.Contains(err.Error(), "source, relay, view, audit and web") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
