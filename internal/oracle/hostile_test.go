package oracle

import (
	"fmt"
	"testing"
	"time"

	"amends/internal/ledger"
	"amends/internal/pace"
)

// S5, S7: many disagreeing counts of one day cost each the same, added and taken away, and end where they agree again.
func TestS7ManyDisagreeingCounts(t *testing.T) {
	n := pace.Of(100_000)
	o := New(Config{Origin: 1, Partitions: 1, Open: &Terms{}})
	name := ledger.StockKey{Item: "a", Location: "b"}
	at := ledger.Offset(0)
	add := func(format string, args ...any) {
		if v := o.Add(0, at, canonicalKey(name), fmt.Appendf(nil, format, args...)); v.Rejection != 0 {
			t.Fatal(v)
		}
		at++
	}
	began := time.Now()
	for i := range n {
		add(`{"schema":1,"txn_id":"T-%d","revision":1,"state":"active","item":"a","location":"b","day":"0001-01-01","kind":"closing_count","quantity":%d}`, i, i)
	}
	blocked := o.Expected(name)
	for i := range n - 1 {
		add(`{"schema":1,"txn_id":"T-%d","revision":2,"state":"cancelled","item":"a","location":"b"}`, n-1-i)
	}
	ready := o.Expected(name)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d counts took %v", n, took)
	}
	if r := blocked.Status.Reasons; len(r) != 1 || r[0] != (ledger.Reason{Code: ledger.CountsDisagree, Day: 1}) {
		t.Errorf("%+v", blocked.Status)
	}
	if ready.Status.Blocked || len(ready.Balances) != 1 || ready.Balances[0] != (Balance{Day: 1, Close: 0}) {
		t.Errorf("%+v", ready)
	}
}
