package verify_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"amends/internal/inspect"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/verify"
	"amends/internal/wire"
)

// SC37, C40: identifiers with NUL, quotes, HTML, direction marks, emoji, other cases and normal forms, and 512 bytes go
// through the whole path with equal bytes, and stay distinct keys.
func TestSC37HostileIdentifiersKeepTheirBytes(t *testing.T) {
	t.Parallel()
	w := pipelinetest.New(t, `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[],
		"open_keys":{"opening_balance":0,"threshold":null}}`)
	names := []string{"a\x00b", `"quoted\"`, "<script>alert(1)</script>", "\u202eright to left", "😀\U0010ffff", strings.Repeat("\x01", 512),
		strings.Repeat("é", 256), "e\u0301", "é", "85123A", "85123a", "\u2028", " ", "\x7f", "\\", "/"}
	first := ledger.Payload{State: ledger.Active, Kind: ledger.Receipt, Quantity: 1, Day: w.Manifest.Config.LedgerOrigin}
	for _, n := range names {
		w.Values(t, string(wire.AppendAssertion(nil, ledger.Assertion{Key: ledger.StockKey{Item: n, Location: n}, TxnID: n, Revision: 1, Payload: first})))
	}
	w.Settle(t)
	j := job(w)
	j.Deep = true
	r := run(t, j)
	want(t, r, verify.Pass)
	if r.SourceRecords != int64(len(names)) || r.Rejected != 0 || r.Outputs != 2*int64(len(names)) {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := inspect.ShowJSON(t.Context(), &out, "demo", w.NS); err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Balances []struct{ Item, Location string }
	}
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, b := range shown.Balances {
		got[b.Item] = b.Item == b.Location
	}
	for _, n := range names {
		if !got[n] {
			t.Errorf("%q is not shown with its own bytes", n)
		}
	}
	out.Reset()
	if err := inspect.ShowText(t.Context(), &out, "demo", 0, w.NS); err != nil || strings.ContainsAny(out.String(), "\x00\x01\x7f\u202e\u2028") {
		t.Errorf("%v: something hostile reaches the terminal", err)
	}
}
