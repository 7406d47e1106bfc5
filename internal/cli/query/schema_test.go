package query_test

import (
	"testing"

	"amends/internal/programtest"
)

// Every JSON answer is as its schema in docs/reference/schemas says, and no member of it is missing there.
func TestAnswersAreTheDocumentedSchemas(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	nut, bolt := [2]string{"nut", "paris"}, [2]string{"bolt", "paris"}
	s.load(movement(nut, "A", 1, "2026-01-02", "receipt", 5000), cancelled(nut, "A", 2), movement(nut, "A", 3, "2026-01-03", "receipt", 1),
		movement(nut, "C", 1, "2026-01-04", "opening_count", 7), movement(nut, "D", 1, "2026-01-04", "issue", 9), movement(nut, "C", 2, "2026-01-05", "closing_count", 0),
		movement(bolt, "A", 1, "2026-01-02", "receipt", 5000), movement(bolt, "B", 1, "2026-01-03", "issue", 4000), movement(bolt, "A", 1, "2026-01-02", "receipt", 1))
	checked := 0
	for line, name := range map[string]string{
		"explain nut paris": "explain", "explain nut paris 2026-01-04": "explain", "explain bolt paris 2026-01-03": "explain", "explain bolt paris": "explain",
		"explain nut paris 2026-01-03 -lines 0": "explain", "explain nut paris -known-at 0": "explain",
		"balance nut paris": "balance", "balance bolt paris -from 2026-01-01": "balance", "balance nut paris 2026-01-01": "balance", "balance nut paris -to 2026-01-01": "balance",
		"history nut paris": "history", "history bolt paris": "history", "history nut paris -known-at 0/0": "history",
		"diff -at 0/0 -at 0/9": "diff", "diff -at 1/1 -at 1/9": "diff", "diff -at 2020-01-01T00:00Z -at 2020-01-02T00:00Z": "diff",
		"tail -e": "tail",
	} {
		n := programtest.Conforms(t, name, s.run(line+" -o json"))
		if n != 1 && name != "tail" {
			t.Errorf("%s: %d JSON values, want 1", line, n)
		}
		checked += n
	}
	if checked < 25 {
		t.Errorf("%d answers were checked", checked)
	}
}
