package report_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/verify"
)

func passed() *verify.Report {
	return &verify.Report{Namespace: "demo", Status: verify.Pass, Mode: "quiesced", Deep: true, SourceRecords: 5, Outputs: 6, Messages: 11, Elapsed: 1500 * time.Millisecond,
		Boundary: []verify.Boundary{{SourceEnd: 5, OutputEnd: 11}, {Partition: 1}}}
}

func drifted() *verify.Report {
	day, _ := ledger.DateOf(2026, 1, 2)
	return &verify.Report{Namespace: "demo", Status: verify.Drift, Mode: "live", SourceRecords: 5, Rejected: 1, Outputs: 6, Messages: 11, Differences: 2,
		Boundary: []verify.Boundary{{SourceEnd: 5, OutputEnd: 11}},
		Blocked: []verify.BlockedKey{{Key: ledger.StockKey{Item: "<i>", Location: "l"}, Status: ledger.Status{Blocked: true, More: 2,
			Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "T", Revision: 3}, {Code: ledger.CountsDisagree, Day: day}}}}},
		First: &verify.Difference{What: verify.Value, Offset: -1, Detail: "another value",
			ID:       ledger.OutputID{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, Day: day, Kind: ledger.Balance},
			Expected: &verify.Side{Present: true, Payload: &verify.Payload{Kind: ledger.Balance, Close: 50}, Sources: []store.Cause{{TxnID: "T-2", Revision: 1, Offset: 1}}},
			Actual:   &verify.Side{Version: 2, Cause: &store.Cause{TxnID: "T-1", Revision: 2, Offset: 3}}}}
}

func incomplete() *verify.Report {
	return &verify.Report{Namespace: "demo", Status: verify.Incomplete, Mode: "quiesced", Reasons: []verify.Reason{
		{Code: verify.ViewBehind, Partition: 1, Offset: 7, Sequence: 9, Detail: "the view"},
		{Code: verify.LoadRunning, Partition: -1, Offset: -1, Sequence: -1, Detail: "a load"}}}
}

func TestJSONIsTheDocumentedSurface(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*verify.Report{"pass": passed(), "drift": drifted(), "incomplete": incomplete()} {
		want, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.WriteJSON(&out, r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// sides is a drift of one difference between two payloads.
func sides(expected, actual *verify.Payload) *verify.Report {
	return &verify.Report{Status: verify.Drift, Differences: 1, First: &verify.Difference{What: verify.Value, Offset: -1, Detail: "x",
		Expected: &verify.Side{Present: true, Payload: expected}, Actual: &verify.Side{Present: true, Payload: actual}}}
}

// Quantities are written at the namespace's scale, here 2, as explain and balance write them.
func TestTextBeginsWithTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r     *verify.Report
		first string
		also  string
	}{
		{passed(), "PASS  5 source records, 11 messages; an independent recomputation agrees", "partition 0: source below 5, output below 11"},
		{drifted(), `DRIFT  2 differences; the first: VALUE partition 0 balance widget berlin 2026-01-02: another value (expected 0.50 by 0/1 T-2 r1, actual withdrawn version 2)`,
			"blocked: <i> l: AMBIGUOUS T r3, COUNTS_DISAGREE 2026-01-02, and 2 more"},
		{incomplete(), "INCOMPLETE  VIEW_BEHIND partition 1 offset 7 sequence 9: the view", "LOAD_RUNNING: a load"},
		{sides(&verify.Payload{Kind: ledger.Alert, Previous: 7000, Close: -5, Threshold: 6000}, &verify.Payload{Kind: ledger.Alert, Previous: math.MinInt64, Threshold: math.MaxInt64}),
			"DRIFT  1 difference; the first: VALUE partition 0: x (expected 70.00 -> -0.05 below 60.00, actual -92233720368547758.08 -> 0.00 below 92233720368547758.07)", ""},
		{sides(&verify.Payload{Kind: ledger.TrustStatus, Status: &ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: "T", Revision: 1}}}}, &verify.Payload{Kind: ledger.TrustStatus}),
			"DRIFT  1 difference; the first: VALUE partition 0: x (expected BLOCKED AMBIGUOUS T r1, actual no status)", ""},
		{&verify.Report{Status: verify.Blocked, Blocked: make([]verify.BlockedKey, 3)}, "BLOCKED  3 keys blocked; everything else agrees with an independent recomputation", ""},
	} {
		var out bytes.Buffer
		if err := report.Text(&out, c.r, 2); err != nil {
			t.Fatal(err)
		}
		if first, rest, _ := strings.Cut(out.String(), "\n"); first != c.first || !strings.Contains(rest, c.also) {
			t.Errorf("got\n%s", out.String())
		}
	}
}
