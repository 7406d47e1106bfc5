package inspect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/diagnose"
	"amends/internal/inspect"
	"amends/internal/ledger"
)

// SC15: a value that is there and empty is told from one that is absent, and has no bytes to show.
func TestSC15EmptyAndAbsentBytes(t *testing.T) {
	t.Parallel()
	r := &diagnose.Report{Rejected: diagnose.Rejected{Total: 1, Codes: []diagnose.Code{{Code: "MALFORMED", Records: 1}},
		Records: []diagnose.Record{{Code: ledger.Malformed, Offset: 7, Evidence: ledger.Evidence{Value: []byte{}}}}}}
	var out bytes.Buffer
	if err := inspect.DiagnosticsText(&out, r, diagnose.Rejections, "amends diagnostics"); err != nil {
		t.Fatal(err)
	}
	want := "1 record rejected (MALFORMED 1); 0 blocked keys; 0 records in conflict\n\nrejected 0/7  MALFORMED\n  key    absent\n  value  \"\"\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

// Quantities are written at the scale of the namespace, as all other answers write them; the record that resolves holds units.
func TestCandidatesAtTheScaleOfTheNamespace(t *testing.T) {
	t.Parallel()
	units := int64(1250)
	candidate := diagnose.Candidate{TxnID: "T-1", Revision: 1, Class: "APPLIED", State: "active", Kind: "receipt", Day: "2026-01-01", Quantity: &units, Records: 1,
		Resolve: `{"quantity":1250}`}
	r := &diagnose.Report{Scale: 2, BlockedKeys: 1, ConflictRecords: 1,
		Current:    []diagnose.Problem{{Item: "a", Location: "b", Code: "AMBIGUOUS", TxnID: "T-1", Revision: 1, Candidates: []diagnose.Candidate{candidate}}},
		Superseded: []diagnose.Conflict{{Item: "a", Location: "b", TxnID: "T-1", Revision: 1, Highest: 2, Candidates: []diagnose.Candidate{candidate}}}}
	var out bytes.Buffer
	if err := inspect.DiagnosticsText(&out, r, diagnose.All, "amends diagnostics"); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "receipt 12.50 on 2026-01-01") != 2 || strings.Count(text, `{"quantity":1250}`) != 2 {
		t.Error(text)
	}
}
