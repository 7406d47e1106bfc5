package inspect_test

import (
	"bytes"
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
