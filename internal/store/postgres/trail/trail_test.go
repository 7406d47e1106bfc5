package trail

import (
	"testing"

	"amends/internal/ledger"
	"amends/internal/store"
)

func TestMarksShortenOnlyWhatTheyCover(t *testing.T) {
	var x Trail
	server := store.Server{System: 1, Timeline: 1}
	check := func(what string, sequence ledger.Sequence, from, want ledger.Offset) {
		t.Helper()
		if got := x.From(server, 0, sequence, from); got != want {
			t.Errorf("%s: sequence %d from %d begins at %d, want %d", what, sequence, from, got, want)
		}
	}
	check("no marks", 5, 3, 3)
	x.Mark(server, 0, 10, 100)
	x.Mark(server, 0, 20, 5_000)
	check("below every mark", 9, 3, 3)
	check("at a mark", 10, 3, 100)
	check("between marks", 19, 3, 100)
	check("past the last", 25, 3, 5_000)
	check("a position past the mark", 25, 6_000, 6_000)
	x.Mark(server, 0, 20, 4_000)
	check("a mark does not fall", 20, 0, 5_000)
	x.Mark(server, 0, 20, 9_000)
	check("a mark rises", 20, 0, 9_000)
	if got := x.From(server, 1, 20, 7); got != 7 {
		t.Errorf("another partition begins at %d", got)
	}
	if got := x.From(store.Server{System: 1, Timeline: 2}, 0, 20, 7); got != 7 {
		t.Errorf("another server begins at %d", got)
	}
	x.Mark(server, 0, 12, 200)
	check("a search that began again", 30, 0, 200)
}

func TestMarksAreBounded(t *testing.T) {
	var x Trail
	server := store.Server{System: 1, Timeline: 1}
	for i := range 3 * most {
		x.Mark(server, 0, ledger.Sequence(i), ledger.Offset(10*i))
	}
	if n := len(x.marks[0]); n != most {
		t.Errorf("%d marks", n)
	}
	if got := x.From(server, 0, 3*most, 0); got != 10*(3*most-1) {
		t.Errorf("begins at %d", got)
	}
	if got := x.From(server, 0, 0, 0); got != 0 {
		t.Errorf("a dropped mark still counts: %d", got)
	}
	x.Mark(store.Server{System: 1, Timeline: 2}, 0, 1, 5)
	if got := x.From(server, 0, 3*most, 0); got != 0 {
		t.Errorf("marks of another server count: %d", got)
	}
}
